"""A body as it came, byte for byte, and no more of it than is allowed."""

from __future__ import annotations

from fastapi import Request

from bide.server.problems import Problem


async def read_body(request: Request, most: int) -> bytes:
    """Read a body of at most so many bytes; a longer one is refused before it is in memory."""
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > most:
        raise too_large(most)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise too_large(most)
        parts.append(part)
    return b"".join(parts)


def too_large(most: int) -> Problem:
    """Say how much is taken."""
    return Problem(413, f"The body is too large: up to {most} bytes are taken here.")
