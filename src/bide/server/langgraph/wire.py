"""What LangGraph's clients write into addresses and read in headers, each in one place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from fastapi import Response

from bide import clock
from bide.clock import Instant
from bide.shape.shown import jsonable

__all__ = ["iso", "jsonable", "paged", "read_bool", "read_list", "thread_place"]

TOTAL = "x-pagination-total"
NEXT = "x-pagination-next"

_TRUE = ("1", "true", "yes", "on")


def read_list(values: Sequence[str]) -> list[str]:
    """Return a list of the query in the order given: repeated keys, commas, JSON, or nothing, as clients write it."""
    return [one for value in values for one in _parts(value)]


def _parts(given: str) -> list[str]:
    text = given.strip()
    if text.startswith(("[", '"')):
        try:
            read = json.loads(text)
        except ValueError:
            read = None
        if isinstance(read, str):
            return [read]
        if isinstance(read, list):
            return [one if isinstance(one, str) else json.dumps(one) for one in read if one is not None]
    return [part for one in text.split(",") if (part := one.strip())]


def read_bool(text: str | bool | None) -> bool:
    """Tell whether a flag of the query is set; clients write 1, true and True."""
    return text is True or (isinstance(text, str) and text.strip().lower() in _TRUE)


def paged(response: Response, total: int, offset: int, limit: int) -> None:
    """Say in the headers how many there are in all, and where the next page begins, if there is one."""
    response.headers[TOTAL] = str(total)
    if offset + limit < total:
        response.headers[NEXT] = str(offset + limit)


def thread_place(thread_id: str) -> str:
    """Return the address of a thread, for a header: applications may give ids that no header could hold as they are."""
    return f"/threads/{quote(thread_id, safe=':@')}"


def iso(ms: Instant) -> str:
    """Return an instant as text with its offset."""
    return clock.iso(ms)
