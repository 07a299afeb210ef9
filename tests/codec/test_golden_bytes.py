"""The bytes of the format, one by one: whoever changes one of these changes what is stored in users' databases.

A change needs a new format version, and a reader that still takes the old one.
"""

# ruff: noqa: DTZ001 - a datetime without a zone has its bytes too

from __future__ import annotations

import os
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest

from bide.codec import Codec, Registry
from bide.messages import AIMessage, HumanMessage, ToolMessage


class Colour(Enum):
    RED = 1


class Access(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    total: Decimal
    lines: list[Any]


class Model(pydantic.BaseModel, extra="allow"):
    name: str
    size: int = 3
    _secret: int = pydantic.PrivateAttr(default=7)


class Email(str):
    pass


GOLDEN: dict[str, tuple[Any, str]] = {
    "none": (None, "01 c0"),
    "true": (True, "01 c3"),
    "small int": (7, "01 07"),
    "negative int": (-1, "01 ff"),
    "int of 64 bits": (2**63, "01 cf 80 00 00 00 00 00 00 00"),
    "big int": (2**64, "01 c7 0a 01 69 01 00 00 00 00 00 00 00 00"),
    "negative big int": (-(2**64), "01 c7 0a 01 69 ff 00 00 00 00 00 00 00 00"),
    "float": (1.5, "01 cb 3f f8 00 00 00 00 00 00"),
    "text": ("grün", "01 a5 67 72 c3 bc 6e"),
    "lone surrogate": ("a\ud800", "01 c7 05 01 73 61 ed a0 80"),
    "bytes": (b"\x00\xff", "01 c4 02 00 ff"),
    "bytearray": (bytearray(b"\x00\xff"), "01 c7 03 01 62 00 ff"),
    "list": ([1, "a", None], "01 93 01 a1 61 c0"),
    "dict": ({"a": 1, "b": [2]}, "01 82 a1 61 01 a1 62 91 02"),
    "dict with other keys": ({1: "a", None: "b"}, "01 d7 02 6d 94 01 a1 61 c0 a1 62"),
    "tuple": ((1, 2), "01 d6 02 74 92 01 02"),
    "empty tuple": ((), "01 d5 02 74 90"),
    "set": ({1}, "01 c7 03 02 73 91 01"),
    "frozenset": (frozenset({1}), "01 c7 03 02 66 91 01"),
    "deque": (deque([1], maxlen=2), "01 d6 02 71 92 02 01"),
    "ordered dict": (OrderedDict(b=1, a=2), "01 d7 02 6f 94 a1 62 01 a1 61 02"),
    "counter": (Counter({"a": 2}), "01 c7 05 02 6e 92 a1 61 02"),
    "defaultdict": (defaultdict(list, {"a": [1]}), "01 c7 0b 02 64 93 a4 6c 69 73 74 a1 61 91 01"),
    "complex": (1 + 2j, "01 c7 11 01 63 3f f0 00 00 00 00 00 00 40 00 00 00 00 00 00 00"),
    "decimal": (Decimal("1.10"), "01 c7 05 01 6e 31 2e 31 30"),
    "fraction": (Fraction(-1, 16), "01 c7 06 01 71 2d 31 2f 31 30"),
    "range": (range(0, 10, 3), "01 c7 06 01 72 30 2f 61 2f 33"),
    "uuid": (UUID(int=1), "01 c7 11 01 75 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01"),
    "date": (date(2026, 11, 16), "01 c7 0b 01 64 32 30 32 36 2d 31 31 2d 31 36"),
    "naive datetime": (
        datetime(2026, 11, 16, 9, 30, fold=1),
        "01 c7 18 01 44 93 b3 32 30 32 36 2d 31 31 2d 31 36 54 30 39 3a 33 30 3a 30 30 01 c0",
    ),
    "datetime in UTC": (
        datetime(2026, 11, 16, 9, 30, 0, 5, tzinfo=UTC),
        "01 c7 1f 01 44 93 ba 32 30 32 36 2d 31 31 2d 31 36 54 30 39 3a 33 30 3a 30 30 2e 30 30 30 30 30 35 00 00",
    ),
    "datetime with an offset": (
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-3))),
        "01 c7 20 01 44 93 b3 32 30 32 36 2d 30 31 2d 30 31 54 30 30 3a 30 30 3a 30 30 00 d3 ff ff ff fd 7c 45 14 00",
    ),
    "datetime with a named offset": (
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET")),
        "01 c7 21 01 44 93 b3 32 30 32 36 2d 30 31 2d 30 31 54 30 30 3a 30 30 3a 30 30 00 92 ce d6 93 a4 "
        "00 a3 43 45 54",
    ),
    "datetime in a zone": (
        datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        "01 c7 25 01 44 93 b3 32 30 32 36 2d 30 31 2d 30 31 54 30 30 3a 30 30 3a 30 30 00 ad 45 75 72 6f "
        "70 65 2f 42 65 72 6c 69 6e",
    ),
    "time": (time(9, 30), "01 c7 0d 01 74 93 a8 30 39 3a 33 30 3a 30 30 00 c0"),
    "timedelta": (timedelta(days=-1, seconds=2, microseconds=3), "01 c7 05 01 54 93 ff 02 03"),
    "posix path": (PurePosixPath("a/b"), "01 c7 05 01 70 50 61 2f 62"),
    "windows path": (PureWindowsPath("c:/x"), "01 c7 06 01 70 57 63 3a 5c 78"),
    "enum": (Colour.RED, "01 c7 15 03 93 a6 43 6f 6c 6f 75 72 01 81 a6 6d 65 6d 62 65 72 a3 52 45 44"),
    "flags": (
        Access.READ | Access.WRITE,
        "01 c7 24 03 93 a6 41 63 63 65 73 73 01 82 a7 6d 65 6d 62 65 72 73 92 a4 52 45 41 44 a5 57 52 49 "
        "54 45 a4 72 65 73 74 00",
    ),
    "dataclass": (
        Order(Decimal("1.10"), [1]),
        "01 c7 1f 04 93 a5 4f 72 64 65 72 01 82 a5 74 6f 74 61 6c c7 05 01 6e 31 2e 31 30 a5 6c 69 6e 65 73 91 01",
    ),
    "pydantic model": (
        Model(name="n", more=1),
        "01 c7 32 05 96 a5 4d 6f 64 65 6c 01 82 a4 6e 61 6d 65 a1 6e a4 73 69 7a 65 03 92 a4 6d 6f 72 65 "
        "a4 6e 61 6d 65 81 a4 6d 6f 72 65 01 81 a7 5f 73 65 63 72 65 74 07",
    ),
    "named tuple": (Point(1, 2), "01 c7 0f 07 93 a5 50 6f 69 6e 74 01 82 a1 78 01 a1 79 02"),
    "subclass of str": (
        Email("a@b"),
        "01 c7 1f 08 93 a5 45 6d 61 69 6c 01 82 a5 76 61 6c 75 65 a3 61 40 62 aa 61 74 74 72 69 62 75 74 65 73 80",
    ),
    "human message": (
        HumanMessage("hi"),
        "01 c7 18 06 93 a4 62 69 64 65 a5 68 75 6d 61 6e 81 a7 63 6f 6e 74 65 6e 74 a2 68 69",
    ),
    "ai message": (
        AIMessage("", id="1", tool_calls=[{"name": "f", "args": {}}]),
        "01 c7 32 06 93 a4 62 69 64 65 a2 61 69 83 a7 63 6f 6e 74 65 6e 74 a0 a2 69 64 a1 31 aa 74 6f 6f "
        "6c 5f 63 61 6c 6c 73 91 82 a4 6e 61 6d 65 a1 66 a4 61 72 67 73 80",
    ),
    "tool message": (
        ToolMessage("r", tool_call_id="c", status="error"),
        "01 c7 32 06 93 a4 62 69 64 65 a4 74 6f 6f 6c 83 a7 63 6f 6e 74 65 6e 74 a1 72 ac 74 6f 6f 6c 5f "
        "63 61 6c 6c 5f 69 64 a1 63 a6 73 74 61 74 75 73 a5 65 72 72 6f 72",
    ),
}


@pytest.fixture(name="codec")
def _codec() -> Codec:
    registry = Registry()
    for cls in (Colour, Access, Point, Order, Model, Email):
        registry.add(cls)
    return Codec(registry)


@pytest.mark.parametrize("name", GOLDEN)
def test_value_is_written_as_these_bytes(codec, name):
    value, golden = GOLDEN[name]

    assert codec.encode(value).hex(" ") == golden


@pytest.mark.complaint(46)
@pytest.mark.parametrize("name", GOLDEN)
def test_these_bytes_are_read_as_the_value(codec, name):
    value, golden = GOLDEN[name]

    found = codec.decode(bytes.fromhex(golden))

    assert type(found) is type(value)
    assert found == value


def test_concrete_path_is_written_with_the_kind_of_its_system(codec):
    kind = {"posix": b"p", "nt": b"w"}[os.name]

    assert codec.encode(Path("a")) == bytes.fromhex("01 c7 03 01 70") + kind + b"a"


def test_digest_is_this_one(codec):
    assert codec.digest([{"b": {2, 1}, "a": (1.5, None)}, Order(Decimal(1), [])]) == "524baaf7c9052d74142b6d9301847451"
