"""Complaints 42 to 46: graphs that change under their threads, and values that do not come back as they were.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Any, TypedDict

import ormsgpack
import pytest
from pydantic import BaseModel, ValidationError

from bide import Command, CompiledGraph, Store, interrupt, step
from bide.codec import Codec, Registry
from bide.errors import CodecError, GraphChanged, UnstorableValueError
from tests.complaints.world import State
from tests.threads import in_a_row, one_node, thread

VERSION = Codec(Registry()).encode(None)[:1]
"""The byte with which every stored value begins."""


def asks_name(state: State) -> dict[str, Any]:
    return {"name": interrupt("Your name?")}


def logs(what: str) -> Any:
    return lambda state: {"log": [what]}


# ── The graph changes ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(42)
def test_thread_that_waits_in_a_renamed_node_is_an_error_and_no_silent_end(store: Store):
    """There, the answer is taken, nothing runs, and the thread counts as finished."""
    in_a_row(State, {"first": logs("first"), "approve": asks_name}, checkpointer=store).invoke({}, thread())
    renamed = in_a_row(State, {"first": logs("first"), "approval": asks_name}, checkpointer=store)

    with pytest.raises(GraphChanged, match="'approve'"):
        renamed.invoke(Command(resume="Ada"), thread())

    mended = in_a_row(State, {"first": logs("first"), "approve": asks_name}, checkpointer=store)
    assert mended.invoke(Command(resume="Ada"), thread())["name"] == "Ada"


@pytest.mark.complaint(42)
def test_thread_with_a_key_that_the_state_no_longer_has_is_an_error_that_names_it(store: Store):
    """There, the run goes on as if the value had never been there."""

    class Old(TypedDict, total=False):
        name: str
        discount: int

    one_node(Old, asks_name, checkpointer=store).invoke({"discount": 10}, thread())
    without = one_node({"name": str}, asks_name, checkpointer=store)

    with pytest.raises(GraphChanged, match="'discount'"):
        without.invoke(Command(resume="Ada"), thread())


@pytest.mark.complaint(42)
def test_thread_that_waits_in_a_renamed_node_is_brought_along_by_a_hook(store: Store):
    """There, nothing but keeping the old name for ever helps."""
    in_a_row(State, {"first": logs("first"), "approve": asks_name}, checkpointer=store).invoke({}, thread())
    renamed = {"first": logs("first"), "approval": asks_name}
    graph = in_a_row(
        State, renamed, checkpointer=store, migrate=lambda stored: stored.rename_node("approve", "approval")
    )

    assert graph.get_state(thread()).next == ("approval",)
    assert graph.invoke(Command(resume="Ada"), thread()) == {"name": "Ada", "log": ["first"]}


@pytest.mark.complaint(42)
def test_value_of_a_renamed_key_is_brought_along_by_a_hook(store: Store):
    """There, the old key is never read again, and the new one is empty."""

    class Old(TypedDict, total=False):
        name: str
        discount: int

    class New(TypedDict, total=False):
        name: str
        rebate: int

    one_node(Old, asks_name, checkpointer=store).invoke({"discount": 10}, thread())
    graph = one_node(New, asks_name, checkpointer=store, migrate=lambda stored: stored.rename_key("discount", "rebate"))

    assert graph.invoke(Command(resume="Ada"), thread()) == {"name": "Ada", "rebate": 10}


@pytest.mark.complaint(42)
def test_threads_that_new_code_would_break_are_known_before_it_is_released(store: Store):
    """There, one finds out when somebody answers."""
    made: list[str] = []

    def graph(*steps: str) -> CompiledGraph:
        def node(state: State) -> dict[str, Any]:
            for what in steps:
                step(made.append, what)
            return asks_name(state)

        return one_node(State, node, checkpointer=store)

    graph("pay").invoke({}, thread("1"))

    assert [report.breaks for report in graph("pay").replay_check()] == [False]
    broken = graph("charge").replay_check()
    assert [(report.thread_id, report.node, report.breaks) for report in broken] == [("1", "node", True)]
    assert made == ["pay"]


# ── Stored bytes ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(43)
def test_stored_bytes_that_name_a_function_do_not_call_it(store: Store, tmp_path: Path):
    """There, with default settings, reading a checkpoint imports what its bytes name, and calls it."""
    graph = one_node(State, asks_name, checkpointer=store)
    graph.invoke({"log": ["x" * 10_000]}, thread())
    made = tmp_path / "made by the bytes"
    call = ormsgpack.packb(["os", "mkdir", [str(made)]])
    hostile = [ormsgpack.packb(ormsgpack.Ext(kind, call)) for kind in range(128)]

    for bytes_of_an_attacker in hostile:
        with closing(sqlite3.connect(tmp_path / "bide.db", isolation_level=None)) as database:
            database.execute("UPDATE channel_log SET body = ?", (VERSION + bytes_of_an_attacker,))
        with pytest.raises(CodecError):
            graph.get_state(thread())

    assert not made.exists()


class Colour(Enum):
    RED = 1


class Thing:
    """A class that nobody registered."""


class Anything(TypedDict, total=False):
    value: Any
    colour: Colour


@pytest.mark.complaint(44)
@pytest.mark.parametrize(
    "value",
    [
        (1, (2, 3)),
        defaultdict(list, {"a": [1]}),
        Counter("aab"),
        OrderedDict(b=1, a=2),
        deque([1, 2], maxlen=2),
        {Colour.RED: "an enum as a key"},
        {"amount": 2**70},
    ],
    ids=["tuple", "defaultdict", "Counter", "OrderedDict", "deque", "enum", "large number"],
)
def test_value_comes_back_with_its_type_or_not_at_all(store: Store, value: Any):
    """There, tuples are lists, the dicts are plain dicts, the deque has no limit, and the enum is a number afterwards.

    The large number is refused there.
    """
    graph = one_node(Anything, lambda state: {"value": value}, checkpointer=store)
    graph.invoke({}, thread())

    found = graph.get_state(thread()).values["value"]

    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.complaint(44)
def test_value_that_would_not_come_back_is_refused_by_its_path_and_nothing_is_saved(store: Store):
    """There, a type that cannot be packed is refused too, without saying where in the state it is."""
    graph = one_node(Anything, lambda state: {"value": [{"deep": Thing()}]}, checkpointer=store)

    with pytest.raises(UnstorableValueError, match=r"state\['value'\]\[0\]\['deep'\]"):
        graph.invoke({}, thread())

    assert graph.get_state(thread()).values == {}


class Invoice(BaseModel):
    amount: int = 0
    paid: bool = False


@pytest.mark.complaint(45)
def test_history_with_a_wrong_value_in_it_can_be_read_and_mended(store: Store):
    """There, the state, the history and even `update_state` raise from then on: the thread is lost."""
    nodes = {"wrong": lambda state: {"amount": "ten"}, "pay": lambda state: {"paid": state.amount > 0}}
    graph = in_a_row(Invoice, nodes, checkpointer=store)
    with pytest.raises(ValidationError, match="amount"):
        graph.invoke({"amount": 1}, thread())

    read = [snapshot.values["amount"] for snapshot in graph.get_state_history(thread(), order="asc")]
    graph.update_state(thread(), {"amount": 10})

    assert read[0] == 1
    assert graph.invoke(None, thread()) == {"amount": 10, "paid": True}
