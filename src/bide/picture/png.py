"""Pixels as a PNG file."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
TRUE_COLOUR = 2
LEVEL = 6


def encode(width: int, height: int, pixels: bytes | bytearray, *, pixels_per_metre: int) -> bytes:
    """Return a PNG of rows of red, green and blue bytes."""
    row = width * 3
    view = memoryview(pixels)
    # Each row says first how it was changed to compress better: 0, it was not; flat colours compress well as they are.
    rows = b"".join(part for top in range(0, row * height, row) for part in (b"\x00", view[top : top + row]))
    return b"".join(
        [
            SIGNATURE,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, TRUE_COLOUR, 0, 0, 0)),
            _chunk(b"pHYs", struct.pack(">IIB", pixels_per_metre, pixels_per_metre, 1)),
            _chunk(b"IDAT", zlib.compress(rows, LEVEL)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
