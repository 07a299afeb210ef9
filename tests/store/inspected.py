"""A store with a little of everything in it, and ways to damage it behind its back."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.store.database import Transaction
from bide.store.stored_rows import Table, Values, rows
from tests.stores import SCHEMA
from tests.threads import in_a_row, thread

LARGE = "large " * 20_000
"""More than a row takes: it becomes a blob."""


class Paper(TypedDict):
    text: str
    log: Annotated[list[str], operator.add]
    a: int
    b: int
    c: int
    d: int
    e: int
    signed_by: str


class Counted(TypedDict):
    count: int


FIRST: dict[str, Any] = {"text": LARGE, "log": ["begun " * 60], "a": 0, "b": 0, "c": 0, "d": 0, "e": 0}


def paper_graph(store: Store, **options: Any) -> CompiledGraph:
    """Writes large and small values in several steps, makes a step, and asks who signs."""

    def write(number: int) -> Callable[[Paper], dict[str, Any]]:
        return lambda state: {"log": [f"line {number} " * 40], "a": number}

    def sign(state: Paper) -> dict[str, Any]:
        step(str, "looked up")
        return {"signed_by": interrupt("Who signs?"), "log": ["signed " * 40]}

    graph = StateGraph(Paper)
    graph.add_sequence([("one", write(1)), ("two", write(2)), ("three", write(3)), ("sign", sign)])
    graph.add_edge(START, "one")
    graph.add_edge("sign", END)
    return graph.compile(checkpointer=store, **options)


def count_graph(store: Store, **options: Any) -> CompiledGraph:
    """Counts to three: small values, nothing else."""
    nodes = {name: lambda state: {"count": state["count"] + 1} for name in ("one", "two", "three")}
    return in_a_row(Counted, nodes, checkpointer=store, **options)


def fill(store: Store) -> Store:
    """Three threads: one that is done, one that waits, one that has only counted."""
    graph = paper_graph(store)
    graph.invoke(FIRST, thread("done"))
    graph.invoke(Command(resume="Ada"), thread("done"))
    graph.invoke(FIRST, thread("waiting"))
    count_graph(store).invoke({"count": 0}, thread("counted"))
    store.items.put(("users",), "ada", {"colour": "green"})
    return store


# ── Behind the store's back ────────────────────────────────────────────────────────────────────────────────────────


def execute(store: Store, *statements: str) -> int:
    """Run statements; return how many rows the last of them changed."""

    def run(tx: Transaction) -> int:
        if hasattr(store.database, "statements"):
            tx.run("look_only_in", {"schema": SCHEMA})
        return [int(tx.connection.execute(statement).rowcount) for statement in statements][-1]

    return store.database.write("test", run)


def all_rows(store: Store, table: Table, thread_id: str | None = None) -> list[Values]:
    """Read rows as they are stored."""
    return store.database.read(lambda tx: list(rows(tx, table, thread_id)))


def change_body(store: Store, table: Table, row: Values, column: str, new: bytes) -> None:
    """Put other bytes in the place of a body."""
    key = {name: row[name] for name in (*table.key, *(["thread_id"] if "thread_id" in row else []))}
    params = {**key, "old": row[column], "new": new}
    assert store.database.write("test", lambda tx: tx.run(f"reseal_{table.name}_{column}", params)) == 1


def forge(store: Store, table: Table, row: Values, **changes: Any) -> None:
    """Insert a row like another one, changed and sealed as if the store had written it."""
    fresh = {**row, **changes}

    def insert(tx: Transaction) -> None:
        for column, place in table.places.items():
            if column not in changes and row[column] is not None:
                body = store.bodies.open(tx, place(row), row[column])
                fresh[column] = store.bodies.seal.close(place(fresh), body)
        tx.run(f"import_{table.name}", fresh)

    store.database.write("test", insert)
