"""Stored bytes are data: whatever they say, reading gives a value or a typed error, and nothing else happens."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from importlib import import_module
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import ormsgpack
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.codec import Codec, Registry
from bide.errors import CodecError, CorruptDataError, UnknownTypeError
from bide.messages import AIMessage

V = b"\x01"


class Colour(Enum):
    RED = 1


class Point(NamedTuple):
    x: int


@dataclass(frozen=True)
class Order:
    total: int
    lines: tuple[Any, ...] = ()


class Model(pydantic.BaseModel):
    x: Any = None


REGISTRY = Registry()
for registered in (Colour, Point, Order, Model):
    REGISTRY.add(registered)
CODEC = Codec(REGISTRY)

SAMPLE = CODEC.encode(
    {
        "orders": [Order(1, (1, "a")), Order(2)],
        "when": datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        "keys": {1: {2.5, None}, UUID(int=1): Colour.RED},
        "model": Model(x=Point(1)),
        "messages": [AIMessage("hi", tool_calls=[{"name": "f"}])],
    }
)


def ext(code: int, payload: bytes) -> bytes:
    """The bytes of an extension value, of any length."""
    return ormsgpack.packb(ormsgpack.Ext(code, payload))


def read_or_refuse(data: bytes) -> Any:
    """Read, and return the value or the error; any other error than reading may raise fails the test."""
    try:
        return CODEC.decode(data, "state['x']")
    except CodecError as error:
        return error


def check_harmless(found: Any) -> None:
    """Fail unless this is an error that says where it is, or a whole value that could be written again."""
    if isinstance(found, CodecError):
        assert "state['x']" in str(found)
    else:
        assert CODEC.encode(found)


# --- damage -----------------------------------------------------------------------------------------------------------


def test_no_bytes_are_refused():
    with pytest.raises(CorruptDataError, match=r"state\['x'\]: there are no bytes"):
        CODEC.decode(b"", "state['x']")


@pytest.mark.parametrize("version", [0, 2, 3, 0x80, 0xFF])
def test_unknown_version_is_refused(version):
    with pytest.raises(CorruptDataError, match=rf"state\['x'\].*version {version}"):
        CODEC.decode(bytes([version]) + SAMPLE[1:], "state['x']")


def test_something_that_is_not_bytes_is_refused():
    with pytest.raises(CorruptDataError, match="NoneType"):
        CODEC.decode(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview])
def test_bytes_are_read_in_whatever_way_a_driver_hands_them_over(convert):
    assert CODEC.decode(convert(CODEC.encode([1, (2,)]))) == [1, (2,)]


def test_every_truncation_is_refused():
    kept = [end for end in range(len(SAMPLE)) if not isinstance(read_or_refuse(SAMPLE[:end]), CorruptDataError)]

    assert kept == []


@given(st.binary(min_size=1, max_size=8))
@settings(deadline=None)
def test_bytes_after_the_value_are_refused(more):
    with pytest.raises(CorruptDataError):
        CODEC.decode(SAMPLE + more)


def test_bytes_after_an_inner_value_are_refused():
    inner = CODEC.encode((1, 2))[1:]
    assert inner == ext(2, b"t\x92\x01\x02")

    with pytest.raises(CorruptDataError, match="ends before its bytes do"):
        CODEC.decode(V + ext(2, b"t\x92\x01\x02\x03"))


@given(st.integers(1, len(SAMPLE) - 1), st.integers(0, 255))
@settings(max_examples=2000, deadline=None)
def test_changed_byte_gives_a_value_or_a_typed_error(position, byte):
    damaged = SAMPLE[:position] + bytes([byte]) + SAMPLE[position + 1 :]

    found = read_or_refuse(damaged)

    check_harmless(found)


@given(st.binary(max_size=200))
@settings(max_examples=1000, deadline=None)
def test_noise_gives_a_value_or_a_typed_error(noise):
    found = read_or_refuse(V + noise)

    check_harmless(found)


@given(st.integers(0, 8), st.binary(max_size=60))
@settings(max_examples=2000, deadline=None)
def test_noise_in_an_extension_gives_a_value_or_a_typed_error(code, noise):
    found = read_or_refuse(V + ext(code, noise))

    check_harmless(found)


@pytest.mark.parametrize("code", [*range(9, 128), 0])
def test_unknown_extension_is_refused(code):
    with pytest.raises(CorruptDataError, match=f"no extension type {code}"):
        CODEC.decode(V + ext(code, b"\x90"))


@pytest.mark.parametrize("code", [-1, -128])
def test_extension_that_messagepack_reserves_is_refused(code):
    data = V + b"\xd4" + code.to_bytes(1, "big", signed=True) + b"\x00"

    with pytest.raises(CorruptDataError):
        CODEC.decode(data)


# --- bombs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\xdd\x7f\xff\xff\xff" * 900,
        ext(2, b"t\xdd\xff\xff\xff\xff"),
        ext(1, b"T\xdd\xff\xff\xff\xff"),
        b"\x91" * 1_000_000,
        b"\x81\xa1a" * 100_000,
    ],
    ids=["array", "map", "text", "bytes", "extension", "arrays", "tuple", "timedelta", "deep lists", "deep maps"],
)
def test_length_that_is_not_there_costs_no_memory(data):
    tracemalloc.start()
    try:
        with pytest.raises(CorruptDataError):
            CODEC.decode(V + data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * len(data) + 1_000_000


def nested(levels: int, around: bytes) -> bytes:
    """Tuples in tuples, with so many opened lists between each two."""
    data = b"\x90"
    for _ in range(levels):
        data = ext(2, b"t\x91" + around + data)
    return V + data


@pytest.mark.parametrize("levels", [101, 1_000])
@pytest.mark.parametrize("lists", [0, 900])
def test_typed_values_that_nest_too_deep_are_refused(levels, lists):
    with pytest.raises(CorruptDataError, match="nest deeper than 100"):
        CODEC.decode(nested(levels, b"\x91" * lists))


def test_typed_values_between_deep_lists_are_read_without_recursion_into_them():
    found = CODEC.decode(nested(100, b"\x91" * 900))

    assert type(found) is tuple


def test_memory_does_not_multiply_with_depth():
    data = b"\xc6" + (1_000_000).to_bytes(4, "big") + b"x" * 1_000_000
    for _ in range(50):
        data = ext(2, b"t\x91" + data)

    tracemalloc.start()
    try:
        found = CODEC.decode(V + data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert type(found) is tuple
    assert peak < 8_000_000


# --- lies about types -------------------------------------------------------------------------------------------------


def registered_value(code: int, *parts: Any) -> bytes:
    """The bytes of a value of a registered class."""
    return V + ext(code, ormsgpack.packb(list(parts)))


@pytest.mark.parametrize("code", [3, 4, 5, 7, 8])
def test_name_that_nobody_registered_is_refused_and_named(code):
    with pytest.raises(UnknownTypeError, match=r"state\['x'\].*'os\.system'.*@checkpointable\('os\.system'\)"):
        CODEC.decode(registered_value(code, "os.system", 1, {"x": 1}), "state['x']")


@pytest.mark.parametrize("code", [3, 5, 7, 8])
def test_registered_name_under_another_kind_is_refused(code):
    with pytest.raises(CodecError, match="another kind of class"):
        CODEC.decode(registered_value(code, "Order", 1, {"total": 1}))


@pytest.mark.parametrize(
    "parts",
    [
        [],
        ["Order"],
        ["Order", 1],
        ["Order", 1, []],
        ["Order", "1", {}],
        ["Order", None, {"total": 1}],
        [["Order"], 1, {"total": 1}],
        [1, 1, {"total": 1}],
    ],
)
def test_class_without_its_parts_is_refused(parts):
    with pytest.raises(CodecError):
        CODEC.decode(registered_value(4, *parts))


@pytest.mark.parametrize("name", ["RED2", "__class__", "name", "mro", "", None, 1])
def test_enum_member_is_looked_up_among_members_only(name):
    with pytest.raises(CodecError):
        CODEC.decode(registered_value(3, "Colour", 1, {"member": name}))


@pytest.mark.parametrize("field", ["__class__", "__dict__", "__init__", "__reduce__"])
def test_field_that_is_no_field_cannot_be_set(field):
    with pytest.raises(CodecError, match=field):
        CODEC.decode(registered_value(4, "Order", 1, {"total": 1, "lines": [], field: 1}))


@pytest.mark.parametrize(
    "zone", ["../../../etc/passwd", "/etc/passwd", "os", "Europe", "Europe/../os", "", "\x00", "Nowhere/City"]
)
def test_time_zone_is_looked_up_among_known_zones_only(zone):
    payload = b"D" + ormsgpack.packb(["2026-01-01T00:00:00", 0, zone])

    with pytest.raises(CodecError, match="time zone"):
        CODEC.decode(V + ext(1, payload))


@pytest.mark.parametrize(
    "payload",
    [
        b"s\x92\x01\xc3",  # a set of 1 and True
        b"s\x91\x90",  # a set of a list
        b"m\x91\x01",  # a key without a value
        b"m\x94\x01\x01\xc3\x01",  # the keys 1 and True
        b"m\x92\x90\x01",  # a list as key
        b"q\x93\x01\x01\x02",  # two elements in a deque for one
        b"q\x90",
        b"d\x91\xa4eval",  # a defaultdict of a function
        b"d\x91\x90",
        b"t\x01",
        b"t\x80",
        b"?\x90",
        b"",
    ],
)
def test_container_that_nobody_wrote_is_refused(payload):
    with pytest.raises(CorruptDataError):
        CODEC.decode(V + ext(2, payload))


@pytest.mark.parametrize(
    "payload",
    [b"", b"?", b"u123", b"c123", b"nabc", b"q1/0", b"q1", b"r1/2/0", b"rzz", b"d2026-13-01", b"D\x90", b"T\x90", b"t"],
)
def test_scalar_that_nobody_wrote_is_refused(payload):
    with pytest.raises(CorruptDataError):
        CODEC.decode(V + ext(1, payload))


@pytest.mark.parametrize(
    "parts",
    [[], ["bide"], ["bide", "human"], ["bide", "oops", {}], ["os", "human", {}], ["bide", [], {}], ["bide", "ai", 1]],
)
def test_message_that_nobody_wrote_is_refused(parts):
    with pytest.raises(CodecError):
        CODEC.decode(V + ext(6, ormsgpack.packb(parts)))


def test_langchain_message_without_langchain_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core", None)
    monkeypatch.setitem(sys.modules, "langchain_core.messages", None)
    data = V + ext(6, ormsgpack.packb(["langchain", "human", {"content": "hi"}, [], {}, None]))

    with pytest.raises(UnknownTypeError, match=r"state\['x'\].*pip install langchain-core"):
        CODEC.decode(data, "state['x']")


# --- nothing else happens ---------------------------------------------------------------------------------------------

_FORBIDDEN = (
    *("import", "exec", "compile", "code.__new__", "function.__new__", "pickle", "marshal", "ctypes", "socket"),
    *("subprocess", "os.system", "os.exec", "os.fork", "os.spawn", "os.posix_spawn", "os.startfile"),
)
_watching: list[list[str]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event.startswith(_FORBIDDEN):
        _watching[-1].append(f"{event} {arguments[:1]}")


sys.addaudithook(_note)  # it cannot be removed again, so it looks only while a test asks it to


class ImportWatch:
    """Notes every search for a module: `importlib.import_module` raises no audit event until the module is found."""

    def __init__(self, happened: list[str]) -> None:
        self._happened = happened

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        self._happened.append(f"find_spec ('{name}',)")


@contextmanager
def what_happens() -> Iterator[list[str]]:
    happened: list[str] = []
    watch = ImportWatch(happened)
    sys.meta_path.insert(0, watch)  # type: ignore[arg-type]
    _watching.append(happened)
    try:
        yield happened
    finally:
        _watching.pop()
        sys.meta_path.remove(watch)  # type: ignore[arg-type]


def test_the_watch_sees_what_it_watches_for():
    with what_happens() as happened, pytest.raises(ImportError):
        import_module("no.such.module")
    with what_happens() as compiled:
        compile("1", "x", "eval")

    assert happened == ["find_spec ('no',)"]
    assert compiled[0].startswith("compile")


ATTACKS = {
    "pickle": b"cos\nsystem\n(S'true'\ntR.",
    "pickle protocol 4": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.",
    "langchain constructor": ormsgpack.packb({"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}),
    "langgraph constructor": ormsgpack.packb({"lc": 2, "type": "constructor", "id": ["os"], "args": ["true"]}),
    "import and call": ormsgpack.packb(["os", "system", ["true"]]),
    "import and call with a method": ormsgpack.packb(["builtins", "eval", ["1"], {}, "__call__"]),
    "registered kind with a module path": ormsgpack.packb(["os.system", 1, {"command": "true"}]),
    "time zone as a module": b"D" + ormsgpack.packb(["2026-01-01T00:00:00", 0, "tzdata/os"]),
    "defaultdict of eval": b"d" + ormsgpack.packb(["eval", "1", "2"]),
    "path": b"pp/etc/passwd",
    "noise": bytes(range(256)),
}


@pytest.mark.complaint(43)
@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_bytes_make_nothing_happen(attack):
    payload = ATTACKS[attack]
    read_or_refuse(SAMPLE)  # what a first reading loads, such as the list of time zones, is loaded now

    with what_happens() as happened:
        for data in (payload, V + payload, *(V + ext(code, payload) for code in range(128))):
            read_or_refuse(data)

    assert happened == []


def test_constructor_dicts_of_others_stay_dicts():
    attack = {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]}

    assert CODEC.decode(CODEC.encode(attack)) == attack


def test_langchain_message_makes_python_look_for_that_one_module_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core", None)
    monkeypatch.delitem(sys.modules, "langchain_core.messages", raising=False)
    data = V + ext(6, ormsgpack.packb(["langchain", "human", {"content": "hi"}, [], {}, None]))

    with what_happens() as happened:
        found = read_or_refuse(data)

    assert isinstance(found, UnknownTypeError)
    assert {event.split()[1] for event in happened} <= {"('langchain_core.messages',)", "('langchain_core',)"}
