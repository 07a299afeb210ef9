"""Complaints 29 to 35: running a store, day after day.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bide import Command, Store, interrupt
from tests.complaints.world import State
from tests.threads import one_node, thread


def asks_name(state: State) -> dict[str, Any]:
    return {"name": interrupt("Your name?")}


@pytest.mark.complaint(29)
def test_database_is_free_while_a_node_works(tmp_path: Path, url: str):
    """There, the PostgreSQL saver holds a connection that the server may close while a model thinks.

    Another program takes the whole database for itself while the node works. If the run held a connection in the
    middle of anything, one of the two would fail.
    """

    def thinks_long(state: State) -> dict[str, Any]:
        with closing(sqlite3.connect(tmp_path / "bide.db", timeout=0, isolation_level=None)) as another_program:
            another_program.execute("BEGIN EXCLUSIVE")
            another_program.execute("CREATE TABLE theirs (x)")
            another_program.execute("COMMIT")
        return {"name": "thought of"}

    with Store.open(url) as store:
        result = one_node(State, thinks_long, checkpointer=store).invoke({}, thread())

    assert result["name"] == "thought of"


@pytest.mark.complaint(34)
async def test_one_store_serves_blocking_and_async_calls_on_one_thread(store: Store):
    """There, a sync saver raises NotImplementedError in an async call, and the async saver is another class."""
    graph = one_node(State, asks_name, checkpointer=store)

    await graph.ainvoke({}, thread("asked by await"))
    answered_by_call = graph.invoke(Command(resume="Ada"), thread("asked by await"))
    graph.invoke({}, thread("asked by call"))
    answered_by_await = await graph.ainvoke(Command(resume="Bob"), thread("asked by call"))

    assert [answered_by_call["name"], answered_by_await["name"]] == ["Ada", "Bob"]
    assert (await graph.aget_state(thread("asked by call"))).values == graph.get_state(thread("asked by call")).values


@pytest.mark.complaint(34)
async def test_async_node_writes_to_the_same_store(store: Store):
    """There, an async saver made in one event loop cannot be used from another, nor without one."""

    async def asks(state: State) -> dict[str, Any]:
        return asks_name(state)

    graph = one_node(State, asks, checkpointer=store)
    await graph.ainvoke({}, thread())

    assert graph.get_state(thread()).interrupts[0].value == "Your name?"
    assert (await graph.ainvoke(Command(resume="Ada"), thread()))["name"] == "Ada"
