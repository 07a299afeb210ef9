"""Server-sent events: frames, and the answer that carries them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from fastapi.responses import StreamingResponse

from bide.clock import elapsed

HEARTBEAT = b": heartbeat\n\n"
HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    "Connection": "keep-alive",
}


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
    return f"{named}event: {sent.event}\ndata: {sent.data}\n\n".encode()


def streamed(frames: AsyncIterator[bytes], headers: Mapping[str, str] | None = None) -> StreamingResponse:
    """Answer with a stream of events."""
    return StreamingResponse(
        frames, media_type="text/event-stream; charset=utf-8", headers={**HEADERS, **(headers or {})}
    )


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
