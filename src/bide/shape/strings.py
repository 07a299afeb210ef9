"""What a string must look like: its format."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from urllib.parse import urlsplit
from uuid import UUID

DECIMAL_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"

_OFFSET = r"(Z|[+-]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?"
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = rf"\d\d:\d\d(:\d\d(\.\d{{1,9}})?)?{_OFFSET}"
_UUID = r"[0-9A-F]{8}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{4}-[0-9A-F]{12}"
_EMAIL = r"[^\x00-\x20\x7f@]+@[^\x00-\x20\x7f@.]+(\.[^\x00-\x20\x7f@.]+)*"
_URI_CHARACTER = r"([A-Z0-9._~:/?#@!$&'()*+,;=-]|%[0-9A-F]{2})"
_URI_ADDRESS = rf"(//({_URI_CHARACTER}*@)?\[[0-9A-F:.]+\](?=[:/?#]|\Z))?"  # brackets stand around an address alone
_URI = rf"[A-Z][A-Z0-9+.-]*:{_URI_ADDRESS}{_URI_CHARACTER}*"


def parse_datetime(text: str) -> datetime:
    """Read an ISO date and time; the offset and the seconds may be left out, as browsers' forms do."""
    return datetime.fromisoformat(_shaped(rf"{_DATE}[T ]{_TIME}", text))


def parse_date(text: str) -> date:
    """Read an ISO date."""
    return date.fromisoformat(_shaped(_DATE, text))


def parse_time(text: str) -> time:
    """Read an ISO time of day; the offset and the seconds may be left out."""
    return time.fromisoformat(_shaped(_TIME, text))


def parse_uuid(text: str) -> UUID:
    """Read a UUID in its usual form of five groups."""
    return UUID(_shaped(_UUID, text))


def parse_decimal(text: str) -> Decimal:
    """Read a finite decimal number."""
    return Decimal(_shaped(DECIMAL_PATTERN.strip("^$"), text))


def _parse_email(text: str) -> str:
    return _shaped(_EMAIL, text)


def _parse_uri(text: str) -> str:
    urlsplit(_shaped(_URI, text))  # raises ValueError for brackets that hold no address
    return text


def _shaped(pattern: str, text: str) -> str:
    """Return the text in upper case, or raise ValueError: the parsers of the standard library take too many forms."""
    if re.fullmatch(pattern, text, re.ASCII | re.IGNORECASE) is None:
        raise ValueError(text)
    return text.upper()


FORMATS: dict[str, tuple[str, Callable[[str], object]]] = {
    "date-time": ("a date and time like '2026-01-31T09:30:00Z'", parse_datetime),
    "date": ("a date like '2026-01-31'", parse_date),
    "time": ("a time like '09:30:00'", parse_time),
    "uuid": ("a UUID", parse_uuid),
    "email": ("an e-mail address", _parse_email),
    "uri": ("a URI like 'https://example.org/x'", _parse_uri),
}
"""The formats that are enforced; in JSON Schema every other format is a hint to the form."""


def has_format(name: str, text: str) -> bool:
    """Say whether the text has the format; it must be one of FORMATS."""
    try:
        FORMATS[name][1](text)
    except ValueError:
        return False
    return True
