"""Scalars of the standard library (Ext 1): one tag byte, then the shortest bytes that say the value exactly."""

from __future__ import annotations

import pathlib
import struct
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, cast
from uuid import UUID

from bide.codec.refusal import Refused
from bide.codec.wire import pack, unpack
from bide.errors import CodecError, CorruptDataError

_MICROSECOND = timedelta(microseconds=1)
_LONGEST_FRACTION = 16_384


class Scalar(NamedTuple):
    """How one scalar type is written and read."""

    tag: bytes
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]


def _write_text(value: str) -> bytes:
    """Write text that may hold lone surrogates, which UTF-8 proper has no bytes for."""
    return value.encode("utf-8", "surrogatepass")


def is_utf8(text: str) -> bool:
    """Tell whether the text has no lone surrogates, so that any reader of UTF-8 can take it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _write_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _read_int(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _write_hex(*numbers: int) -> bytes:
    # Hexadecimal, because Python refuses to read or write very long decimal numbers.
    return "/".join(f"{number:x}" for number in numbers).encode()


def _read_hex(data: bytes) -> list[int]:
    return [int(number, 16) for number in data.decode("ascii").split("/")]


def _write_fraction(value: Fraction) -> bytes:
    data = _write_hex(value.numerator, value.denominator)
    if len(data) > _LONGEST_FRACTION:
        raise Refused(value, f"it is a fraction of more than {_LONGEST_FRACTION} hexadecimal digits")
    return data


def _read_fraction(data: bytes) -> Fraction:
    # A fraction is brought to its lowest terms when it is built, which takes time with the square of its length.
    if len(data) > _LONGEST_FRACTION:
        raise CorruptDataError("a fraction is longer than any that can be stored")
    numerator, denominator = _read_hex(data)
    return Fraction(numerator, denominator)


def _read_range(data: bytes) -> range:
    start, stop, step = _read_hex(data)
    return range(start, stop, step)


def _write_complex(value: complex) -> bytes:
    return struct.pack(">dd", value.real, value.imag)


def _read_complex(data: bytes) -> complex:
    return complex(*struct.unpack(">dd", data))


# --- dates and times --------------------------------------------------------------------------------------------------


def _write_date(value: date) -> bytes:
    return value.isoformat().encode()


def _read_date(data: bytes) -> date:
    return date.fromisoformat(data.decode("ascii"))


def _write_timedelta(value: timedelta) -> bytes:
    return pack([value.days, value.seconds, value.microseconds])


def _read_timedelta(data: bytes) -> timedelta:
    days, seconds, microseconds = unpack(data)
    return timedelta(days, seconds, microseconds)


def _write_clock(value: datetime | time) -> bytes:
    """Write a datetime or time: its ISO text without zone, its fold, its zone."""
    bare = value if value.tzinfo is None else value.replace(tzinfo=None)
    return pack([bare.isoformat(), value.fold, _zone_parts(value)])


def _read_datetime(data: bytes) -> datetime:
    text, fold, zone = unpack(data)
    return datetime.fromisoformat(text).replace(tzinfo=_zone(zone), fold=fold)


def _read_time(data: bytes) -> time:
    text, fold, zone = unpack(data)
    return time.fromisoformat(text).replace(tzinfo=_zone(zone), fold=fold)


def _zone_parts(value: datetime | time) -> int | list[Any] | str | None:
    """Return the zone as nothing, an offset in microseconds, an offset with its name, or an IANA key."""
    zone = value.tzinfo
    if zone is None:
        return None
    if type(zone) is timezone:
        return _offset_parts(value, zone)
    key = getattr(zone, "key", None)
    if type(zone) is _zone_class() and _comes_back(value, key):
        return key
    raise Refused(value, f"its time zone {zone!r} cannot be rebuilt; use a plain zoneinfo.ZoneInfo or a fixed offset")


def _comes_back(value: datetime | time, key: str | None) -> bool:
    # Two ZoneInfo objects with one key (one made with `no_cache`) are different zones to `==` when the clocks change.
    return key in _known_zones() and value.replace(tzinfo=_zone_class()(key)) == value


def _offset_parts(value: datetime | time, zone: timezone) -> int | list[Any]:
    offset = zone.utcoffset(None)
    microseconds = offset // _MICROSECOND
    name = zone.tzname(None)
    if name == timezone(offset).tzname(None):
        return microseconds
    if not is_utf8(name):
        raise Refused(value, "the name of its time zone is not valid text")
    return [microseconds, name]


def _zone(parts: Any) -> tzinfo | None:
    match parts:
        case None:
            return None
        case int():
            return timezone(parts * _MICROSECOND)
        case [int(offset), str(name)]:
            return timezone(offset * _MICROSECOND, name)
        case str() if parts in _known_zones():
            return cast(tzinfo, _zone_class()(parts))
        case str():
            raise CodecError(f"the time zone {parts!r} is not known on this machine: install the package 'tzdata'")
        case _:
            raise CorruptDataError("a time zone is neither an offset nor a name")


@cache
def _known_zones() -> frozenset[str]:
    # ZoneInfo looks an unknown key up as a module of the package `tzdata`: a key from stored bytes must be known first.
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


@cache
def _zone_class() -> Any:
    # Loaded when the first zone is met: most programs store times in UTC and need none of it.
    from zoneinfo import ZoneInfo

    return ZoneInfo


# --- paths ------------------------------------------------------------------------------------------------------------

_PATH_KINDS: dict[bytes, type[pathlib.PurePath]] = {
    b"p": pathlib.PosixPath,
    b"w": pathlib.WindowsPath,
    b"P": pathlib.PurePosixPath,
    b"W": pathlib.PureWindowsPath,
}
_KIND_OF_PATH = {cls: kind for kind, cls in _PATH_KINDS.items()}


def _write_path(value: pathlib.PurePath) -> bytes:
    return _KIND_OF_PATH[type(value)] + _write_text(str(value))


def _read_path(data: bytes) -> pathlib.PurePath:
    kind = _PATH_KINDS.get(data[:1])
    if kind is None:
        raise CorruptDataError("a path is of no known kind")
    try:
        return kind(_read_text(data[1:]))
    except NotImplementedError as error:
        raise CodecError(
            f"a {kind.__name__} cannot exist on {sys.platform!r}: store a PurePath to read it on other systems"
        ) from error


# --- the table --------------------------------------------------------------------------------------------------------

SCALARS: dict[type, Scalar] = {
    int: Scalar(b"i", _write_int, _read_int),  # those beyond 64 bits
    str: Scalar(b"s", _write_text, _read_text),  # those with lone surrogates
    bytearray: Scalar(b"b", bytes, bytearray),
    complex: Scalar(b"c", _write_complex, _read_complex),
    range: Scalar(b"r", lambda value: _write_hex(value.start, value.stop, value.step), _read_range),
    Decimal: Scalar(b"n", lambda value: str(value).encode(), lambda data: Decimal(data.decode("ascii"))),
    Fraction: Scalar(b"q", _write_fraction, _read_fraction),
    UUID: Scalar(b"u", lambda value: value.bytes, lambda data: UUID(bytes=data)),
    date: Scalar(b"d", _write_date, _read_date),
    datetime: Scalar(b"D", _write_clock, _read_datetime),
    time: Scalar(b"t", _write_clock, _read_time),
    timedelta: Scalar(b"T", _write_timedelta, _read_timedelta),
    **{cls: Scalar(b"p", _write_path, _read_path) for cls in _KIND_OF_PATH},
}

_READERS = {scalar.tag: scalar.read for scalar in SCALARS.values()}


def read_scalar(data: bytes) -> Any:
    """Build the scalar that these bytes say."""
    read = _READERS.get(data[:1])
    if read is None:
        raise CorruptDataError(f"there is no scalar with the tag {data[:1]!r}")
    return read(data[1:])
