"""Every operation of the store that writes, each as something that a user does, and what the database then holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from bide import START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from tests.faults.aimed import PLAIN
from tests.faults.shop import State
from tests.threads import thread

JOB = thread("job")
INPUT = {"order": "7", "told": []}


class Operation(NamedTuple):
    """A write: what it is called, what comes before it, and the call in which it happens."""

    target: str
    act: Callable[[Store, str], Any]
    before: Callable[[Store, str], Any] = lambda store, schema: None


def graph_of(store: Store, *nodes: Callable[[State], Any]) -> CompiledGraph:
    return StateGraph(State).add_sequence(nodes).add_edge(START, nodes[0].__name__).compile(checkpointer=store)


# ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def greet(state: State) -> dict[str, Any]:
    return {"told": ["welcome"]}


def part(state: State) -> dict[str, Any]:
    return {"told": ["good-bye"]}


def count_up(state: State) -> dict[str, Any]:
    return {"told": [str(step(len, state["told"]))]}


def ask(state: State) -> dict[str, Any]:
    return {"told": [interrupt("Go on?")]}


# ── What a user does ───────────────────────────────────────────────────────────────────────────────────────────────


def run(*nodes: Callable[[State], Any]) -> Callable[[Store, str], Any]:
    return lambda store, schema: graph_of(store, *nodes).invoke(INPUT, JOB).value


def run_booking(store: Store, schema: str) -> Any:
    def book(connection: Any) -> str:
        connection.execute(f"INSERT INTO {schema}.bookings (booked, what) VALUES (%s, %s)", ("7", "packed"))
        return "booked"

    def pack(state: State) -> dict[str, Any]:
        return {"told": [step(book, effect="tx")]}

    return graph_of(store, pack).invoke(INPUT, JOB).value


def answer(store: Store, schema: str) -> Any:
    return graph_of(store, ask).invoke(Command(resume="yes"), JOB).value


def edit(store: Store, schema: str) -> Any:
    graph_of(store, greet).update_state(JOB, {"told": ["edited"]})


def remember(store: Store, schema: str) -> Any:
    store.items.put(("memories",), "first", {"text": "hello"})


def forget(store: Store, schema: str) -> Any:
    store.items.delete(("memories",), "first")


def run_and_leave(store: Store, schema: str) -> Any:
    run(greet)(store, schema)
    store.close()


OPERATIONS = {
    "begin": Operation("begin", run(greet)),
    "begin with an answer": Operation("begin", answer, run(ask)),
    "plain step": Operation(PLAIN + "commit", run(greet, part)),
    "step with a journal": Operation("commit", run(count_up, part)),
    "pause": Operation("commit", run(ask)),
    "end": Operation("commit", run(greet)),
    "journal": Operation("journal", run(count_up)),
    "transact": Operation("transact", run_booking),
    "edit": Operation("edit", edit, run(greet)),
    "delete": Operation("delete", lambda store, schema: store.delete_thread("job"), run(greet)),
    "put item": Operation("items", remember),
    "delete item": Operation("items", forget, remember),
    "leave": Operation("leave", run_and_leave),
}

_SEEN = {
    "threads": "thread_id, events",
    "runs": "thread_id, status, epoch",
    "checkpoints": "thread_id, ns, seq, parent, step, source, epoch",
    "journal": "thread_id, task_id, key, kind, phase, name",
    "waits": "thread_id, node, key, status, consumed",
    "events": "thread_id, number, seq, kind",
    "items": "namespace, key, body",
    "tombstones": "thread_id",
    "bookings": "booked, what",
}


def picture(dsn: str, schema: str) -> dict[str, list[Any]]:
    """Everything in the database that is the same whenever the same things have happened."""
    with psycopg.connect(dsn, options=f"-c search_path={schema}") as database:
        return {
            table: database.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}").fetchall()
            for table, columns in _SEEN.items()
        }


def wipe(dsn: str, schema: str) -> None:
    """Take everything out of the tables."""
    with psycopg.connect(dsn, options=f"-c search_path={schema}") as database:
        for table in (*_SEEN, "workers", "outcomes", "channel_log"):
            database.execute(f"DELETE FROM {table}")
