"""Server-sent events: frames, and the answer that carries them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from fastapi.responses import StreamingResponse
from starlette.types import Send

from bide.clock import elapsed

HEARTBEAT = b": heartbeat\n\n"
HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    "Connection": "keep-alive",
}


STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events, as they happen.", "content": {"text/event-stream": {}}}
}
"""How a route that streams is described."""


class Part(NamedTuple):
    """One event of a stream."""

    event: str
    data: str
    """As JSON."""


def part(event: str, data: Any) -> Part:
    """Make an event of plain data."""
    return Part(event, json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def frame(sent: Part, id_: str | None = None) -> bytes:
    """Write an event as it goes over the wire."""
    named = "" if id_ is None else f"id: {id_}\n"
    return f"{named}event: {_one_line(sent.event)}\ndata: {_one_line(sent.data)}\n\n".encode()


_BREAKS = "\0\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
"""What ends a line, or a text, for one reader or another."""
_ESCAPED = str.maketrans({one: f"\\u{ord(one):04x}" for one in _BREAKS})


def _one_line(text: str) -> str:
    """Keep what a graph has named or said from ending its line: what comes behind that would be an event of its own.

    The name of a node may hold anything, and is part of an event's name. Data is JSON, which has no line breaks; but
    there are clients that take more for one than the standard does. Both say it as JSON would.
    """
    return text.translate(_ESCAPED) if any(one in text for one in _BREAKS) else text


class BrokenOff(Exception):
    """A stream ends though what it tells goes on: the server stops."""


class EventStream(StreamingResponse):
    """An answer that goes on."""

    async def stream_response(self, send: Send) -> None:
        """Send the events. A stream that is broken off has no proper end: a client would take it for that of the run,
        where it reconnects when the line is cut."""
        with suppress(BrokenOff):
            await super().stream_response(send)


async def unending(frames: AsyncIterator[bytes], stopping: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the frames of a stream that has no end of its own; when the server stops, it is broken off."""
    async for sent in frames:
        yield sent
    if stopping.is_set():
        raise BrokenOff


def streamed(frames: AsyncIterator[bytes], headers: Mapping[str, str] | None = None) -> StreamingResponse:
    """Answer with a stream of events."""
    return EventStream(frames, media_type="text/event-stream; charset=utf-8", headers={**HEADERS, **(headers or {})})


class Pulse:
    """Says when a quiet stream needs a sign of life: regularly, since clients learn how often to expect one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = elapsed()

    def beat(self) -> bool:
        """Whether it is time for a sign of life."""
        if elapsed() - self._last < self._seconds * 0.9:
            return False
        self._last = elapsed()
        return True
