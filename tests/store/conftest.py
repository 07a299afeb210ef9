"""What the tests of the store share: a file, a clock that stands still, and threads that must not be lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.clock import Instant
from bide.store.sqlite import SqliteDatabase
from tests.threads import thread


class FakeClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: Instant = 1_700_000_000_000) -> None:
        self.instant = now

    def now(self) -> Instant:
        return self.instant

    def advance(self, milliseconds: int) -> None:
        self.instant += milliseconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database of this test is, or will be."""
    return tmp_path / "bide.db"


@pytest.fixture
def database(path: Path) -> Iterator[SqliteDatabase]:
    """An empty database in a file."""
    database = SqliteDatabase(str(path))
    yield database
    database.close()


class Letter(TypedDict):
    text: str
    signed_by: str


class Kept:
    """A database with two threads whose callers were told that they are saved: one has finished, one waits.

    `check()` opens it again and looks whether both are still there, whole, and whether the one that waits can go on.
    """

    text = "Dear reader, " * 100

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def write(self) -> Kept:
        self.finish("finished")
        with Store.open(self.url) as store:
            self.graph(store).invoke({"text": self.text}, thread("waiting"))
        return self

    def finish(self, name: str) -> None:
        """Run a thread from its beginning to its end."""
        with Store.open(self.url) as store:
            graph = self.graph(store)
            graph.invoke({"text": self.text}, thread(name))
            graph.invoke(Command(resume="Ada"), thread(name))

    @staticmethod
    def graph(store: Store) -> CompiledGraph:
        def write(state: Letter) -> dict[str, Any]:
            return {"text": step(str.upper, state["text"])}

        def sign(state: Letter) -> dict[str, Any]:
            who = interrupt({"question": "Who signs?", "draft": state["text"]})
            return {"signed_by": step(str.title, who)}

        graph = StateGraph(Letter)
        graph.add_sequence([write, sign])
        graph.add_edge(START, "write")
        graph.add_edge("sign", END)
        return graph.compile(checkpointer=store)

    def check(self) -> None:
        with Store.open(self.url) as store:
            graph = self.graph(store)
            finished, waiting = (graph.get_state(thread(name)) for name in ("finished", "waiting"))
            assert finished.values == {"text": self.text.upper(), "signed_by": "Ada"}
            assert waiting.values == {"text": self.text.upper()}
            assert [ask.value["question"] for ask in waiting.interrupts] == ["Who signs?"]
            assert [wait.thread_id for wait in store.open_waits()] == ["waiting"]
            result = graph.invoke(Command(resume="bob"), thread("waiting"))
        assert result.value == {"text": self.text.upper(), "signed_by": "Bob"}


@pytest.fixture
def kept(path: Path) -> Kept:
    return Kept(path).write()
