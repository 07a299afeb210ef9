"""What clients write into addresses, and how values are shown to them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from fastapi import Response
from pydantic import BaseModel

from bide import AIMessage, HumanMessage, Interrupt, ToolMessage
from bide.server.langgraph.choosing import holds, ordered
from bide.server.langgraph.wire import iso, jsonable, paged, read_bool, read_list


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["a", "b"], ["a", "b"]),
        (['["a","b"]'], ["a", "b"]),
        (["a,b"], ["a", "b"]),
        ([""], []),
        ([], []),
        (["a, b", '["c"]', ""], ["a", "b", "c"]),
        (['"a"'], ["a"]),
        (["[broken"], ["[broken"]),
        (["[1,null]"], ["1"]),
    ],
)
def test_list_is_read_in_every_spelling(written: list[str], read: list[str]) -> None:
    assert read_list(written) == read


def test_flag_is_read_in_every_spelling() -> None:
    assert all(map(read_bool, ["1", "true", "True", " TRUE ", True]))
    assert not any(map(read_bool, ["", "0", "false", "False", None, "nonsense"]))


@pytest.mark.parametrize(("offset", "next_"), [(0, "2"), (2, "4"), (4, None), (3, None), (9, None)])
def test_headers_say_how_many_there_are_and_where_to_go_on(offset: int, next_: str | None) -> None:
    response = Response()
    paged(response, 5, offset, 2)
    assert (response.headers["x-pagination-total"], response.headers.get("x-pagination-next")) == ("5", next_)


def test_times_have_an_offset() -> None:
    assert iso(0) == "1970-01-01T00:00:00+00:00"


# ── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Colour(Enum):
    GREEN = "green"


class Size(StrEnum):
    BIG = "big"


@dataclass
class Point:
    x: int
    tags: set[str]


class Pair(NamedTuple):
    left: int
    right: Any


class Model(BaseModel):
    when: datetime
    inner: dict[str, Any]


class Rude:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (Colour.GREEN, "green"),
        (Size.BIG, "big"),
        (Point(1, {"a"}), {"x": 1, "tags": ["a"]}),
        (Pair(1, (2, 3)), {"left": 1, "right": [2, 3]}),
        (
            Model(when=datetime(2026, 1, 1, tzinfo=UTC), inner={"a": b"abc"}),
            {"when": "2026-01-01T00:00:00+00:00", "inner": {"a": "YWJj"}},
        ),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00"),
        (date(2026, 1, 1), "2026-01-01"),
        (timedelta(minutes=1), 60.0),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.50"), 1.5),
        (Decimal(2), 2),
        (Decimal("NaN"), None),
        (b"abc", "YWJj"),
        (PurePosixPath("/a"), "/a"),
        ({1: "a", None: "b", False: "c", (1, 2): "d"}, {"1": "a", "null": "b", "false": "c", "(1, 2)": "d"}),
        (ValueError("no"), {"error": "ValueError", "message": "no"}),
        ("\ud800x", "?x"),
        (Interrupt("why?", "q1"), {"value": "why?", "id": "q1"}),
        (
            Interrupt("why?", "q1", response_schema=int),
            {"value": "why?", "id": "q1", "response_schema": {"type": "integer"}},
        ),
    ],
)
def test_value_is_shown_as_json(value: Any, shown: Any) -> None:
    assert jsonable(value) == shown
    json.dumps(jsonable({"a": [value]}), allow_nan=False).encode()


def test_messages_are_shown_as_langchain_writes_its_own() -> None:
    human, ai, tool = jsonable(
        [
            HumanMessage("hi", id="1"),
            AIMessage("ho", tool_calls=[{"name": "t", "args": {}, "id": "c"}]),
            ToolMessage("done", tool_call_id="c"),
        ]
    )

    assert list(human) == ["content", "additional_kwargs", "response_metadata", "type", "name", "id"]
    assert (human["type"], human["id"]) == ("human", "1")
    assert ai["tool_calls"] == [{"name": "t", "args": {}, "id": "c"}]
    assert (ai["invalid_tool_calls"], ai["usage_metadata"]) == ([], None)
    assert (tool["type"], tool["tool_call_id"], tool["status"]) == ("tool", "c", "success")


def test_showing_never_fails() -> None:
    round_ = []
    round_.append(round_)
    deep: Any = "end"
    for _ in range(5000):
        deep = {"in": deep}

    for value in (round_, deep, Rude(), object(), 10**5000, lambda: 1, {Rude(): 1}):
        assert json.dumps(jsonable(value), allow_nan=False)


# ── Choosing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_part_is_held_by_what_has_all_that_it_names() -> None:
    whole = {"a": 1, "b": {"c": [1, {"d": 2}], "e": None}}

    assert all(holds(whole, part) for part in ({}, {"a": 1}, {"b": {"c": [{"d": 2}]}}, {"b": {"e": None}}))
    assert not any(holds(whole, part) for part in ({"a": 2}, {"a": True}, {"x": None}, {"b": {"c": [3]}}, {"a": [1]}))


def test_what_has_no_value_comes_last_whichever_way_it_is_sorted() -> None:
    found = [{"n": 2}, {"n": None}, {"n": 1}]

    assert [one["n"] for one in ordered(found, lambda one: one["n"], "asc")] == [1, 2, None]
    assert [one["n"] for one in ordered(found, lambda one: one["n"], None)] == [2, 1, None]
