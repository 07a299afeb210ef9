"""A database in which every table that holds bodies has some, and ways to change a row behind the store's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from bide import START, CachePolicy, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.store.seal import Seal
from tests.threads import thread

LARGE = "a letter of more than a few words, " * 20
HUGE = "a book, " * 20_000
ITEM = {"colour": "green", "sizes": [1, 2, 3]}

COLUMNS = (
    ("checkpoints", "body"),
    ("channel_log", "body"),
    ("blobs", "body"),
    ("journal", "body"),
    ("waits", "question"),
    ("waits", "answer"),
    ("events", "body"),
    ("items", "body"),
    ("cache", "body"),
)
"""Every column that holds bodies."""


def shout(text: str) -> str:
    return text.upper()


def joined(before: list[Any], after: list[Any]) -> list[Any]:
    return before + after


class State(TypedDict, total=False):
    note: str
    letter: Any
    book: str
    said: Annotated[list[Any], joined]
    signed: Any
    sealed: Any
    known: Any


def graph_on(store: Store) -> CompiledGraph:
    """Three steps, then three tasks side by side: one finishes, one asks after a step, one only asks."""

    def write(state: State) -> dict[str, Any]:
        return {"note": "written", "letter": LARGE, "book": HUGE, "said": [LARGE, "one"]}

    def rewrite(state: State) -> dict[str, Any]:
        return {"note": "again", "said": ["two"]}

    def look_up(state: State) -> dict[str, Any]:
        return {"known": [1, 2]}

    def sign(state: State) -> dict[str, Any]:
        return {"signed": [step(shout, "ready"), interrupt("Who signs?")]}

    def seal(state: State) -> dict[str, Any]:
        return {"sealed": interrupt("Who seals?")}

    builder = StateGraph(State).add_sequence([write, rewrite]).add_edge(START, "write")
    builder.add_node("look_up", look_up, cache_policy=CachePolicy()).add_edge("rewrite", "look_up")
    for node in (sign, seal):
        builder.add_node(node.__name__, node).add_edge("look_up", node.__name__)
    return builder.compile(checkpointer=store)


def questions(graph: CompiledGraph, name: str) -> dict[str, str]:
    """The ids of a thread's open questions, by what they ask."""
    return {ask.value: ask.id for ask in graph.get_state(thread(name)).interrupts}


def build(path: Path, **options: Any) -> None:
    """Write a thread that is done, one that waits and has one of two answers, another that waits, and an item."""
    with Store.open(f"sqlite:///{path}", **options) as store:
        graph = graph_on(store)
        for name in ("done", "waiting", "other"):
            graph.invoke({"note": "begun"}, thread(name))
            asked = questions(graph, name)
            if name != "other":
                graph.invoke(Command(resume={asked["Who seals?"]: "Ada"}), thread(name))
            if name == "done":
                graph.invoke(Command(resume={asked["Who signs?"]: "Bob"}), thread(name))
        store.items.put(("mine", "too"), "one", ITEM)


class Place(NamedTuple):
    """One body: its table, its column, the key of its row, whose it is, and what is stored."""

    table: str
    column: str
    key: dict[str, Any]
    thread_id: str | None
    stored: bytes

    def __str__(self) -> str:
        return f"{self.table}.{self.column}{list(self.key.values())}"

    def write(self, database: sqlite3.Connection, stored: Any) -> None:
        """Put something else in its place."""
        where = " AND ".join(f"{name} IS :{name}" for name in self.key)
        changed = database.execute(
            f"UPDATE {self.table} SET {self.column} = :stored WHERE {where}", {**self.key, "stored": stored}
        )
        database.commit()
        assert changed.rowcount == 1


def attacker(path: Path) -> sqlite3.Connection:
    """A connection past the store."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous = OFF")
    return database


def bodies_in(path: Path, columns_of_bodies: tuple[tuple[str, str], ...] = COLUMNS) -> Iterator[Place]:
    """Every body of a database."""
    with closing(attacker(path)) as database:
        for table, column in columns_of_bodies:
            columns = database.execute(f"PRAGMA table_info({table})").fetchall()
            keys = [name for _, name, _, _, _, is_key in columns if is_key]
            thread_id = "thread_id" if "thread_id" in (name for _, name, *_ in columns) else "NULL"
            rows = database.execute(f"SELECT {', '.join(keys)}, {thread_id}, {column} FROM {table}").fetchall()
            for *key, owner, stored in rows:
                if stored is not None:
                    yield Place(table, column, dict(zip(keys, key, strict=True)), owner, stored)


def readers(store: Store, graph: CompiledGraph, name: str) -> dict[str, Callable[[], Any]]:
    """Every way to look at a thread, an item or a cached result, without changing anything."""
    return {
        "get_state": lambda: shown(graph.get_state(thread(name))),
        "get_state_history": lambda: [shown(state) for state in graph.get_state_history(thread(name))],
        "events": lambda: [event.body for event in store.events(name)],
        "open_waits": lambda: [wait.question for wait in store.open_waits()],
        "items.get": lambda: store.items.get(("mine", "too"), "one").value,
        "items.search": lambda: [item.value for item in store.items.search(("mine",), filter={"colour": "green"})],
    }


def shown(state: Any) -> tuple[Any, ...]:
    """What a snapshot shows."""
    return (state.values, state.next, [(ask.id, ask.value) for ask in state.interrupts], state.config, state.metadata)


class Listening:
    """A seal that remembers at which place each body was opened: so a test needs to know no layout of places."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal
        self.places: dict[bytes, str] = {}

    def open(self, place: str, sealed: bytes) -> bytes:
        self.places[sealed] = place
        return self._seal.open(place, sealed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seal, name)


def places_in(path: Path, seal: Seal) -> dict[str, dict[bytes, str]]:
    """Read everything once; return what each reader opened, and at which place."""
    listening = Listening(seal)
    opened = {}
    with Store.open(f"sqlite:///{path}", encryption=listening) as store:
        graph = graph_on(store)
        for name, read in readers(store, graph, "waiting").items():
            listening.places = opened[name] = {}
            read()
        listening.places = opened["run"] = {}
        graph.invoke({"note": "begun"}, thread("cached"))  # finds its cached result
        store.delete_thread("cached")
    return opened
