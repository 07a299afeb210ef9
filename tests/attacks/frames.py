"""MessagePack by hand: what no honest writer would write, too."""

from __future__ import annotations

from typing import Any

import ormsgpack

VERSION = b"\x01"
OWN_CODES = range(1, 9)
REGISTERED_CODES = (3, 4, 5, 7, 8)


def packed(value: Any) -> bytes:
    """Plain data as MessagePack."""
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def binary(data: bytes) -> bytes:
    """A value of plain bytes."""
    return b"\xc6" + len(data).to_bytes(4) + data


def ext(code: int, data: bytes) -> bytes:
    """An extension value of any code, with its length written in four bytes."""
    return b"\xc9" + len(data).to_bytes(4) + code.to_bytes(1, signed=True) + data


def every_ext(code: int, data: bytes) -> list[bytes]:
    """The same extension value in all the ways that MessagePack knows."""
    sign = code.to_bytes(1, signed=True)
    fixed = {1: b"\xd4", 2: b"\xd5", 4: b"\xd6", 8: b"\xd7", 16: b"\xd8"}
    ways = [ext(code, data), b"\xc8" + len(data).to_bytes(2) + sign + data]
    if len(data) < 256:
        ways.append(b"\xc7" + len(data).to_bytes(1) + sign + data)
    if len(data) in fixed:
        ways.append(fixed[len(data)] + sign + data)
    return ways


def frame(body: bytes) -> bytes:
    """A body of the codec: its version, and MessagePack."""
    return VERSION + body


def everywhere(body: bytes) -> list[bytes]:
    """The same MessagePack as a value of its own, and inside of others."""
    return [
        frame(body),
        frame(b"\x91" + body),
        frame(b"\x81\xa1k" + body),
        frame(ext(2, b"t\x91" + body)),
        frame(ext(2, b"s\x91" + body)),
        frame(ext(2, b"m\x92" + body + b"\x01")),
        frame(ext(2, b"q\x92\xc0" + body)),
    ]
