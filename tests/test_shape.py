"""What an answer to a pause must look like: schemas of types, problems of answers, answers as types."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import os
import subprocess
import sys
import typing
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)
from uuid import UUID

import pydantic
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st

import bide.shape
from bide.errors import InterruptError, InvalidAnswerError
from bide.shape import build, json_schema, problems
from bide.shape.plain import MAX_DEPTH, to_plain

# --- the types of these tests -----------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Line:
    item: str
    price: Decimal
    colour: Colour | None = None


@dataclass
class Order:
    """What somebody buys."""

    id: UUID
    lines: list[Line]
    placed: datetime
    due: date | None = None
    at: time = time(9, 30)
    tags: frozenset[str] = frozenset()
    size: tuple[float, float] = (0.0, 0.0)
    levels: dict[str, Level] = field(default_factory=dict)
    seen: int = field(default=0, init=False)


@dataclass
class Node:
    value: int
    next: Optional[Node] = None  # noqa: UP045 - the old spelling is accepted too


class Address(TypedDict):
    street: str
    zip: NotRequired[int]
    since: Annotated[NotRequired[date], "when they moved in"]


class Patch(TypedDict, total=False):
    name: Required[str]
    age: int


class Point(NamedTuple):
    x: float
    y: float = 0.0


@dataclass
class Positive:
    amount: int

    def __post_init__(self) -> None:
        if self.amount <= 0:
            raise ValueError("amount must be above 0")


@dataclass
class Whatever:
    amount: int


class FrozenKeys(Mapping[int, str]):
    """A default that a dataclass takes and JSON does not."""

    __hash__ = object.__hash__

    def __getitem__(self, key: int) -> str:
        return "x"

    def __iter__(self) -> Iterator[int]:
        return iter([5])

    def __len__(self) -> int:
        return 1


class TypeAliasType:
    """Stands in for `type X = …`, which Python 3.11 cannot write."""

    def __init__(self, name: str):
        self.__name__ = name
        self.__value__: Any = None


LINE_SCHEMA = {
    "title": "Line",
    "type": "object",
    "properties": {
        "item": {"type": "string"},
        "price": {"$ref": "#/price"},  # filled in below, from Decimal itself
        "colour": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}], "default": None},
    },
    "required": ["item", "price"],
    "additionalProperties": False,
}
LINE_SCHEMA["properties"]["price"] = json_schema(Decimal)  # type: ignore[index]


# --- problems: keyword by keyword -------------------------------------------------------------------------------------

PAIR = {"prefixItems": [{"type": "string"}, {"type": "integer"}]}
LINKED = {
    "$ref": "#/$defs/Node",
    "$defs": {"Node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}}},
}
SLASHED = {"$ref": "#/definitions/a~1b~01%20c", "definitions": {"a/b~1 c": {"type": "null"}}}
TAGGED = {
    "anyOf": [
        {"type": "object", "properties": {"kind": {"const": "card"}, "number": {"type": "string"}}},
        {"type": "object", "properties": {"kind": {"const": "cash"}, "amount": {"type": "number"}}},
        {"type": "null"},
    ]
}
BIG_IF = {
    "if": {"properties": {"n": {"minimum": 10}}, "required": ["n"]},
    "then": {"required": ["why"]},
    "else": {"required": ["n"]},
}

KEYWORDS: list[tuple[Any, Any, Any, str]] = [
    # schema, an answer that fits, one that does not, and the sentence about it
    ({"type": "string"}, "", 5, "answer: expected a string, got 5"),
    ({"type": "number"}, 1.5, "abc", "answer: expected a number, got 'abc'"),
    ({"type": "number"}, 1, True, "answer: expected a number, got true"),
    ({"type": "number"}, 1e308, math.nan, "answer: expected a number, got nan"),
    ({"type": "integer"}, 1.0, 1.5, "answer: expected an integer, got 1.5"),
    ({"type": "integer"}, 10**400, False, "answer: expected an integer, got false"),
    ({"type": "integer"}, -3, math.inf, "answer: expected an integer, got inf"),
    ({"type": "boolean"}, False, 0, "answer: expected true or false, got 0"),
    ({"type": "object"}, {}, [], "answer: expected an object, got []"),
    ({"type": "array"}, (), {}, "answer: expected a list, got {}"),
    ({"type": "null"}, None, "", "answer: expected null, got ''"),
    ({"type": ["string", "null"]}, None, 5, "answer: expected a string or null, got 5"),
    ({"enum": ["a", 1, None]}, 1.0, True, "answer: expected one of 'a', 1, null, got true"),
    ({"enum": list(range(30))}, 29, 30, f"answer: expected one of {', '.join(map(str, range(20)))}, …, got 30"),
    ({"const": {"a": [1, 2]}}, {"a": [1.0, 2]}, {"a": [2, 1]}, "answer: expected {'a': [1, 2]}, got {'a': [2, 1]}"),
    ({"const": [False]}, [False], [0], "answer: expected [False], got [0]"),
    ({"const": {"a": 1}}, {"a": 1}, {"a": 1, "b": 2}, "answer: expected {'a': 1}, got {'a': 1, 'b': 2}"),
    ({"properties": {"a": {"type": "null"}}}, {"b": 1}, {"a": 1}, "answer.a: expected null, got 1"),
    ({"required": ["a"]}, {"a": None}, {"b": 1}, "answer.a: is missing"),
    ({"additionalProperties": False}, {}, {"b": 1}, "answer.b: is not expected here"),
    (
        {"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": False},
        {"a": 1, "x1": 2},
        {"a": 1, "ax": 2},
        "answer.ax: is not expected here; known keys are 'a'",
    ),
    ({"additionalProperties": {"type": "null"}}, {"a": None}, {"a": 1}, "answer.a: expected null, got 1"),
    ({"patternProperties": {"^x": {"type": "null"}}}, {"ax": 1}, {"x-1": 1}, "answer['x-1']: expected null, got 1"),
    (
        {"propertyNames": {"maxLength": 2}},
        {"ab": 1},
        {"abc": 1},
        "answer (key 'abc'): expected at most 2 characters, got 'abc'",
    ),
    ({"minProperties": 1}, {"a": 1}, {}, "answer: expected at least 1 keys, got {}"),
    ({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 2}, "answer: expected at most 1 keys, got {'a': 1, 'b': 2}"),
    (
        {"dependentRequired": {"card": ["cvc"]}},
        {"cvc": 1},
        {"card": 1},
        "answer.cvc: is missing; it is needed since 'card' is given",
    ),
    ({"items": {"type": "null"}}, [None], [None, 1], "answer[1]: expected null, got 1"),
    (PAIR, ["a"], ["a", "b"], "answer[1]: expected an integer, got 'b'"),
    ({**PAIR, "items": False}, ["a", 1], ["a", 1, 2], "answer[2]: nothing is allowed here, got 2"),
    ({"minItems": 2}, [1, 2], [1], "answer: expected at least 2 items, got [1]"),
    ({"maxItems": 1}, [1], [1, 2], "answer: expected at most 1 items, got [1, 2]"),
    (
        {"uniqueItems": True},
        [1, True, "1", [1], [True]],
        [{"a": 1, "b": 2}, 3, {"b": 2, "a": 1.0}],
        "answer: expected items that differ, but [0] and [2] are equal, got [{'a': 1, 'b': 2}, 3, {'a': 1.0, 'b': 2}]",
    ),
    (
        {"contains": {"type": "null"}},
        [1, None],
        [1, 2],
        "answer: expected at least one item of the shape that it must contain, got [1, 2]",
    ),
    ({"minLength": 2}, "äö", "ä", "answer: expected at least 2 characters, got 'ä'"),
    ({"maxLength": 1}, "ä", "äö", "answer: expected at most 1 characters, got 'äö'"),
    ({"pattern": "b+"}, "abc", "ac", "answer: expected a string that fits the pattern 'b+', got 'ac'"),
    ({"pattern": "^yes$"}, "yes", "yes\n", "answer: expected a string that fits the pattern '^yes$', got 'yes\\n'"),
    (
        {"pattern": r"^[$]\$[^]$]$"},
        "$$x",
        "$$$",
        r"answer: expected a string that fits the pattern '^[$]\\$[^]$]$', got '$$$'",
    ),
    ({"minimum": 2}, 2, 1.9, "answer: expected at least 2, got 1.9"),
    ({"minimum": 2}, True, math.nan, "answer: expected at least 2, got nan"),
    ({"maximum": 2}, 2, 2.1, "answer: expected at most 2, got 2.1"),
    ({"exclusiveMinimum": 2}, 2.1, 2, "answer: expected more than 2, got 2"),
    ({"exclusiveMaximum": 2}, 1.9, 2, "answer: expected less than 2, got 2"),
    ({"multipleOf": 0.1}, 0.3, 0.35, "answer: expected a multiple of 0.1, got 0.35"),
    ({"multipleOf": 3}, 3 * 10**400, math.inf, "answer: expected a multiple of 3, got inf"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, "x", "answer: expected an integer or null, got 'x'"),
    (
        TAGGED,
        {"kind": "cash", "amount": 5},
        {"kind": "cash", "amount": "5"},
        "answer.amount: expected a number, got '5'",
    ),
    (
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"b": 1},
        {},
        "answer: fits none of the 2 allowed shapes (1. answer.a: is missing; 2. answer.b: is missing)",
    ),
    ({"oneOf": [{"type": "integer", "minimum": 5}, {"type": "null"}]}, None, 1, "answer: expected at least 5, got 1"),
    (
        {"oneOf": [{"minimum": 5}, {"maximum": 7}]},
        9,
        6,
        "answer: expected exactly one of the allowed shapes to fit, but 2 do, got 6",
    ),
    (
        {"items": TAGGED},
        [{"kind": "card", "number": "1"}],
        [{"kind": "card", "number": 1}],
        "answer[0].number: expected a string, got 1",
    ),
    (
        {"anyOf": [{"minimum": 5}, {"multipleOf": 4}]},
        4,
        3,
        "answer: fits none of the 2 allowed shapes "
        "(1. answer: expected at least 5, got 3; 2. answer: expected a multiple of 4, got 3)",
    ),
    ({"allOf": [{"minimum": 5}, {"maximum": 7}]}, 6, 8, "answer: expected at most 7, got 8"),
    ({"not": {"type": "null"}}, 1, None, "answer: has a shape that is not allowed, got null"),
    (BIG_IF, {"n": 10, "why": "x"}, {"n": 10}, "answer.why: is missing"),
    (BIG_IF, {"n": 1}, {}, "answer.n: is missing"),
    ({"if": {"minimum": 5}, "then": {"type": "integer"}}, 1.5, 5.5, "answer: expected an integer, got 5.5"),
    ({"if": {"minimum": 5}, "else": {"type": "integer"}}, 5.5, 1.5, "answer: expected an integer, got 1.5"),
    (
        LINKED,
        {"v": 1, "next": {"v": 2}},
        {"next": {"next": {"v": "x"}}},
        "answer.next.next.v: expected an integer, got 'x'",
    ),
    (SLASHED, None, 1, "answer: expected null, got 1"),
    ({"items": {"$ref": "#/$defs/No"}, "$defs": {"No": False}}, [], [1], "answer[0]: nothing is allowed here, got 1"),
    ({"properties": {"a": True, "b": False}}, {"a": 1}, {"b": 1}, "answer.b: nothing is allowed here, got 1"),
]


@pytest.mark.parametrize(("schema", "fitting", "failing", "sentence"), KEYWORDS)
def test_every_keyword_lets_the_fitting_answer_pass_and_says_what_is_wrong_with_the_other(
    schema: Any, fitting: Any, failing: Any, sentence: str
) -> None:
    assert problems(fitting, schema) == []
    assert problems(failing, schema) == [sentence]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": False}, "required": ["a"], "additionalProperties": False, "propertyNames": False},
        {"patternProperties": {"": False}, "minProperties": 9, "maxProperties": 0, "dependentRequired": {"a": ["b"]}},
        {"items": False, "prefixItems": [False], "contains": False, "minItems": 9, "maxItems": 0, "uniqueItems": True},
        {"minLength": 9, "maxLength": 0, "pattern": "x", "format": "date"},
    ],
)
def test_keywords_about_another_kind_of_value_say_nothing(schema: dict[str, Any]) -> None:
    assert problems(5, schema) == []


def test_numeric_keywords_say_nothing_about_strings_and_booleans() -> None:
    schema = {"minimum": 9, "maximum": 0, "exclusiveMinimum": 9, "exclusiveMaximum": 0, "multipleOf": 7}

    assert problems("x", schema) == []
    assert problems(True, schema) == []


FORMATS = [
    ("date-time", ["2026-01-31T09:30:00Z", "2026-01-31t09:30:00.25+02:00", "2026-01-31T09:30", "2024-02-29 00:00:00z"]),
    ("date", ["2026-01-31", "2024-02-29"]),
    ("time", ["09:30", "09:30:59", "09:30:59.123456Z", "23:59:59-05:30"]),
    ("uuid", ["12345678-1234-5678-1234-567812345678", "ABCDEF00-1234-5678-1234-567812345678"]),
    ("email", ["a@b.org", "x.y+z@localhost", "jürgen@exämple.org"]),
    ("uri", ["https://example.org/a?b=c%20d#e", "urn:isbn:1", "http://[::1]:80/", "mailto:a@b.c"]),
]
NOT_FORMATS = [
    (
        "date-time",
        ["2026-01-31", "2026-02-30T09:30:00Z", "2026-01-31T25:00:00Z", "20260131T093000Z", "2026-01-31T09:30:00Z\n"],
    ),
    ("date", ["2026-02-29", "20260131", "2026-W05-6", "٢٠٢٦-01-31", "2026-1-31", ""]),
    ("time", ["9:30", "24:30", "09:30:61", "T09:30", "09:30+25:00"]),
    ("uuid", ["12345678123456781234567812345678", "{12345678-1234-5678-1234-567812345678}", "g" * 36]),
    ("email", ["a", "@b.org", "a@", "a@b@c", "a b@c.org", "a@b..c", "a@b.c\n"]),
    (
        "uri",
        [
            "example.org/a",
            "//x/y",
            "http://a b",
            "http://[zz]/",
            "http://x/%zz",
            "http://x/[1]",
            "1http://x",
            "http://x\n",
        ],
    ),
]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FORMATS for text in texts])
def test_a_string_of_the_format_fits(name: str, text: str) -> None:
    assert problems(text, {"format": name}) == []


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in NOT_FORMATS for text in texts])
def test_a_string_of_another_format_does_not_fit(name: str, text: str) -> None:
    [sentence] = problems(text, {"format": name})

    assert sentence.startswith("answer: expected a")


def test_every_problem_is_told_with_its_own_path() -> None:
    schema = json_schema(list[Line])

    found = problems([{"item": 1, "price": "1.50"}, {"price": "dear", "colour": "blue", "x": 0}], schema)

    assert found == [
        "answer[0].item: expected a string, got 1",
        "answer[1].item: is missing",
        "answer[1].price: expected a string that fits the pattern "
        f"{LINE_SCHEMA['properties']['price']['pattern']!r}, got 'dear'",  # type: ignore[index]
        "answer[1].colour: expected one of 'red', 'green', got 'blue'",
        "answer[1].x: is not expected here; known keys are 'item', 'price', 'colour'",
    ]


def test_the_wrong_type_is_told_alone() -> None:
    assert problems(5, {"type": "string", "enum": ["a"]}) == ["answer: expected a string, got 5"]


def test_the_same_problem_is_told_once() -> None:
    assert problems(5, {"allOf": [{"minimum": 9}, {"minimum": 9}]}) == ["answer: expected at least 9, got 5"]


# --- problems: answers that are not plain -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        (Colour.RED, "red"),
        (Level.HIGH, 2),
        (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00+00:00"),
        (date(2026, 1, 31), "2026-01-31"),
        (time(9, 30), "09:30:00"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Decimal("1.50"), "1.50"),
        ((1, (2,)), [1, [2]]),
        ({3}, [3]),
        (Line("pen", Decimal(2), Colour.RED), {"item": "pen", "price": "2", "colour": "red"}),
        (MappingProxyType({Colour.RED: Level.LOW}), {"red": 1}),
        ([Point(1, 2)], [[1, 2]]),
    ],
)
def test_an_object_is_compared_in_its_plain_form(answer: object, plain: object) -> None:
    assert problems(answer, {"const": plain}) == []
    assert problems(answer, {"const": "something else"}) != []


def test_a_field_that_the_constructor_does_not_take_is_no_part_of_the_plain_form() -> None:
    order = Order(UUID(int=1), [], datetime(2026, 1, 31, tzinfo=UTC))

    assert problems(order, json_schema(Order)) == []
    assert problems(order, {"required": ["seen"]}) == ["answer.seen: is missing"]


def test_what_has_no_plain_form_fits_only_where_anything_does() -> None:
    assert problems(SimpleNamespace(), {"title": "anything"}) == []
    assert problems({"a": b"x"}, {"properties": {"a": {"type": "string"}}}) == ["answer.a: expected a string, got b'x'"]
    assert problems(b"x", {"const": "x"}) == ["answer: expected 'x', got b'x'"]
    assert problems([b"x", b"y"], {"uniqueItems": True}) == []


def test_keys_that_are_not_strings_are_a_problem() -> None:
    assert problems({"a": {5: 1}}, {}) == ["answer.a: expected every key to be a string, got 5"]


def test_a_half_made_instance_is_a_problem() -> None:
    unmade = object.__new__(Node)

    [sentence] = problems([unmade], {})

    assert sentence.startswith("answer[0]: has no plain form")


# --- problems: hostile answers ----------------------------------------------------------------------------------------


def nested(levels: int) -> Any:
    answer: Any = {"value": 0}
    for level in range(1, levels):
        answer = {"value": level, "next": answer}
    return answer


def test_an_answer_may_nest_as_deep_as_the_bound_and_no_deeper() -> None:
    schema = json_schema(Node)

    assert problems(nested(MAX_DEPTH), schema) == []
    assert problems(nested(MAX_DEPTH + 1), schema) == [f"answer.next: is nested deeper than {MAX_DEPTH} levels"]
    assert problems(nested(100_000), schema) == [f"answer.next: is nested deeper than {MAX_DEPTH} levels"]


def test_an_answer_that_holds_itself_is_a_problem() -> None:
    answer: list[Any] = []
    answer.append(answer)

    assert problems(answer, {}) == [f"answer[0]: is nested deeper than {MAX_DEPTH} levels"]


def test_an_answer_that_holds_the_same_list_twice_at_every_level_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bide.shape.plain.MAX_VALUES", 1000)
    answer: list[Any] = []
    for _ in range(40):
        answer = [answer, answer]

    assert problems([0] * 999, {}) == []
    assert problems(answer, {}) == ["answer: holds more than 1000 values"]


def test_a_nearly_full_stack_is_a_problem_of_the_answer_and_not_a_recursion_error() -> None:
    schema = json_schema(Node)
    answer = nested(MAX_DEPTH)

    def from_deep_down(frames: int) -> list[str]:
        return from_deep_down(frames - 1) if frames else problems(answer, schema)

    left = sys.getrecursionlimit() - sum(1 for _ in iter_frames())
    assert from_deep_down(left - 300) == [
        f"answer: is nested too deeply to be checked here (at most {MAX_DEPTH} levels)"
    ]


def iter_frames() -> Any:
    frame: Any = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def test_alternatives_inside_alternatives_cost_no_more_than_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    node = {"properties": {"x": {"$ref": "#/$defs/E"}}}
    schema = {
        "$ref": "#/$defs/E",
        "$defs": {"E": {"anyOf": [{**node, "required": ["p"]}, {**node, "required": ["q"]}]}},
    }
    answer: dict[str, Any] = {}
    for _ in range(50):
        answer = {"x": answer}

    found = problems(answer, schema)  # would take 2 to the power of 50 checks if each were made anew

    assert found == ["answer: fits none of the 2 allowed shapes (1. answer.p: is missing; 2. answer.q: is missing)"]


def test_the_sentence_about_nested_alternatives_stays_short() -> None:
    shape: dict[str, Any] = {"type": "integer"}
    for key in ("a", "b", "c", "d"):
        shape = {"anyOf": [{"properties": {key: shape}, "required": [key]}, {"required": ["x" * 50]}]}
    answer: dict[str, Any] = {"a": "no"}
    for key in ("b", "c", "d"):
        answer = {key: answer}

    [sentence] = problems(answer, shape)

    assert sentence.startswith("answer: fits none of the 2 allowed shapes (1. answer.d: fits none of the 2")
    assert len(sentence) < 400


def test_sentences_stay_short_whatever_the_answer() -> None:
    schema = {"additionalProperties": {"type": "null"}}

    for answer in (
        {"k" * 9000: 1},
        {"a": "v" * 10**6},
        {"a": 10**5000},
        {"a": -(10**5000)},
        {"a": [[[[1] * 99] * 99]]},
    ):
        [sentence] = problems(answer, schema)
        assert len(sentence) < 300


def test_a_key_that_is_too_long_to_be_matched_is_a_problem() -> None:
    assert problems({"k" * 10_001: 1}, {}) == ["answer: has a key of more than 10000 characters"]
    assert problems({"k" * 10_000: 1}, {}) == []


def test_a_string_that_is_too_long_to_be_matched_does_not_fit_a_pattern() -> None:
    assert problems("x" * 10_000, {"pattern": "^x"}) == []
    [sentence] = problems("x" * 10_001, {"pattern": "^x"})
    assert sentence.startswith("answer: expected at most 10000 characters, since it must fit a pattern")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_value_fits_itself_as_a_constant_and_not_its_negation(value: Any) -> None:
    copy = json.loads(json.dumps(value))

    assert problems(value, {"const": copy}) == []
    assert problems(value, {"not": {"enum": [copy]}}) != []


@given(JSON_VALUES)
def test_no_answer_makes_the_check_fail(value: Any) -> None:
    found = problems(value, json_schema(Order))

    assert all(sentence.startswith("answer") for sentence in found)
    assert found


# --- json_schema: of a schema -----------------------------------------------------------------------------------------


def test_a_schema_comes_back_as_a_deep_copy() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, [2]]}}, "x-form": {"widget": "slider"}}

    copy = json_schema(schema)
    copy["properties"]["a"]["enum"][1].append(3)

    assert schema == {"type": "object", "properties": {"a": {"enum": [1, [2]]}}, "x-form": {"widget": "slider"}}


def test_tuples_in_a_schema_become_lists() -> None:
    assert json_schema({"enum": ("a", "b")}) == {"enum": ["a", "b"]}


@pytest.mark.parametrize(
    "keyword",
    "title description default examples $schema $id $comment deprecated readOnly writeOnly discriminator "  # noqa: SIM905
    "contentEncoding contentMediaType contentSchema x-anything".split(),
)
def test_annotations_are_kept_and_not_enforced(keyword: str) -> None:
    schema = {"type": "integer", keyword: "text"}

    assert json_schema(schema) == schema
    assert problems(5, schema) == []


def test_a_format_that_nobody_knows_is_an_annotation() -> None:
    assert problems("anything", {"format": "colour"}) == []


REFUSED: list[tuple[Any, str]] = [
    ({"minContains": 1}, "minContains"),
    ({"properties": {"a": {"unevaluatedProperties": False}}}, "schema.properties.a.unevaluatedProperties"),
    ({"items": [{"type": "string"}]}, "schema.items must be a schema"),
    ({"allOf": [{"nullable": True}]}, "schema.allOf[0].nullable"),
    ({"if": {"$anchor": "x"}}, "$anchor"),
    ({"$defs": {"A": {"wrong": 1}}}, "schema.$defs.A.wrong"),
    ({"name": str}, "not JSON"),
    ({"properties": {1: {}}}, "not JSON"),
    ({"$ref": "#"}, "'#'"),
    ({"$ref": "https://example.org/schema"}, "https://example.org/schema"),
    ({"$ref": "#/properties/a", "properties": {"a": {}}}, "#/properties/a"),
    ({"$ref": "#/$defs/A/items", "$defs": {"A": {"items": {}}}}, "#/$defs/A/items"),
    ({"$ref": "#/$defs/Missing", "$defs": {}}, "#/$defs/Missing"),
    ({"$ref": "#/$defs/A", "$defs": []}, "$ref"),
    ({"$ref": 5}, "5"),
    ({"items": {"$id": "x", "items": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}, "inner '$id'"),
    ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "refer to each other"),
    (
        {"$defs": {"A": {"allOf": [{"not": {"$ref": "#/$defs/B"}}]}, "B": {"if": {"$ref": "#/$defs/A"}}}},
        "refer to each",
    ),
    ({"$defs": {"a/b": {"anyOf": [{"$ref": "#/$defs/a~1b"}]}}}, "refer to each other"),
    ({"type": "text"}, "schema.type"),
    ({"type": []}, "schema.type"),
    ({"type": ["string", "text"]}, "schema.type"),
    ({"enum": "abc"}, "schema.enum"),
    ({"required": "a"}, "schema.required"),
    ({"required": [1]}, "schema.required"),
    ({"dependentRequired": {"a": "b"}}, "schema.dependentRequired"),
    ({"dependentRequired": []}, "schema.dependentRequired"),
    ({"uniqueItems": "yes"}, "schema.uniqueItems"),
    ({"pattern": "("}, "schema.pattern"),
    ({"pattern": 5}, "schema.pattern"),
    ({"pattern": "x" * 1001}, "schema.pattern"),
    ({"patternProperties": {"(": {}}}, "schema.patternProperties"),
    ({"format": 5}, "schema.format"),
    ({"multipleOf": 0}, "schema.multipleOf"),
    ({"minimum": "5"}, "schema.minimum"),
    ({"minimum": math.nan}, "schema.minimum"),
    ({"exclusiveMinimum": True}, "schema.exclusiveMinimum"),
    ({"minLength": -1}, "schema.minLength"),
    ({"maxItems": 1.5}, "schema.maxItems"),
    ({"anyOf": []}, "schema.anyOf"),
    ({"anyOf": {}}, "schema.anyOf"),
    ({"properties": []}, "schema.properties"),
    ({"not": None}, "schema.not"),
]


@pytest.mark.parametrize(("schema", "named"), REFUSED)
def test_a_schema_that_could_not_be_enforced_is_refused_with_the_name_of_the_culprit(schema: Any, named: str) -> None:
    for use in (json_schema, lambda schema: problems(None, schema), lambda schema: build(schema, None)):
        with pytest.raises(InterruptError) as refused:
            use(schema)
        assert named in str(refused.value)


def test_the_longest_pattern_is_accepted() -> None:
    assert problems("y", {"pattern": "x" * 999 + "?"}) != []


def test_a_schema_that_nests_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(50):
        schema = {"properties": {"a": schema}}

    assert json_schema(schema) == schema
    with pytest.raises(InterruptError, match="nests deeper than 100 levels"):
        json_schema({"not": schema})


def test_definitions_that_follow_each_other_too_far_are_refused() -> None:
    chain = {f"D{number}": {"$ref": f"#/$defs/D{number + 1}"} for number in range(200)}

    with pytest.raises(InterruptError, match="more than 100 references"):
        json_schema({"$defs": {**chain, "D200": {}}})


def test_definitions_that_name_each_other_twice_cost_no_more_than_their_number() -> None:
    table: dict[str, Any] = {"D50": {"type": "string"}}
    for number in range(50):
        table[f"D{number}"] = {"anyOf": [{"$ref": f"#/$defs/D{number + 1}"}, {"$ref": f"#/$defs/D{number + 1}"}]}

    found = problems(5, {"$ref": "#/$defs/D0", "$defs": table})  # there are 2 to the power of 50 ways down

    assert found == ["answer: expected a string, got 5"]


def test_problems_takes_nothing_but_a_dict_as_a_schema() -> None:
    with pytest.raises(InterruptError, match="must be a dict, not True"):
        problems(5, True)  # type: ignore[arg-type]


# --- json_schema: of a type -------------------------------------------------------------------------------------------

STRING, INTEGER, NUMBER, NULL = ({"type": name} for name in ("string", "integer", "number", "null"))
UserId = NewType("UserId", int)
Pair = namedtuple("Pair", "left right")

TYPES: list[tuple[Any, dict[str, Any]]] = [
    (str, STRING),
    (int, INTEGER),
    (float, NUMBER),
    (bool, {"type": "boolean"}),
    (None, NULL),
    (Any, {}),
    (object, {}),
    (UserId, INTEGER),
    (datetime, {"type": "string", "format": "date-time"}),
    (date, {"type": "string", "format": "date"}),
    (time, {"type": "string", "format": "time"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (list, {"type": "array"}),
    (list[int], {"type": "array", "items": INTEGER}),
    (Sequence[str], {"type": "array", "items": STRING}),
    (tuple, {"type": "array"}),
    (typing.Tuple, {"type": "array"}),  # noqa: UP006
    (tuple[int, ...], {"type": "array", "items": INTEGER}),
    (tuple[int, str], {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2}),
    (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
    (set[str], {"type": "array", "items": STRING, "uniqueItems": True}),
    (frozenset, {"type": "array", "uniqueItems": True}),
    (dict, {"type": "object"}),
    (dict[str, Any], {"type": "object"}),
    (Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}),
    (dict[date, int], {"type": "object", "propertyNames": json_schema(date), "additionalProperties": INTEGER}),
    (Optional[int], {"anyOf": [INTEGER, NULL]}),  # noqa: UP045
    (Union[int, str], {"anyOf": [INTEGER, STRING]}),  # noqa: UP007
    (int | None, {"anyOf": [INTEGER, NULL]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1, None], {"enum": ["a", 1, None]}),
    (Literal[Colour.RED], {"type": "string", "const": "red"}),
    (Colour, {"title": "Colour", "type": "string", "enum": ["red", "green"]}),
    (Level, {"title": "Level", "type": "integer", "enum": [1, 2]}),
    (Annotated[str, "who asks"], {"type": "string", "description": "who asks"}),
    (Annotated[int, SimpleNamespace(ge=1, lt=9), object()], {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}),
    (
        Annotated[float, SimpleNamespace(gt=1), SimpleNamespace(le=9)],
        {"type": "number", "exclusiveMinimum": 1, "maximum": 9},
    ),
    (Annotated[int, SimpleNamespace(multiple_of=5, ge=None)], {"type": "integer", "multipleOf": 5}),
    (Annotated[str, SimpleNamespace(min_length=1, pattern="^a")], {"type": "string", "minLength": 1, "pattern": "^a"}),
    (Annotated[list[int], SimpleNamespace(max_length=3)], {"type": "array", "items": INTEGER, "maxItems": 3}),
    (Annotated[dict, SimpleNamespace(min_length=1)], {"type": "object", "minProperties": 1}),
    (
        Point,
        {
            "title": "Point",
            "type": "array",
            "prefixItems": [{"type": "number", "title": "x"}, {"type": "number", "title": "y"}],
            "minItems": 1,
            "maxItems": 2,
        },
    ),
    (
        Pair,
        {
            "title": "Pair",
            "type": "array",
            "prefixItems": [{"title": "left"}, {"title": "right"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    (Line, {**LINE_SCHEMA, "$defs": {"Colour": json_schema(Colour)}}),
    (
        Address,
        {
            "title": "Address",
            "type": "object",
            "properties": {
                "street": STRING,
                "zip": INTEGER,
                "since": {"type": "string", "format": "date", "description": "when they moved in"},
            },
            "required": ["street"],
            "additionalProperties": False,
        },
    ),
    (
        Patch,
        {
            "title": "Patch",
            "type": "object",
            "properties": {"name": STRING, "age": INTEGER},
            "required": ["name"],
            "additionalProperties": False,
        },
    ),
    (
        Node,
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "title": "Node",
                    "type": "object",
                    "properties": {
                        "value": INTEGER,
                        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL], "default": None},
                    },
                    "required": ["value"],
                    "additionalProperties": False,
                }
            },
        },
    ),
]


@pytest.mark.parametrize(("shape", "schema"), TYPES)
def test_a_type_is_described_as_a_schema(shape: Any, schema: dict[str, Any]) -> None:
    assert json_schema(shape) == schema


@pytest.mark.parametrize(("shape", "schema"), TYPES)
def test_the_schema_of_a_type_can_be_written_as_json_and_enforced(shape: Any, schema: dict[str, Any]) -> None:
    assert json_schema(json.loads(json.dumps(json_schema(shape)))) == schema


def test_the_schema_of_a_dataclass_tells_its_documentation_and_its_defaults() -> None:
    @dataclass
    class Form:
        """Say
        how much."""

        amount: float = 1.5
        limit: float = math.inf
        colour: Colour = Colour.RED
        tags: list[str] = field(default_factory=list)
        start: Any = field(default=FrozenKeys())

    schema = json_schema(Form)

    assert schema["description"] == "Say\nhow much."
    assert schema["properties"]["amount"] == {"type": "number", "default": 1.5}
    assert schema["properties"]["limit"] == {"type": "number"}  # JSON cannot write this default
    assert schema["properties"]["start"] == {}
    assert schema["properties"]["colour"] == {"$ref": "#/$defs/Colour", "default": "red"}
    assert schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}
    assert "required" not in schema


def test_two_types_of_the_same_name_get_definitions_of_their_own() -> None:
    other = dataclasses.make_dataclass("Line", [("length", int)])

    schema = json_schema(tuple[Line, other, Line])

    assert [place["$ref"] for place in schema["prefixItems"]] == ["#/$defs/Line", "#/$defs/Line_2", "#/$defs/Line"]
    assert problems([Line("a", Decimal(1)), {"length": 1}, {"item": "b", "price": "2"}], schema) == []
    assert problems([{"length": 1}], schema) != []


class Unresolvable(TypedDict):
    value: NoSuchType  # noqa: F821


@dataclass
class WithInitVar:
    value: int
    scale: InitVar[int] = 1


T = TypeVar("T")

NO_TYPES: list[tuple[Any, str]] = [
    (5, "5"),
    ("Line", "'Line'"),
    (Line("a", Decimal(1)), "Line(item='a'"),
    ([int], "int"),
    (len, "len"),
    (bytes, "bytes"),
    (timedelta, "timedelta"),
    (list[bytes], "bytes"),
    (T, "~T"),
    (type[int], "type[int]"),
    (dict[int, str], "keys like {'type': 'integer'}"),
    (Literal[b"x"], "b'x'"),
    (enum.Enum("Kind", {"ODD": object()}), "has no JSON form"),
    (Unresolvable, "'NoSuchType'"),
    (WithInitVar, "'scale'"),
    (Annotated[Decimal, SimpleNamespace(ge=1)], "ge=1"),
    (Annotated[date, SimpleNamespace(min_length=1)], "min_length=1"),
    (Annotated[str, SimpleNamespace(le=1)], "le=1"),
    (Annotated[int | None, SimpleNamespace(ge=1)], "ge=1"),
    (Annotated[int, SimpleNamespace(ge=date(2026, 1, 31))], "schema.minimum"),
]


@pytest.mark.parametrize(("shape", "named"), NO_TYPES)
def test_what_an_answer_cannot_be_is_refused_by_name(shape: Any, named: str) -> None:
    for use in (json_schema, lambda shape: build(shape, None)):
        with pytest.raises(InterruptError) as refused:
            use(shape)
        assert named in str(refused.value)


def test_the_refusal_of_a_type_says_what_is_accepted() -> None:
    with pytest.raises(InterruptError, match=r"Give a JSON Schema dict, a pydantic model, a dataclass, .* of these\."):
        json_schema(bytes)


# --- build ------------------------------------------------------------------------------------------------------------

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))

BUILT: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (str, Colour.RED, "red"),
    (int, 2.0, 2),
    (float, 2, 2.0),
    (None, None, None),
    (Any, (1, object), (1, object)),
    (datetime, "2026-01-31T12:00:00+02:00", NOON),
    (date, "2026-01-31", date(2026, 1, 31)),
    (time, "09:30", time(9, 30)),
    (UUID, str(UUID(int=7)), UUID(int=7)),
    (Decimal, "-1.5e3", Decimal("-1.5e3")),
    (Colour, "green", Colour.GREEN),
    (Level, 2.0, Level.HIGH),
    (Literal[1, "a"], 1.0, 1),
    (Literal[Colour.RED], "red", Colour.RED),
    (list[date], ["2026-01-31"], [date(2026, 1, 31)]),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[int, Colour], [1, "red"], (1, Colour.RED)),
    (set[Colour], ["red"], {Colour.RED}),
    (frozenset[int], (1, 2), frozenset({1, 2})),
    (dict[Colour, date], {"red": "2026-01-31"}, {Colour.RED: date(2026, 1, 31)}),
    (Optional[date], None, None),  # noqa: UP045
    (Optional[date], "2026-01-31", date(2026, 1, 31)),  # noqa: UP045
    (float | int, 3, 3),
    (date | str, "2026-01-31", date(2026, 1, 31)),
    (date | str, "soon", "soon"),
    (str | date, "2026-01-31", "2026-01-31"),
    (Line | dict[str, Any], {"item": "a", "price": "1"}, Line("a", Decimal(1))),
    (Whatever | Positive, Positive(3), Positive(3)),
    (Positive | Whatever, {"amount": -3}, Whatever(-3)),
    (UserId, 5, 5),
    (Annotated[date, "when"], "2026-01-31", date(2026, 1, 31)),
    (Line, {"item": "a", "price": "1.50", "colour": "red"}, Line("a", Decimal("1.50"), Colour.RED)),
    (Whatever, Positive(3), Whatever(3)),
    (list[Line], [Line("a", Decimal(1)), {"item": "b", "price": "2"}], [Line("a", Decimal(1)), Line("b", Decimal(2))]),
    (Node, {"value": 1, "next": {"value": 2}}, Node(1, Node(2))),
    (Address, {"street": "x", "since": "2026-01-31"}, {"street": "x", "since": date(2026, 1, 31)}),
    (Patch, {"name": "x"}, {"name": "x"}),
    (Point, [1], Point(1.0, 0.0)),
    (Pair, [1, "x"], Pair(1, "x")),
    ({"type": "integer"}, 2.0, 2.0),
]


@pytest.mark.parametrize(("shape", "answer", "expected"), BUILT)
def test_an_answer_becomes_the_type(shape: Any, answer: Any, expected: Any) -> None:
    built = build(shape, answer)

    assert built == expected
    assert type(built) is type(expected)


@pytest.mark.parametrize(
    ("shape", "answer"),
    [
        (Line, Line("a", Decimal(1))),
        (Point, Point(1.0, 2.0)),
        (Colour, Colour.RED),
        (date, date(2026, 1, 31)),
        (str | Line, Line("a", Decimal(1))),
        ({"type": "array"}, [1, (2,)]),
        (Any, [object()]),
    ],
)
def test_an_instance_of_the_type_passes_unchanged(shape: Any, answer: Any) -> None:
    assert build(shape, answer) is answer


@pytest.mark.parametrize(
    ("shape", "answer", "sentence"),
    [
        ({"type": "integer"}, "x", "answer: expected an integer, got 'x'"),
        (int, True, "answer: expected an integer, got true"),
        (date, NOON, "answer: expected a date like '2026-01-31', got '2026-01-31T12:00:00+02:00'"),
        (float, 10**400, "answer: cannot become 'float' (int too large to convert to float)"),
        (Line, {"item": 5, "price": "1"}, "answer.item: expected a string, got 5"),
        (Line, Line("a", 5), "answer.price: expected a string, got 5"),  # type: ignore[arg-type]
        (Positive, {"amount": -3}, "answer: 'Positive' refuses it (amount must be above 0)"),
        (list[Positive | None], [None, {"amount": -3}], "answer[1]: 'Positive' refuses it (amount must be above 0)"),
        (dict[str, Positive], {"a": {"amount": 0}}, "answer.a: 'Positive' refuses it (amount must be above 0)"),
        (set[Any], [[1]], "answer: cannot become a set (unhashable type: 'list')"),
        (tuple[int, str], [1], "answer: expected at least 2 items, got [1]"),
        (Annotated[int, SimpleNamespace(ge=1)], 0, "answer: expected at least 1, got 0"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_its_problems(shape: Any, answer: Any, sentence: str) -> None:
    with pytest.raises(InvalidAnswerError) as refused:
        build(shape, answer)

    assert str(refused.value).splitlines()[1:] == [f"- {sentence}"]


def test_a_refusal_lists_every_problem() -> None:
    with pytest.raises(InvalidAnswerError) as refused:
        build(Address, {"zip": "x", "town": "y"})

    assert str(refused.value).splitlines() == [
        "The answer does not fit what the question asks for; give one that does:",
        "- answer.street: is missing",
        "- answer.zip: expected an integer, got 'x'",
        "- answer.town: is not expected here; known keys are 'street', 'zip', 'since'",
    ]


def test_an_answer_that_nests_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidAnswerError, match="nested deeper than"):
        build(Node, nested(10_000))


def test_an_answer_for_which_the_stack_is_too_full_is_refused() -> None:
    rooms = TypeAliasType("Rooms")
    rooms.__value__ = list[rooms]  # type: ignore[valid-type]
    answer: list[Any] = []
    for _ in range(MAX_DEPTH - 1):
        answer = [answer]

    def from_deep_down(frames: int) -> object:
        return from_deep_down(frames - 1) if frames else build(rooms, answer)

    left = sys.getrecursionlimit() - sum(1 for _ in iter_frames())
    assert from_deep_down(left - 700) == answer
    with pytest.raises(InvalidAnswerError, match="nested too deeply"):
        from_deep_down(left - 200)


def test_the_deepest_answer_that_fits_is_built() -> None:
    built = build(Node, nested(MAX_DEPTH))

    assert isinstance(built, Node)
    assert to_plain(dataclasses.replace(built, next=None)) == {"value": MAX_DEPTH - 1, "next": None}


LINES = st.builds(
    Line,
    item=st.text(),
    price=st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9),
    colour=st.none() | st.sampled_from(Colour),
)
ORDERS = st.builds(
    Order,
    id=st.uuids(),
    lines=st.lists(LINES, max_size=3),
    placed=st.datetimes() | st.datetimes(timezones=st.just(UTC)),
    due=st.none() | st.dates(),
    at=st.times(),
    tags=st.frozensets(st.text(), max_size=3),
    size=st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2),
    levels=st.dictionaries(st.text(), st.sampled_from(Level), max_size=3),
)


@given(ORDERS)
def test_a_dataclass_comes_back_equal_from_json(order: Order) -> None:
    schema = json.loads(json.dumps(json_schema(Order)))
    answer = json.loads(json.dumps(to_plain(order)))

    assert problems(answer, schema) == problems(order, schema) == []
    assert build(Order, answer) == order


def test_a_named_alias_may_hold_itself() -> None:
    tree = TypeAliasType("Tree")
    tree.__value__ = date | list[tree]  # type: ignore[valid-type]

    schema = json_schema(tree)

    assert schema == {
        "$ref": "#/$defs/Tree",
        "$defs": {"Tree": {"anyOf": [json_schema(date), {"type": "array", "items": {"$ref": "#/$defs/Tree"}}]}},
    }
    assert build(tree, [["2026-01-31"], []]) == [[date(2026, 1, 31)], []]


def test_a_named_alias_is_described_under_its_name() -> None:
    days = typing_extensions.TypeAliasType("Days", list[date])

    schema = json_schema(tuple[days, days])

    assert schema["prefixItems"] == [{"$ref": "#/$defs/Days"}] * 2
    assert schema["$defs"] == {"Days": {"type": "array", "items": json_schema(date)}}


def test_a_class_that_is_defined_in_a_function_may_hold_itself() -> None:
    @dataclass
    class Branch:
        twigs: Annotated[list[Branch], "smaller ones"]

    assert json_schema(Branch)["$defs"]["Branch"]["properties"]["twigs"]["description"] == "smaller ones"
    assert build(Branch, {"twigs": [{"twigs": []}]}) == Branch([Branch([])])


# --- pydantic ---------------------------------------------------------------------------------------------------------


class Street(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    name: str
    number: int = pydantic.Field(ge=1)

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def label(self) -> str:
        return f"{self.name} {self.number}"


class House(pydantic.BaseModel):
    street: Street
    built: date
    next: House | None = None
    owner_name: str = pydantic.Field(default="nobody", alias="ownerName")


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    when: date


@dataclass
class Visit:
    house: House
    street: Street
    again: House | None = None


HOUSE = {"street": {"name": "Elm", "number": 1}, "built": "1999-12-31"}
ELM = Street(name="Elm", number=1)


def test_a_model_is_described_by_itself() -> None:
    assert json_schema(House) == House.model_json_schema()


def test_an_answer_becomes_a_model() -> None:
    built = build(House, {**HOUSE, "ownerName": "Ann"})

    assert built == House(street=ELM, built=date(1999, 12, 31), ownerName="Ann")


def test_an_instance_of_a_model_passes_unchanged() -> None:
    house = House(street=ELM, built=date(1999, 12, 31))

    assert build(House, house) is house
    assert build(House | None, house) is house
    assert problems(house, json_schema(House)) == []


def test_an_answer_that_the_model_refuses_is_refused_with_every_message_of_pydantic() -> None:
    with pytest.raises(InvalidAnswerError) as refused:
        build(House, {"street": {"name": "Elm", "number": 0}, "built": "soon", "next": 5})

    assert isinstance(refused.value.__cause__, pydantic.ValidationError)
    lines = str(refused.value).splitlines()[1:]
    assert [line.split(":")[0] for line in lines] == ["- answer.street.number", "- answer.built", "- answer.next"]
    assert "greater than or equal to 1" in lines[0]


def test_models_inside_other_types_keep_their_definitions_apart() -> None:
    schema = json_schema(Visit)

    assert problems({"house": HOUSE, "street": HOUSE["street"], "again": {**HOUSE, "next": HOUSE}}, schema) == []
    assert problems({"house": {**HOUSE, "next": {"street": 5}}, "street": {"name": "Elm"}}, schema) == [
        "answer.house.next.built: is missing",
        "answer.house.next.street: expected an object, got 5",
        "answer.street.number: is missing",
    ]


def test_models_inside_other_types_are_built() -> None:
    house = House(street=ELM, built=date(1999, 12, 31))

    assert build(Visit, {"house": HOUSE, "street": ELM}) == Visit(house, ELM)
    assert build(list[House], [HOUSE, house]) == [house, house]


def test_what_a_model_refuses_inside_another_type_is_told_with_its_path() -> None:
    class Even(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def must_be_even(cls, number: int) -> int:
            assert number % 2 == 0, "odd"
            return number

    with pytest.raises(InvalidAnswerError, match=r"answer\[1\]\.number: .*odd"):
        build(list[Even], [{"number": 2}, {"number": 3}])


def test_a_strict_model_takes_a_date_as_json_writes_it() -> None:
    assert build(Strict, {"when": "2026-01-31"}) == Strict(when=date(2026, 1, 31))
    with pytest.raises(InvalidAnswerError):
        build(Strict, {"when": 5})


def test_another_object_of_the_same_plain_form_becomes_the_model() -> None:
    @dataclass
    class Lookalike:
        name: str
        number: int

    assert build(Street, Lookalike("Elm", 1)) == ELM


def test_bounds_of_pydantic_fields_count_in_annotated_types() -> None:
    shape = Annotated[int, pydantic.Field(ge=1, description="how many")]

    assert json_schema(shape) == {"type": "integer", "minimum": 1, "description": "how many"}


def test_a_model_that_pydantic_cannot_describe_is_refused() -> None:
    class Opaque(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

        thing: SimpleNamespace

    with pytest.raises(InterruptError, match="pydantic cannot describe 'Opaque'"):
        json_schema(Opaque)


def test_a_model_with_a_keyword_that_cannot_be_enforced_is_refused() -> None:
    class Odd(pydantic.BaseModel):
        thing: int = pydantic.Field(json_schema_extra={"minContains": 1})

    with pytest.raises(InterruptError, match="minContains"):
        json_schema(Odd)


def test_an_instance_of_a_model_is_compared_under_its_aliases() -> None:
    class Named(pydantic.BaseModel):
        owner_name: str = pydantic.Field(alias="ownerName")

    assert problems(Named(ownerName="Ann"), json_schema(Named)) == []


def test_an_instance_that_was_never_validated_is_checked_like_any_answer() -> None:
    found = problems(Street.model_construct(name=5, number="x"), json_schema(Street))

    assert found == ["answer.name: expected a string, got 5", "answer.number: expected an integer, got 'x'"]


def test_an_instance_that_pydantic_cannot_write_is_a_problem() -> None:
    class Holder(pydantic.BaseModel):
        thing: Any

    [sentence] = problems(Holder(thing=object()), {"type": "object"})

    assert sentence.startswith("answer: has no plain form")


def test_shapes_without_pydantic_never_import_it() -> None:
    program = (
        "import sys; from bide.shape import build, json_schema, problems\n"
        "assert build(list[int], [1]) == [1] and problems(object(), {}) == []\n"
        "print('pydantic' in sys.modules)"
    )
    source = str(Path(bide.shape.__file__).parents[2])

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout.strip(), done.stderr) == ("False", "")
