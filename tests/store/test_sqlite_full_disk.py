"""A disk that is full, or fails: the caller is told, nothing that was acknowledged is lost, and it goes on afterwards.

Two ways to have one, which work for every user. `PRAGMA max_page_count` makes SQLite itself say that the disk is full.
A limit on the size of files makes the system refuse to write, in the middle of whatever is being written.
"""

from __future__ import annotations

import operator
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.errors import StoreUnavailableError
from tests.threads import thread

BIG = "x" * 300_000


class Log(TypedDict):
    lines: Annotated[list[str], operator.add]


@contextmanager
def pages_run_out(store: Store) -> Iterator[None]:
    """SQLite may not make its file larger."""

    def limit(pages: int) -> None:
        store.database.write("test", lambda tx: tx.connection.execute(f"PRAGMA max_page_count = {pages}"))

    limit(1)  # SQLite takes the present size for a limit that is smaller
    try:
        yield
    finally:
        limit(1_000_000)


@contextmanager
def files_may_not_grow(store: Store) -> Iterator[None]:
    """The system refuses every write beyond the present end of the database's largest file."""
    folder = Path(store.database.path).parent
    largest = max(file.stat().st_size for file in folder.iterdir())
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


class Disk:
    """A disk that can be full for a while."""

    def __init__(self, kind: Callable[[Store], Any]) -> None:
        self.kind = kind
        self.stack = ExitStack()

    def fill(self, store: Store) -> None:
        self.stack.enter_context(self.kind(store))

    def free(self) -> None:
        self.stack.close()


@pytest.fixture(params=[pages_run_out, files_may_not_grow])
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    disk = Disk(request.param)
    yield disk
    disk.free()


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{path}") as store:
        yield store


def writer(store: Store, calls: list[str], fill: Callable[[Store], object] = lambda store: None) -> CompiledGraph:
    """Two nodes, both with a step; when the second is to write something big, the disk may be full."""

    def first(state: Log) -> dict[str, Any]:
        step(calls.append, "first")
        return {"lines": ["first"]}

    def second(state: Log) -> dict[str, Any]:
        step(calls.append, "second")
        fill(store)
        return {"lines": [BIG]}

    graph = StateGraph(Log).add_sequence([first, second]).add_edge(START, "first")
    return graph.compile(checkpointer=store)


def asker(store: Store, fill: Callable[[Store], object] = lambda store: None, question: str = "What?") -> CompiledGraph:
    """One node that asks; before it does, the disk may become full."""

    def ask(state: Log) -> dict[str, Any]:
        fill(store)
        return {"lines": [interrupt(question)]}

    return StateGraph(Log).add_node(ask).add_edge(START, "ask").compile(checkpointer=store)


# ── In the middle of a run ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_thread_goes_on_in_the_same_process_when_there_is_space_again(store, disk, durability):
    calls: list[str] = []

    with pytest.raises(StoreUnavailableError):
        writer(store, calls, disk.fill).invoke({"lines": ["input"]}, thread(), durability=durability)
    disk.free()
    result = writer(store, calls).invoke(None, thread(), durability=durability)

    assert result["lines"] == ["input", "first", BIG]
    assert calls == ["first", "second"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_thread_goes_on_in_another_process_when_there_is_space_again(store, disk, durability, path):
    calls: list[str] = []
    with pytest.raises(StoreUnavailableError):
        writer(store, calls, disk.fill).invoke({"lines": ["input"]}, thread(), durability=durability)
    disk.free()
    store.close()

    with Store.open(f"sqlite:///{path}") as again:
        kept = writer(again, calls).get_state(thread())
        result = writer(again, calls).invoke(None, thread())

    assert kept.values == {"lines": ["input", "first"]}
    assert result["lines"] == ["input", "first", BIG]
    assert calls == ["first", "second"]


def test_question_that_does_not_fit_is_asked_when_there_is_space_again(store, disk):
    with pytest.raises(StoreUnavailableError):
        asker(store, disk.fill, question=BIG).invoke({"lines": []}, thread())
    disk.free()

    paused = asker(store, question=BIG).invoke(None, thread())

    assert paused.interrupt_value == BIG
    assert asker(store, question=BIG).invoke(Command(resume="yes"), thread())["lines"] == ["yes"]


def test_other_threads_go_on_while_one_does_not_fit(store):
    with pages_run_out(store):
        store.database.write("test", lambda tx: tx.connection.execute("PRAGMA max_page_count = 60"))
        paused = asker(store).invoke({"lines": []}, thread("small"))
        with pytest.raises(StoreUnavailableError):
            writer(store, []).invoke({"lines": []}, thread("big"))
        result = asker(store).invoke(Command(resume="still here"), thread("small"))

    assert paused.is_interrupted
    assert result["lines"] == ["still here"]
    assert writer(store, []).get_state(thread("big")).next == ("second",)


# ── Before a run ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_input_that_does_not_fit_starts_nothing(store, disk):
    calls: list[str] = []
    disk.fill(store)

    with pytest.raises(StoreUnavailableError):
        writer(store, calls).invoke({"lines": [BIG]}, thread())
    disk.free()

    assert calls == []
    assert store.threads() == []
    assert writer(store, calls).invoke({"lines": [BIG]}, thread())["lines"] == [BIG, "first", BIG]


def test_answer_that_does_not_fit_leaves_the_question_open(store, disk):
    graph = asker(store)
    graph.invoke({"lines": []}, thread())
    disk.fill(store)

    with pytest.raises(StoreUnavailableError):
        graph.invoke(Command(resume=BIG), thread())
    disk.free()

    assert [ask.value for ask in graph.get_state(thread()).interrupts] == ["What?"]
    assert graph.invoke(Command(resume="short"), thread())["lines"] == ["short"]


# ── What is said ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_full_disk_is_named_with_what_to_do(store):
    with pages_run_out(store), pytest.raises(StoreUnavailableError) as refusal:
        writer(store, []).invoke({"lines": [BIG]}, thread())

    assert "is full" in str(refusal.value)
    assert "Free some space and go on with invoke(None, config)" in str(refusal.value)


def test_failing_disk_is_named_with_what_to_look_at(store, path):
    with files_may_not_grow(store), pytest.raises(StoreUnavailableError) as refusal:
        writer(store, []).invoke({"lines": [BIG]}, thread())

    assert str(path) in str(refusal.value)
    assert "disk" in str(refusal.value)


# ── Opening and closing ────────────────────────────────────────────────────────────────────────────────────────────


def test_store_is_closed_on_a_full_disk_and_whole_when_it_is_opened_again(store, path):
    asker(store).invoke({"lines": []}, thread())

    with files_may_not_grow(store):
        store.close()

    with Store.open(f"sqlite:///{path}") as again:
        assert asker(again).invoke(Command(resume="yes"), thread())["lines"] == ["yes"]


def test_new_store_on_a_full_disk_is_refused_and_made_when_there_is_space(path):
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StoreUnavailableError) as refusal:
            Store.open(f"sqlite:///{path}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))

    assert str(path) in str(refusal.value)
    with Store.open(f"sqlite:///{path}") as store:
        assert writer(store, []).invoke({"lines": []}, thread())["lines"] == ["first", BIG]
