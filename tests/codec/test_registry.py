"""Which classes may be stored, under which names, how they change over time, and what a digest sees."""

from __future__ import annotations

import enum
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar
from uuid import uuid4

import pydantic
import pytest

from bide.codec import Codec, Registry, checkpointable, types_in
from bide.errors import CodecError, UnknownTypeError
from bide.messages import AIMessage, HumanMessage, Message

if TYPE_CHECKING:
    from decimal import Decimal as ForTypeCheckersOnly


@dataclass
class Bound:
    pass


T = TypeVar("T", bound=Bound)


class Colour(enum.Enum):
    RED = 1


class Size(enum.Enum):
    BIG = 1


class Point(NamedTuple):
    colour: Colour


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Tree:
    children: list[Tree]
    parent: Tree | None = None
    point: Point | None = None


class Inner(pydantic.BaseModel):
    size: Size


class Outer(pydantic.BaseModel):
    inner: Inner | None = None
    by_name: dict[str, Inner] = {}


@dataclass
class Unresolvable:
    first: ForTypeCheckersOnly
    second: Tree


class State(TypedDict, total=False):
    tree: Annotated[list[Tree], "a reducer"]
    outer: Optional[Outer]  # noqa: UP045 - the old spelling has to work too
    handler: Callable[[Bound], None]


Alias = NewType("Alias", Tree)


# --- types_in ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        (int, []),
        (list[str] | None, []),
        (Any, []),
        ("Tree", []),
        (Tree, [Tree, Point, Colour]),
        (dict[str, tuple[Tree, ...]], [Tree, Point, Colour]),
        (Annotated[Point, Size], [Point, Colour]),
        (Box[Tree], [Box, Bound, Tree, Point, Colour]),
        (Literal[Colour.RED, "x"], [Colour]),
        (Outer, [Outer, Inner, Size]),
        (type[Tree] | Size, [Tree, Point, Colour, Size]),
        (Alias, [Tree, Point, Colour]),
        (State, [Tree, Point, Colour, Outer, Inner, Size, Bound]),
        (Unresolvable, [Unresolvable, Tree, Point, Colour]),
        (list[HumanMessage], [HumanMessage]),
    ],
)
def test_every_class_of_an_annotation_is_found_once(annotation, found):
    assert list(types_in(annotation)) == found


def test_base_class_of_enums_is_no_type_to_store():
    assert list(types_in(enum.Enum)) == []


def test_values_of_a_schema_can_be_stored_once_its_types_are_added():
    registry = Registry()
    value = {"tree": [Tree([], point=Point(Colour.RED))], "outer": Outer(inner=Inner(size=Size.BIG))}

    registry.add_types_in(State)

    assert Codec(registry).decode(Codec(registry).encode(value)) == value


def test_messages_need_no_names_so_those_of_two_libraries_do_not_collide():
    theirs = type("HumanMessage", (pydantic.BaseModel,), {"__module__": "langchain_core.messages.human"})
    registry = Registry()

    registry.add_types_in(HumanMessage | AIMessage | Message)
    registry.add_types_in(theirs)

    assert registry.named("HumanMessage") is None


def test_dataclass_over_an_exception_is_passed_over_because_it_has_hidden_state():
    failure = make_dataclass("Failure", [("x", int)], bases=(Exception,))
    registry = Registry()

    registry.add_types_in(failure)

    assert registry.of(failure) is None
    with pytest.raises(CodecError, match="Failure"):
        registry.add(failure)


# --- names ------------------------------------------------------------------------------------------------------------


def test_name_is_the_class_name_without_its_module():
    registry = Registry()

    registry.add(Tree)

    assert registry.named("Tree").cls is Tree
    assert b"Tree" in Codec(registry).encode(Tree([]))
    assert __name__.encode() not in Codec(registry).encode(Tree([]))


def test_adding_a_class_again_changes_nothing():
    registry = Registry()

    registry.add(Tree)
    first = registry.named("Tree")
    registry.add(Tree)
    registry.add(Tree, "Tree")

    assert registry.named("Tree") is first


def tree_of_another_module() -> type:
    other = make_dataclass("Tree", ["x"])
    other.__module__ = "elsewhere"
    return other


def test_name_that_is_taken_is_refused_with_the_way_out():
    other = tree_of_another_module()
    registry = Registry()
    registry.add(Tree)

    with pytest.raises(CodecError, match=r"'Tree' is taken by .*Tree.*@checkpointable"):
        registry.add(other)


def test_name_that_is_taken_in_a_parent_is_refused():
    parent = Registry()
    parent.add(Tree)

    with pytest.raises(CodecError, match="is taken"):
        Registry(parent).add(tree_of_another_module())


def test_two_registries_side_by_side_may_use_one_name():
    one, other = make_dataclass("Same", ["x"]), make_dataclass("Same", ["x"])
    left, right = Registry(), Registry()

    left.add(one)
    right.add(other)
    data = Codec(left).encode(one(1))

    assert type(Codec(left).decode(data)) is one
    assert type(Codec(right).decode(data)) is other


def test_class_is_found_in_the_parent():
    parent = Registry()
    parent.add(Tree)
    codec = Codec(Registry(parent))

    assert codec.decode(codec.encode(Tree([]))) == Tree([])


def test_further_name_can_be_read_and_the_first_is_written():
    old, new = Registry(), Registry()
    old.add(make_dataclass("OldTree", ["children", "parent", "point"]))
    stored = Codec(old).encode(old.named("OldTree").cls([], None, None))

    new.add(Tree)
    new.add(Tree, "OldTree")

    assert Codec(new).decode(stored) == Tree([])
    assert b"OldTree" not in Codec(new).encode(Tree([]))


@pytest.mark.parametrize("name", ["", "a\nb", "\ud800", "x" * 201, 5])
def test_unusable_name_is_refused(name):
    with pytest.raises(CodecError, match="cannot be used"):
        Registry().add(Tree, name)


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0])
def test_unusable_version_is_refused(version):
    with pytest.raises(CodecError, match="cannot be used"):
        Registry().add(Tree, version=version)


@pytest.mark.parametrize("cls", [object, threading.Thread, int, type("Plain", (), {})])
def test_class_of_no_known_kind_is_refused(cls):
    with pytest.raises(CodecError, match="Make it a dataclass"):
        Registry().add(cls)


def test_decorator_on_the_wrong_side_of_dataclass_says_so():
    with pytest.raises(CodecError, match="@checkpointable goes above @dataclass"):

        @dataclass
        @checkpointable(f"test.{uuid4()}")
        class Wrong:
            x: int


def test_decorated_class_is_known_to_every_codec_under_its_name():
    name = f"test.{uuid4()}"

    @checkpointable(name)
    @dataclass(slots=True)
    class Decorated:
        x: int

    registry = Registry()
    registry.add_types_in(Decorated)

    assert registry.named("Decorated") is None
    assert Codec().decode(Codec(registry).encode(Decorated(1))) == Decorated(1)
    assert name.encode() in Codec(registry).encode(Decorated(1))


# --- change over time -------------------------------------------------------------------------------------------------


def stored_and_new(old: type, new: type, value: Any, **options: Any) -> tuple[bytes, Codec]:
    """The bytes of a value of an old class, and a codec that knows the new class under the same name."""
    name = f"test.{uuid4()}"
    before = Registry()
    before.add(old, name)
    checkpointable(name, **options)(new)
    return Codec(before).encode(value), Codec()


def test_new_field_with_a_default_is_filled_in():
    old = make_dataclass("Old", ["x"])
    new = make_dataclass("New", ["x", ("y", int, 5), ("z", list, field(default_factory=list))])

    data, codec = stored_and_new(old, new, old(1))

    assert codec.decode(data) == new(1, 5, [])


@pytest.mark.parametrize(
    ("fields", "told"),
    [(["x", "y"], r"'New' has a new field 'y' without a default"), ([], r"'New' has no field 'x' any more")],
)
def test_fields_that_do_not_fit_name_the_type_the_field_and_the_way_out(fields, told):
    old, new = make_dataclass("Old", ["x"]), make_dataclass("New", fields)

    data, codec = stored_and_new(old, new, old(1))

    with pytest.raises(CodecError, match=rf"state\['x'\].*{told}.*version=2, upcast="):
        codec.decode(data, "state['x']")


def test_named_tuples_and_models_follow_the_same_rules():
    old_tuple, new_tuple = NamedTuple("A", [("x", int)]), NamedTuple("B", [("x", int), ("y", int)])
    old_model, new_model = pydantic.create_model("A", x=int), pydantic.create_model("B", x=int, y=(int, 3), z=int)

    for old, new, missing in [(old_tuple, new_tuple, "y"), (old_model, new_model, "z")]:
        data, codec = stored_and_new(old, new, old(x=1))
        with pytest.raises(CodecError, match=f"new field '{missing}' without a default"):
            codec.decode(data)


def test_new_field_of_a_model_gets_its_default():
    old, new = pydantic.create_model("A", x=int), pydantic.create_model("B", x=int, y=(int, 3))

    data, codec = stored_and_new(old, new, old(x=1))

    assert codec.decode(data) == new(x=1)


def test_upcasts_run_one_after_the_other():
    old, new = make_dataclass("Old", ["euros"]), make_dataclass("New", ["cents", "currency"])
    upcast = {
        1: lambda fields: {"cents": fields["euros"] * 100},
        2: lambda fields: {**fields, "currency": "EUR"},
    }

    data, codec = stored_and_new(old, new, old(3), version=3, upcast=upcast)

    assert codec.decode(data) == new(300, "EUR")


def test_missing_upcast_names_the_step():
    old, new = make_dataclass("Old", ["x"]), make_dataclass("New", ["x"])

    data, codec = stored_and_new(old, new, old(3), version=3, upcast={1: dict})

    with pytest.raises(CodecError, match="how version 2 becomes 3"):
        codec.decode(data)


@pytest.mark.parametrize(
    ("upcast", "told"), [(lambda fields: fields["nope"], "KeyError"), (lambda fields: None, "returned None")]
)
def test_upcast_that_fails_is_named(upcast, told):
    old, new = make_dataclass("Old", ["x"]), make_dataclass("New", ["x"])

    data, codec = stored_and_new(old, new, old(3), version=2, upcast={1: upcast})

    with pytest.raises(CodecError, match=rf"upcast\[1\].*{told}"):
        codec.decode(data)


def test_value_from_newer_code_is_refused():
    name = f"test.{uuid4()}"
    newer, older = Registry(), Registry()
    newer.add(Tree, name, version=2)
    older.add(Tree, name)

    with pytest.raises(CodecError, match="written by newer code"):
        Codec(older).decode(Codec(newer).encode(Tree([])))


def test_enum_member_keeps_its_meaning_when_values_shift():
    old = enum.Enum("Old", ["LOW", "HIGH"])
    new = enum.Enum("New", ["LOW", "MIDDLE", "HIGH"])

    data, codec = stored_and_new(old, new, old.HIGH)

    assert codec.decode(data) is new.HIGH


def test_enum_member_that_is_gone_is_named_and_an_upcast_mends_it():
    old, new = enum.Enum("Old", ["LOW"]), enum.Enum("New", ["SMALL"])

    data, codec = stored_and_new(old, new, old.LOW)
    with pytest.raises(CodecError, match="no member 'LOW' any more"):
        codec.decode(data)

    data, codec = stored_and_new(old, new, old.LOW, version=2, upcast={1: lambda fields: {"member": "SMALL"}})
    assert codec.decode(data) is new.SMALL


def test_unknown_name_says_how_to_register_it():
    registry = Registry()
    registry.add(Tree)

    with pytest.raises(UnknownTypeError, match=r"'Tree' is not registered.*@checkpointable\('Tree'\)"):
        Codec().decode(Codec(registry).encode(Tree([])))


# --- digest -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"x": {"a": 1, "b": 2}}, {"x": {"b": 2, "a": 1}}),
        ({1: "a", 2: "b"}, {2: "b", 1: "a"}),
        ({"a", "b", "c", "d"}, {"d", "c", "b", "a"}),
        ({frozenset({8, 16}), frozenset({16, 8, 0})}, {frozenset({0, 8, 16}), frozenset({16, 8})}),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        ([print, Tree], [len, Bound]),
        (lambda: 1, lambda: 2),
    ],
)
def test_digest_is_the_same_for(one, other):
    assert Codec().digest(one) == Codec().digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        (1, "1"),
        (1, 1.0),
        ("a", b"a"),
        ([1, 2], [2, 1]),
        ([1], (1,)),
        ({1}, frozenset({1})),
        ({"a": 1}, {"a": 2}),
        ({1: 2}, {"1": 2}),
        ({"a": 1}, [("a", 1)]),
        ({1}, {b"\x01"}),
        (print, threading.Lock()),
        ([print, 1], [print, 2]),
        ({print: 1, len: 2}, {print: 1}),
    ],
)
def test_digest_differs_for(one, other):
    assert Codec().digest(one) != Codec().digest(other)


def test_digest_is_short_hex_and_does_not_change_between_processes():
    program = "from bide.codec import Codec; print(Codec().digest([{'a', 'b', 'c'}, {'x': 1, 'y': (2.5, None)}]))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(path for path in sys.path if path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert runs == {Codec().digest([{"c", "b", "a"}, {"y": (2.5, None), "x": 1}])}
    assert len(runs.pop()) == 32


def test_digest_of_a_value_without_end_counts_its_type():
    endless: list[Any] = []
    endless += [endless, endless]

    assert Codec().digest(endless) == Codec().digest([endless])


def test_digest_of_nested_sets_takes_no_longer_than_their_size():
    deep: frozenset[Any] = frozenset()
    for _ in range(90):
        deep = frozenset({deep})

    assert Codec().digest(deep) != Codec().digest(frozenset({deep}))


# --- imports ----------------------------------------------------------------------------------------------------------


def test_codec_loads_neither_pydantic_nor_langchain():
    program = "import sys, bide.codec; print([m for m in sys.modules if m.startswith(('pydantic', 'langchain'))])"

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        capture_output=True,
        check=True,
        text=True,
    )

    assert done.stdout.strip() == "[]"
