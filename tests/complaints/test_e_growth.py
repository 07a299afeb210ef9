"""Complaints 36 to 41: what grows, and what comes back after it was deleted.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

import gc
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any, TypedDict
from weakref import ReferenceType

import pytest

from bide import END, Command, HumanMessage, MemorySaver, MessagesState, Store, interrupt
from bide.errors import LeaseLostError
from bide.store.rows import Lease, Transition
from bide.store.sqlite import SqliteDatabase
from tests.complaints.world import State
from tests.threads import one_node, thread


def asks_name(state: State) -> dict[str, Any]:
    return {"name": interrupt("Your name?")}


def rows_of(path: Path) -> dict[str, int]:
    """How many rows each table of a database has."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}


@pytest.mark.complaint(36)
def test_deleted_thread_leaves_no_row_behind(store: Store, tmp_path: Path):
    """There, deleting a thread is all that the SQLite saver offers against growth, and it leaves no row either."""
    graph = one_node(State, asks_name, checkpointer=store)
    graph.invoke({}, thread("another"))
    before = rows_of(tmp_path / "bide.db")
    graph.invoke({"log": ["x" * 100_000]}, thread("closed"))

    store.delete_thread("closed")

    # one small row says that it was deleted, so that whoever still held it cannot bring it back
    assert rows_of(tmp_path / "bide.db") == {**before, "tombstones": 1}


@pytest.mark.complaint(37)
def test_large_value_that_does_not_change_is_written_once_however_many_steps_follow(url: str, tmp_path: Path):
    """There, the SQLite saver writes the whole state at every step: 100 KB and fifty steps make a file of 5.4 MB."""

    class Reading(TypedDict, total=False):
        document: str
        page: int

    def turn(state: Reading) -> Command:
        return Command(update={"page": state["page"] + 1}, goto="node" if state["page"] < 50 else END)

    file = tmp_path / "bide.db"
    Store.open(url).close()
    empty = file.stat().st_size
    with Store.open(url) as store:
        one_node(Reading, turn, checkpointer=store).invoke({"document": "x" * 100_000, "page": 0}, thread())

    assert file.stat().st_size - empty < 200_000


@pytest.mark.complaint(38)
def test_run_that_ends_after_its_thread_was_deleted_brings_nothing_back(store: Store):
    """There, the late write makes the deleted thread again, with half of its state."""
    has_begun, may_end = Event(), Event()

    def works(state: State) -> dict[str, Any]:
        has_begun.set()
        assert may_end.wait(20)
        return {"name": "late"}

    graph = one_node(State, works, checkpointer=store)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(graph.invoke, {"log": ["a secret"]}, thread())
        assert has_begun.wait(20)
        store.delete_thread("t")
        may_end.set()

    with pytest.raises(LeaseLostError, match="deleted"):
        call.result()
    assert graph.get_state(thread()).values == {}
    assert store.threads() == []


class Count(TypedDict):
    number: int


class Stalled(Store):
    """A store whose first commit takes until the run is far ahead, or until it would long be so."""

    def __init__(self, path: Path) -> None:
        super().__init__(SqliteDatabase(str(path)))
        self.is_far_ahead = Event()
        self.ran_away: bool | None = None

    def commit(self, lease: Lease, transition: Transition) -> None:
        if self.ran_away is None:
            self.ran_away = self.is_far_ahead.wait(0.5)
        super().commit(lease, transition)


@pytest.mark.complaint(39)
def test_run_does_not_run_away_from_a_disk_that_stalls(tmp_path: Path):
    """There, with `durability="async"`, all 500 steps are made and kept in memory while the first one is written."""
    with Stalled(tmp_path / "stalled.db") as store:

        def count(state: Count) -> Command:
            number = state["number"] + 1
            if number == 100:
                store.is_far_ahead.set()
            return Command(update={"number": number}, goto="node" if number < 500 else END)

        graph = one_node(Count, count, checkpointer=store, durability="async")
        graph.invoke({"number": 0}, thread())

        assert store.ran_away is False
        assert graph.get_state(thread()).values == {"number": 500}
        assert sum(1 for _ in graph.get_state_history(thread())) == 501


@pytest.mark.complaint(40)
def test_paused_threads_hold_no_objects_in_memory(store: Store):
    """There, the saver that examples begin with keeps every thread as Python objects: about one per pause stays."""
    graph = one_node(State, asks_name, checkpointer=store)

    def objects_after(pauses: range) -> int:
        for number in pauses:
            graph.invoke({"log": [number]}, thread(number))
        gc.collect()
        # Python's sqlite3 tidies up the weak references to its cursors after every two hundred of them.
        return sum(type(found) is not ReferenceType for found in gc.get_objects())

    at_first, in_the_end = objects_after(range(20)), objects_after(range(20, 220))

    assert in_the_end - at_first < 100


@pytest.mark.complaint(40)
def test_store_in_memory_gives_back_what_a_deleted_thread_took():
    """There, deleting a thread empties the saver in memory too; nothing else ever does."""

    def pages_in_use(store: Store) -> int:
        total, free = (
            store.database.read(lambda tx, what=what: tx.connection.execute(f"PRAGMA {what}").fetchone()[0])
            for what in ("page_count", "freelist_count")
        )
        return int(total - free)

    with MemorySaver() as store:
        graph = one_node(State, asks_name, checkpointer=store)
        graph.invoke({}, thread("another"))
        before = pages_in_use(store)

        for number in range(5):
            graph.invoke({"log": [str(number) * 1_000_000]}, thread(number))
        assert pages_in_use(store) > before + 1000
        for number in range(5):
            store.delete_thread(str(number))

        assert pages_in_use(store) <= before + 2


@pytest.mark.complaint(41)
def test_messages_are_stored_in_little_more_than_their_text(store: Store, tmp_path: Path):
    """There, a message of 100 characters takes 240 bytes and more, most of them the name of its class and empty fields.

    Here it takes its text, its id, and less than 40 bytes.
    """
    said = [HumanMessage("x" * 100, id=f"{number:04}") for number in range(1000)]
    graph = one_node(MessagesState, lambda state: {}, checkpointer=store)

    graph.invoke({"messages": said}, thread())

    with closing(sqlite3.connect(tmp_path / "bide.db")) as database:
        newest = database.execute("SELECT max(length(body)) FROM blobs").fetchone()[0]
    assert 100_000 < newest < 140_000
    assert graph.get_state(thread()).values["messages"] == said
