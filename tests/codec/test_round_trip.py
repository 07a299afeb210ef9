"""What is written comes back equal, and of the same types all the way down."""

# ruff: noqa: DTZ001, DTZ901 - datetimes without a zone have to come back too

from __future__ import annotations

import dataclasses
import math
import struct
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum, auto
from fractions import Fraction
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.codec import Codec, Registry
from bide.codec.encode import CarefulWriter
from bide.messages import AIMessage, HumanMessage, Message, RemoveMessage, SystemMessage, ToolMessage

T = TypeVar("T")
BERLIN = ZoneInfo("Europe/Berlin")


class Colour(Enum):
    RED = "red"
    BLUE = ("b", "lue")


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    YES = "yes"


class Access(Flag):
    READ = auto()
    WRITE = auto()
    BOTH = READ | WRITE


class Bits(IntFlag):
    ONE = 1
    TWO = 2


class Point(NamedTuple):
    x: float
    y: float = 0.0


Pair = namedtuple("Pair", "left right")


@dataclass
class Line:
    sku: str
    price: Any = None


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    number: int


@dataclass(frozen=True)
class Box(Generic[T]):
    content: T


@dataclass
class Crate(Generic[T]):
    content: T


@dataclass
class Derived:
    base: int
    double: int = field(init=False)
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        self.double = self.base * 2

    @cached_property
    def triple(self) -> int:
        return self.base * 3


@dataclass(kw_only=True)
class Order(Line):
    lines: list[Line] = field(default_factory=list)


class Model(pydantic.BaseModel):
    name: str
    size: int = 3
    inner: Any = None
    _secret: int = pydantic.PrivateAttr(default=7)


class Open(pydantic.BaseModel, extra="allow"):
    name: str = ""


class Frozen(pydantic.BaseModel, frozen=True):
    name: str


class Numbers(pydantic.RootModel[list[int]]):
    pass


class Email(str):
    pass


class Tags(list[Any]):
    pass


REGISTERED = [
    *(Colour, Level, Word, Access, Bits, Point, Pair, Line, Key, Box, Crate, Derived, Order),
    *(Model, Open, Frozen, Numbers, Email, Tags),
]


@pytest.fixture(name="codec", scope="module")
def _codec() -> Codec:
    return make_codec()


def make_codec() -> Codec:
    registry = Registry()
    for cls in REGISTERED:
        registry.add(cls)
    return Codec(registry)


def assert_same(found: Any, wanted: Any) -> None:
    """Fail unless both are equal and of the same types all the way down; NaN counts as equal to NaN."""
    assert type(found) is type(wanted)
    assert essence_of(found) == essence_of(wanted)
    for one, other in zip(parts_of(found), counterparts_of(wanted, found), strict=True):
        assert_same(one, other)


def essence_of(value: Any) -> Any:
    """What two values must agree in, besides their parts."""
    match value:
        case float():
            return "nan" if math.isnan(value) else struct.pack(">d", value)
        case Decimal():
            return str(value)
        case datetime() | time():
            return value.replace(tzinfo=None), value.fold, str(value.tzinfo), type(value.tzinfo)
        case Flag():
            # Flags with bits that no member names are made anew each time by some versions of Python.
            return type(value), value.value
        case Enum():
            return id(value)
        case deque():
            return value.maxlen
        case pydantic.BaseModel():
            return value.model_fields_set
        case defaultdict():
            return value.default_factory
        case _:
            return None if parts_of(value) else value


def parts_of(value: Any) -> list[Any]:
    match value:
        case complex():
            return [value.real, value.imag]
        case dict():
            return [*value.keys(), *value.values()]
        case list() | tuple() | deque() | set() | frozenset():
            return list(value)
        case pydantic.BaseModel():
            return [dict(value.__dict__), value.__pydantic_private__, value.__pydantic_extra__]
        case _ if dataclasses.is_dataclass(value):
            return [getattr(value, f.name) for f in dataclasses.fields(value)]
        case _:
            return []


def counterparts_of(wanted: Any, found: Any) -> list[Any]:
    """The parts of `wanted` in the order of those of `found`, which differs between equal sets."""
    if not isinstance(wanted, set | frozenset):
        return parts_of(wanted)
    known = {item: item for item in wanted}
    return [known[item] for item in found]


AWKWARD: dict[str, Any] = {
    "none": None,
    "booleans": [True, False],
    "one in three types": [1, True, 1.0],
    "negative zero": -0.0,
    "nan and infinities": [math.nan, math.inf, -math.inf],
    "smallest float": 5e-324,
    "ints at the edges of 64 bits": [2**63 - 1, 2**63, 2**64 - 1, -(2**63)],
    "ints beyond 64 bits": [2**64, -(2**63) - 1, 10**5000, -(10**5000)],
    "empty things": ["", b"", [], {}, (), set(), frozenset(), deque(), range(0)],
    "text": "naïve 😀 \x00 \u2028",
    "lone surrogates": ["\ud800", "a\udfffb", {"\ud800": "\udc00"}],
    "path that is not valid text": Path("caf\udce9"),
    "bytes and bytearray": [b"\x00\xff", bytearray(b"\x00\xff")],
    "bytearray of some length": [bytearray(300)],
    "bytearray of great length": [bytearray(70_000)],
    "many typed values side by side": [(number,) for number in range(300)],
    "tuples in lists in tuples": ([(1, [2, (3,)])],),
    "sets": [{1, "a", None, (1, 2)}, frozenset({frozenset({1}), b"x"})],
    "deques": [deque([1, 2], maxlen=5), deque([(1,)]), deque(maxlen=0)],
    "ranges": [range(3), range(10, 0, -3), range(2**70, 2**71)],
    "complex": [complex(1, -0.0), complex(math.inf, math.nan)],
    "decimals": [Decimal("1.10"), Decimal("-0"), Decimal("NaN123"), Decimal("sNaN"), Decimal("1E+999"), Decimal("Inf")],
    "fractions": [Fraction(1, 3), Fraction(-7), Fraction(10**5000, 3)],
    "uuid": UUID(int=7),
    "dates": [date(1, 1, 1), date.max, datetime.min, datetime.max, time.min, time.max],
    "timedeltas": [timedelta.min, timedelta.max, timedelta(microseconds=-1), timedelta.resolution],
    "naive datetime with fold": datetime(2026, 10, 25, 2, 30, fold=1),
    "utc": datetime(2026, 1, 1, tzinfo=UTC),
    "fixed offset": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30, microseconds=5))),
    "named offset": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET")),
    "zone": datetime(2026, 7, 1, tzinfo=BERLIN),
    "zone in both halves of a repeated hour": [
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)
    ],
    "zone in an hour that does not exist": datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN),
    "times": [time(1, 2, 3, 4), time(1, fold=1), time(1, tzinfo=UTC), time(1, tzinfo=BERLIN)],
    "paths": [Path("a/b"), Path("/"), Path(), PurePosixPath("a"), PureWindowsPath("c:\\x")],
    "keys of many types": {1: 1, "1": 2, 1.5: 3, None: 4, b"1": 5, (1, "a"): 6, Level.HIGH: 7, UUID(int=1): 8},
    "boolean key": {True: 1},
    "float key that looks like an int": {1.0: 1},
    "date keys": {date(2026, 1, 1): 1, datetime(2026, 1, 1): 2},
    "key in a nested dict": {"a": {"b": [{1: {"c": 2}}]}},
    "ordered dict": OrderedDict(b=1, a=2),
    "counter": Counter({"a": 2, 1: -1}),
    "defaultdicts": [defaultdict(list, {"a": [1]}), defaultdict(None, {1: 2}), defaultdict(dict)],
    "enums": [Colour.RED, Colour.BLUE, Level.HIGH, Word.YES],
    "flags": [Access.READ, Access.BOTH, Access(0), Bits.ONE | Bits.TWO, Bits(0), Bits(8) | Bits.ONE],
    "named tuples": [Point(1.0), Point(1.0, 2.0), Pair(1, [Pair(2, 3)])],
    "dataclasses": [Line("a"), Line("b", Decimal("1.5")), Key("k", 1), Order(sku="o", lines=[Line("x")])],
    "frozen dataclass as key and element": {Key("k", 1): {Key("k", 2)}},
    "generic dataclass": [Box(1), Box[int](2), Crate[int](3)],
    "dataclass in dataclass": Box(Box(Box((1,)))),
    "dataclass with a field it computes": Derived(4, note="n"),
    "pydantic models": [Model(name="n"), Model(name="n", size=3, inner=Model(name="i")), Open(name="o", other=(1,))],
    "frozen pydantic model in a set": {Frozen(name="f")},
    "pydantic root model": Numbers([1, 2]),
    "pydantic model with invalid content": Model.model_construct(name=5),
    "subclasses of builtins": [Email("a@b"), Tags([1, Tags()])],
    "our messages": [
        HumanMessage("hi"),
        HumanMessage([{"type": "text", "text": "x"}], id="1", name="n", additional_kwargs={"a": (1,)}),
        AIMessage("x", tool_calls=[{"name": "f", "args": {}, "id": "c"}], usage_metadata={"total_tokens": 1}),
        SystemMessage("s", response_metadata={"k": 1}),
        ToolMessage("t", tool_call_id="c", status="error", artifact={1, 2}),
        RemoveMessage("1"),
        Message("m"),
        HumanMessage("x", additional_kwargs=OrderedDict()),
    ],
    "255 nested lists": None,
    "100 nested tuples": None,
}

deep_list: list[Any] = []
for _ in range(254):
    deep_list = [deep_list]
AWKWARD["255 nested lists"] = deep_list
deep_tuple: tuple[Any, ...] = ()
for _ in range(99):
    deep_tuple = (deep_tuple,)
AWKWARD["100 nested tuples"] = deep_tuple


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_value_comes_back_the_same(codec, name):
    found = codec.decode(codec.encode(AWKWARD[name]))

    assert_same(found, AWKWARD[name])


def test_comparison_of_these_tests_sees_differences_that_equality_does_not():
    for one, other in [(1, True), (0.0, -0.0), ([1], [1.0]), (b"", bytearray()), ((1, 2), Pair(1, 2)), ({1}, {True})]:
        with pytest.raises(AssertionError):
            assert_same(one, other)


# --- any value --------------------------------------------------------------------------------------------------------

any_text = st.text(st.characters(exclude_categories=()), max_size=8)
zones = st.sampled_from([None, UTC, BERLIN, ZoneInfo("Australia/Lord_Howe"), timezone(timedelta(minutes=7), "odd")])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    any_text,
    st.binary(max_size=8),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.dates(),
    st.datetimes(timezones=zones),
    st.times(timezones=zones),
    st.timedeltas(),
    st.sampled_from([*Colour, *Level, *Word, Access(0), *Access, Bits(3), Bits(9), Path("a"), range(1, 9, 2)]),
)


def is_equal_to_itself(value: Any) -> bool:
    # Not so for NaN: it cannot be found again in a set or a dict.
    return not value.is_nan() if isinstance(value, Decimal) else value == value


hashables = st.recursive(
    scalars.filter(is_equal_to_itself),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3), st.builds(Box, inner)
    ),
    max_leaves=4,
)


def containers_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=4)
    dicts = st.dictionaries(hashables, inner, max_size=4)
    return st.one_of(
        lists,
        lists.map(tuple),
        lists.map(deque),
        lists.map(Tags),
        st.builds(bytearray, st.binary(max_size=4)),
        st.sets(hashables, max_size=4),
        st.dictionaries(any_text, inner, max_size=4),
        dicts,
        dicts.map(OrderedDict),
        dicts.map(lambda items: defaultdict(list, items)),
        st.builds(Line, any_text, inner),
        st.builds(Pair, inner, inner),
        st.builds(lambda inner, secret: with_secret(Model(name="m", inner=inner), secret), inner, inner),
        st.builds(lambda content, extra: AIMessage(content, id="1", additional_kwargs=extra), any_text, dicts),
        st.builds(lambda text: Email(text), any_text),
    )


def with_secret(model: Model, secret: Any) -> Model:
    model._secret = secret
    return model


anything = st.recursive(scalars, containers_of, max_leaves=12)
CODEC = make_codec()


@given(anything)
@settings(max_examples=400, deadline=None)
def test_any_storable_value_comes_back_the_same(value):
    found = CODEC.decode(CODEC.encode(value))

    assert_same(found, value)


@given(anything)
@settings(max_examples=200, deadline=None)
def test_both_ways_of_writing_give_the_same_bytes(value):
    carefully = CarefulWriter(CODEC.registry).write(value)

    assert CODEC.encode(value)[1:] == carefully


@given(anything)
@settings(max_examples=200, deadline=None)
def test_what_comes_back_has_the_same_digest(value):
    found = CODEC.decode(CODEC.encode(value))

    assert CODEC.digest(found) == CODEC.digest(value)


# --- what reading does not do -----------------------------------------------------------------------------------------


def test_reading_runs_no_constructor_and_no_validator():
    calls = []

    @dataclass
    class Loud:
        x: int

        def __post_init__(self) -> None:
            calls.append("post_init")

    class Strict(pydantic.BaseModel):
        x: int

        @pydantic.field_validator("x")
        @classmethod
        def check(cls, x: int) -> int:
            calls.append("validator")
            return x

    registry = Registry()
    registry.add(Loud)
    registry.add(Strict)
    codec = Codec(registry)
    data = codec.encode([Loud(1), Strict(x=1)])
    calls.clear()

    found = codec.decode(data)

    assert found == [Loud(1), Strict(x=1)]
    assert calls == ["post_init", "validator"]  # from the line above


def test_what_a_dataclass_caches_is_computed_again(codec):
    value = Derived(4)
    assert value.triple == 12

    found = codec.decode(codec.encode(value))

    assert "triple" not in vars(found)
    assert found.triple == 12


def test_attributes_of_a_registered_subclass_come_back(codec):
    email = Email("a@b")
    email.checked = {"by": ("Ada",)}  # type: ignore[attr-defined]

    found = codec.decode(codec.encode(email))

    assert_same(found, email)
    assert found.checked == {"by": ("Ada",)}


# --- LangChain, without LangChain -------------------------------------------------------------------------------------


def lookalike_of_langchain() -> types.ModuleType:
    """A module with the classes that the codec knows, as LangChain makes them: pydantic models that allow extras."""

    class BaseMessage(pydantic.BaseModel, extra="allow"):
        content: str | list[Any]
        additional_kwargs: dict[str, Any] = pydantic.Field(default_factory=dict)
        type: str
        id: str | None = None

    class HumanMessage(BaseMessage):
        type: Literal["human"] = "human"

    class AIMessage(BaseMessage):
        type: Literal["ai"] = "ai"
        tool_calls: list[dict[str, Any]] = pydantic.Field(default_factory=list)

    module = types.ModuleType("langchain_core.messages")
    for cls in (BaseMessage, HumanMessage, AIMessage):
        cls.__module__ = module.__name__
        setattr(module, cls.__name__, cls)
    return module


def test_langchain_messages_come_back_as_langchain_messages(monkeypatch, codec):
    langchain = lookalike_of_langchain()
    monkeypatch.setitem(sys.modules, "langchain_core.messages", langchain)
    messages = [
        langchain.HumanMessage(content="hi", custom={"a": (1,)}),
        langchain.AIMessage(content="x", id="1", tool_calls=[{"name": "f"}], additional_kwargs={"k": {1}}),
    ]

    found = codec.decode(codec.encode(messages))

    assert_same(found, messages)


def test_langchain_message_with_a_field_that_a_release_dropped_keeps_it_as_an_extra(monkeypatch, codec):
    older, newer = lookalike_of_langchain(), lookalike_of_langchain()

    class HumanMessage(older.BaseMessage):
        type: Literal["human"] = "human"
        example: bool = False

    older.HumanMessage = HumanMessage
    monkeypatch.setitem(sys.modules, "langchain_core.messages", older)
    data = codec.encode([HumanMessage(content="a"), HumanMessage(content="b", example=True)])

    monkeypatch.setitem(sys.modules, "langchain_core.messages", newer)
    plain, marked = codec.decode(data)

    assert plain == newer.HumanMessage(content="a")
    assert marked == newer.HumanMessage(content="b", example=True)
