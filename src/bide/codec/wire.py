"""The bytes themselves: MessagePack through ormsgpack, and the numbers of our extension types.

    value    = version byte, MessagePack
    Ext 1    = tag byte, bytes                          a scalar of the standard library
    Ext 2    = tag byte, [items]                        a container of the standard library
    Ext 3    = [name, version, {…}]                     a member of a registered Enum
    Ext 4    = [name, version, {field: value}]          a registered dataclass
    Ext 5    = [name, version, {field: value}, …]       a registered pydantic model
    Ext 6    = [family, type, {field: value}, …]        a chat message, from a fixed table
    Ext 7    = [name, version, {field: value}]          a registered NamedTuple
    Ext 8    = [name, version, {…}]                     a registered subclass of a builtin

Everything in an Ext is MessagePack again. Golden-bytes tests hold all of it in place.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import ormsgpack

from bide.errors import CorruptDataError

FORMAT_VERSION = b"\x01"

SCALAR, CONTAINER, ENUM, DATACLASS, PYDANTIC, MESSAGE, NAMED_TUPLE, BUILTIN_SUBCLASS = range(1, 9)

Ext = ormsgpack.Ext

MAX_PLAIN_DEPTH = 255
"""How deep lists and dicts nest within one typed value: ormsgpack's own limit when it writes."""

MAX_TYPED_DEPTH = 100
"""How deep typed values nest: each level costs Python frames, and reading must never run out of them."""

# Without these ormsgpack would write a tuple as a list, a datetime as a str, and so on, without a word.
_OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)

# ormsgpack ignores what follows a value. So each body is read as the first half of a pair whose second half is a
# mark that nobody can have written: if the mark is not there, the body ended too early or too late.
_END = b"\xc4\x10" + os.urandom(16)
_END_MARK = _END[2:]


class Later:
    """An extension value that was found while reading and is not built yet.

    Building it only after the surrounding bytes are read keeps the parser's stack flat: hostile bytes cannot nest
    parsers within parsers until the stack is used up.
    """

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def pack(tree: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """Write a tree as MessagePack; `default` gets what is not plain."""
    return ormsgpack.packb(tree, default, _OPTIONS)


def array_header(length: int) -> bytes:
    """Return what stands before the elements of a list."""
    if length < 16:
        return bytes([0x90 | length])
    return b"\xdc" + length.to_bytes(2) if length < 65536 else b"\xdd" + length.to_bytes(4)


def unpack(data: bytes, later: Callable[[int, bytes], Later] = Later) -> Any:
    """Read one value that fills `data` to its end; extension values are left as `later` makes them."""
    try:
        pair = ormsgpack.unpackb(b"\x92%b%b" % (data, _END), ext_hook=later)
    except ValueError as error:
        raise CorruptDataError(f"the bytes are cut off or damaged ({error})") from error
    if pair[1] != _END_MARK:
        raise CorruptDataError("the value ends before its bytes do")
    return pair[0]
