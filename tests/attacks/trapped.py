"""Classes whose own code may not run when stored bytes are read, and a value of every type that can be stored."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
from langchain_core import messages as langchain
from langchain_core.documents import Document

from bide.codec import Codec, Registry
from bide.messages import AIMessage, HumanMessage

sprung: list[str] = []
"""Which traps were run into."""


@dataclass
class Order:
    total: int = 0
    lines: Any = ()

    def __post_init__(self) -> None:
        sprung.append("Order.__post_init__")

    def pay(self, *_: Any, **__: Any) -> None:
        sprung.append("Order.pay")

    @classmethod
    def load(cls, *_: Any, **__: Any) -> None:
        sprung.append("Order.load")

    def __setattr__(self, name: str, value: Any) -> None:
        sprung.append("Order.__setattr__")
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        sprung.append(f"Order.__getattr__({name})")
        raise AttributeError(name)


class Model(pydantic.BaseModel):
    x: Any = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def look(cls, data: Any) -> Any:
        sprung.append("Model.look")
        return data

    def model_post_init(self, context: Any) -> None:
        sprung.append("Model.model_post_init")


class Colour(Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        sprung.append("Colour._missing_")
        return cls.RED


class Right(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: Any
    y: Any = 0


class Email(str):
    __slots__ = ("__dict__",)

    def __init__(self, *_: Any) -> None:
        sprung.append("Email.__init__")

    def send(self) -> None:
        sprung.append("Email.send")


CLASSES = (Order, Model, Colour, Right, Point, Email)


def trapped_codec() -> Codec:
    """A codec that knows the classes above."""
    registry = Registry()
    for cls in CLASSES:
        registry.add(cls)
    return Codec(registry)


def golden_values() -> dict[str, Any]:
    """A value of every type, each with what goes into it; none of the traps is left sprung."""
    values = {
        "plain": {"none": None, "yes": True, "int": -7, "float": 1.5, "text": "ü", "bytes": b"\x00\xff", "list": [[]]},
        "numbers": [2**70, -(2**64), Decimal("1.10"), Fraction(1, 3), 1 + 2j, range(1, 9, 2)],
        "times": [
            datetime(2026, 1, 1, 12, 30, tzinfo=ZoneInfo("Europe/Berlin")),
            datetime(2026, 1, 1, tzinfo=UTC),
            date(2026, 1, 2),
            time(1, 2, 3, 4),
            timedelta(1, 2, 3),
        ],
        "texts": ["\ud800", UUID(int=5), PurePosixPath("/tmp/x"), bytearray(b"ab")],
        "containers": [(1, (2,)), {3}, frozenset({4}), deque([5], 9), OrderedDict(a=1), Counter("aab"), {6: (7,)}],
        "missing": defaultdict(list, {"a": [1]}),
        "registered": [Order(1, ("a",)), Model(x=Point(1, 2)), Colour.RED, Right.READ | Right.WRITE, Email("a@b.c")],
        "messages": [AIMessage("hi", tool_calls=[{"name": "f", "args": {}, "id": "1"}]), HumanMessage("yo")],
        "theirs": [langchain.AIMessage("hi"), langchain.ToolMessage("x", tool_call_id="1"), Document("d")],
    }
    sprung.clear()
    return values
