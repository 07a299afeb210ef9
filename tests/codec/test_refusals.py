"""What would not come back equal is refused when it is written, with its path and what to do."""

from __future__ import annotations

import asyncio
import io
import re
import socket
import threading
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from enum import Enum
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pydantic
import pytest

from bide.codec import Codec, Registry
from bide.errors import CodecError, UnstorableValueError
from bide.messages import AIMessage, HumanMessage


@dataclass
class Line:
    price: Any


@dataclass
class Order:
    lines: list[Line]
    notes: Any = None


class Model(pydantic.BaseModel):
    inner: Any = None
    _private: Any = pydantic.PrivateAttr(default=None)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Stranger:
    x: int = 0


class StrangerModel(pydantic.BaseModel):
    x: int = 0


class StrangeColour(Enum):
    RED = 1


class StrangePair(NamedTuple):
    x: int


class MyStr(str):
    pass


class MyInt(int):
    pass


class MyDict(dict[str, Any]):
    pass


class MyList(list[Any]):
    pass


class OddZone(tzinfo):
    def utcoffset(self, when: datetime | None) -> timedelta:
        return timedelta(hours=1)


@pytest.fixture(name="codec")
def _codec() -> Codec:
    registry = Registry()
    for cls in (Line, Order, Model, Pair):
        registry.add(cls)
    return Codec(registry)


def refusal(codec: Codec, value: object, path: str = "value") -> UnstorableValueError:
    with pytest.raises(UnstorableValueError) as caught:
        codec.encode(value, path)
    return caught.value


async def coroutine() -> None:
    """Never awaited."""


UNSTORABLE: dict[str, Any] = {
    "function": lambda: refusal,
    "lambda": lambda: lambda: 1,
    "builtin function": lambda: len,
    "generator": lambda: (x for x in ()),
    "class": lambda: Order,
    "module": lambda: re,
    "lock": threading.Lock,
    "socket": lambda: socket.socket.__new__(socket.socket),
    "open file": io.StringIO,
    "future": lambda: asyncio.Future.__new__(asyncio.Future),
    "iterator": lambda: iter([]),
    "dict view": lambda: {}.keys(),
    "exception": lambda: ValueError("x"),
    "plain object": object,
    "ellipsis": lambda: ...,
    "slice": lambda: slice(1),
    "pattern": lambda: re.compile("x"),
    "memoryview": lambda: memoryview(b"x"),
    "memoryview of high bytes": lambda: memoryview(b"\xc4" * 300),
    "unregistered dataclass": Stranger,
    "unregistered pydantic model": StrangerModel,
    "unregistered enum": lambda: StrangeColour.RED,
    "unregistered named tuple": lambda: StrangePair(1),
    "subclass of str": lambda: MyStr("x"),
    "subclass of int": lambda: MyInt(1),
    "subclass of dict": lambda: MyDict(a=1),
    "subclass of list": lambda: MyList([1]),
    "subclass of a message": lambda: type("Mine", (HumanMessage,), {})("x"),
    "time zone of an unknown kind": lambda: datetime(2026, 1, 1, tzinfo=OddZone()),
    "zone that is not the one of its name": lambda: datetime(
        2026, 10, 25, 2, 30, tzinfo=ZoneInfo.no_cache("Europe/Berlin")
    ),
    "zone without a key": lambda: datetime(2026, 1, 1, tzinfo=zone_from_file()),
    "defaultdict with a function": lambda: defaultdict(lambda: 1),
    "secret of pydantic": lambda: pydantic.SecretStr("x"),
}


def zone_from_file() -> ZoneInfo:
    head = b"TZif" + b"\x00" * 16 + (b"\x00" * 16) + (1).to_bytes(4, "big") + (4).to_bytes(4, "big")
    return ZoneInfo.from_file(io.BytesIO(head + b"\x00\x00\x00\x00\x00\x00" + b"UTC\x00"))


@pytest.mark.parametrize("kind", UNSTORABLE)
def test_value_that_would_not_come_back_is_refused(codec, kind):
    value = UNSTORABLE[kind]()

    error = refusal(codec, value, "state['x']")

    assert error.path == "state['x']"
    assert "Cannot store state['x']: " in str(error)
    assert "@checkpointable" in str(error)
    assert "UntrackedValue" in str(error)


@pytest.mark.parametrize("kind", UNSTORABLE)
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda bad: [0, bad], "state['x'][1]"),
        (lambda bad: {"k": {"l": bad}}, "state['x']['k']['l']"),
        (lambda bad: (1, (bad,)), "state['x'][1][0]"),
        (lambda bad: {1: {None: bad}}, "state['x'][1][None]"),
        (lambda bad: OrderedDict(a=bad), "state['x']['a']"),
        (lambda bad: Order([Line(1), Line(bad)]), "state['x'].lines[1].price"),
        (lambda bad: Model(inner=[Model(inner=bad)]), "state['x'].inner[0].inner"),
        (lambda bad: Pair(1, bad), "state['x'].right"),
        (lambda bad: AIMessage("x", additional_kwargs={"k": bad}), "state['x'].additional_kwargs['k']"),
    ],
)
def test_refusal_names_the_path_of_the_value(codec, kind, wrap, path):
    value = wrap(UNSTORABLE[kind]())

    error = refusal(codec, value, "state['x']")

    assert error.path == path


def test_path_of_a_price_reads_like_python(codec):
    order = Order([Line(1), Line(2), Line(3), Line(print)])

    error = refusal(codec, order, "state['order']")

    assert str(error) == (
        "Cannot store state['order'].lines[3].price: values of type 'builtin_function_or_method' cannot be stored. "
        "Make it a dataclass in the state's schema, register its class with @checkpointable('a-name'), or keep it "
        "out of state with UntrackedValue."
    )


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": 1, print: 2}, "list(value)[1]"),
        ({(1, print): 2}, "list(value)[0][1]"),
        ({print}, "list(value)[0]"),
        (frozenset({(print,)}), "list(value)[0][0]"),
    ],
)
def test_refusal_of_a_key_or_element_names_its_place(codec, value, path):
    assert refusal(codec, value).path == path


def test_private_attribute_of_a_model_is_refused_by_its_name(codec):
    model = Model()
    model._private = threading.Lock()

    assert refusal(codec, model).path == "value._private"


def test_buffer_is_found_among_other_bytes(codec):
    value = {"bytes": [b"\xc4\xc5\xc6", {"deep": [1, memoryview(b"x")]}]}

    assert refusal(codec, value).path == "value['bytes'][1]['deep'][1]"


# --- shapes that cannot be written ------------------------------------------------------------------------------------


def test_list_that_contains_itself_is_refused_where_it_does(codec):
    inner: list[Any] = []
    value = {"a": 1, "b": [2, inner]}
    inner.append(value)

    error = refusal(codec, value, "state['x']")

    assert error.path == "state['x']['b'][1][0]"
    assert "contains itself" in str(error)


def test_dataclass_that_contains_itself_is_refused_where_it_does(codec):
    order = Order([])
    order.notes = (order,)

    error = refusal(codec, order)

    assert error.path == "value.notes[0]"
    assert "contains itself" in str(error)


def test_the_same_value_twice_is_no_cycle(codec):
    line = Line(1)

    assert codec.decode(codec.encode([line, line, [line]])) == [line, line, [line]]


@pytest.mark.parametrize("depth", [256, 300, 1_000, 20_000])
@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"a": x}], ids=["lists", "dicts"])
def test_nesting_beyond_the_limit_is_refused(codec, wrap, depth):
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)

    error = refusal(codec, value, "state['x']")

    assert error.path == "state['x']"
    assert "nests too deep" in str(error)
    dismantle(value)


@pytest.mark.parametrize("depth", [101, 1_000, 20_000])
@pytest.mark.parametrize("wrap", [lambda x: (x,), Line, lambda x: {1: x}], ids=["tuples", "dataclasses", "int keys"])
def test_nesting_of_typed_values_beyond_the_limit_is_refused(codec, wrap, depth):
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)

    error = refusal(codec, value)

    assert "nests too deep" in str(error)
    dismantle(value)


@pytest.mark.parametrize("wrap", [lambda x: (x,), Line, lambda x: {1: x}], ids=["tuples", "dataclasses", "int keys"])
def test_nesting_of_typed_values_up_to_the_limit_comes_back(codec, wrap):
    value: Any = 1
    for _ in range(100):
        value = wrap(value)

    assert codec.decode(codec.encode(value)) == value


def test_too_many_of_both_are_refused(codec):
    value: Any = 1
    for _ in range(20):
        for _ in range(200):
            value = [value]
        value = {1: value}

    error = refusal(codec, value)

    assert "nests too deep" in str(error)


def test_value_that_is_too_deep_and_holds_another_twice_is_not_taken_for_a_cycle(codec):
    shared = [1]
    value: Any = shared
    for _ in range(300):
        value = [shared, shared, value]

    error = refusal(codec, value)

    assert "nests too deep" in str(error)


def dismantle(value: Any) -> None:
    """Take a deep value apart from the outside: freeing it in one go would recurse."""
    while isinstance(value, list | dict | tuple | Line):
        match value:
            case list():
                value = value.pop()
            case dict():
                value = value.popitem()[1]
            case Line():
                value.price, value = None, value.price
            case _:
                value = value[0]


# --- state that a class hides -----------------------------------------------------------------------------------------


def test_attribute_that_is_no_field_is_refused(codec):
    line = Line(1)
    line.extra = 2  # type: ignore[attr-defined]

    error = refusal(codec, [line])

    assert error.path == "value[0]"
    assert "'extra'" in str(error)


def test_field_that_was_never_set_is_refused():
    @dataclass
    class Late:
        x: int = field(init=False)

    registry = Registry()
    registry.add(Late)

    error = refusal(Codec(registry), {"late": Late()})

    assert error.path == "value['late']"
    assert "never set" in str(error)


def test_slot_of_a_base_class_is_refused_when_it_holds_something():
    class Base:
        __slots__ = ("hidden",)

    @dataclass(slots=True)
    class Child(Base):
        x: int

    registry = Registry()
    registry.add(Child)
    codec = Codec(registry)
    clean, dirty = Child(1), Child(1)
    dirty.hidden = 2

    assert codec.decode(codec.encode(clean)) == clean
    assert "'hidden'" in str(refusal(codec, dirty))


def test_attribute_on_an_ordered_dict_is_refused(codec):
    value = OrderedDict(a=1)
    value.extra = 1  # type: ignore[attr-defined]

    assert "extra" in str(refusal(codec, value))


def test_property_that_raises_is_reported_and_does_not_escape():
    @dataclass
    class Broken:
        x: int = 0

        def __getattribute__(self, name: str) -> Any:
            if name == "x":
                raise RuntimeError("broken on purpose")
            return super().__getattribute__(name)

    registry = Registry()
    registry.add(Broken)

    assert "broken on purpose" in str(refusal(Codec(registry), [Broken()]))


def test_subclass_of_a_registered_class_needs_its_own_registration(codec):
    class Special(Line):
        pass

    error = refusal(codec, Special(1))

    assert "is not registered" in str(error)


def test_instance_of_a_class_that_lost_its_name_is_refused_rather_than_read_as_another():
    @dataclass
    class Thing:
        x: int

    old = Thing
    registry = Registry()
    codec = Codec(registry)
    old.__qualname__ = "Thing"
    registry.add(old)

    @dataclass
    class Thing:  # type: ignore[no-redef]
        x: int

    Thing.__qualname__ = "Thing"  # as if a notebook cell had been run again
    registry.add(Thing)

    assert codec.decode(codec.encode(Thing(1))) == Thing(1)
    assert "another class has taken that name" in str(refusal(codec, old(1)))


def test_every_refusal_is_a_codec_error(codec):
    assert isinstance(refusal(codec, print), CodecError)
