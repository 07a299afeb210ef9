"""The lives of threads: one that runs, one that is deleted, and one whose graph has changed meanwhile."""

from __future__ import annotations

import operator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest

from bide import Command, CompiledGraph, MemorySaver, Store, interrupt
from bide.errors import GraphChanged, LeaseLostError, ThreadBusyError, UnknownCheckpointError
from tests.threads import in_a_row, one_node, thread


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    way: str


def logging(name: str) -> Any:
    return lambda state: {"log": [name]}


def abc(store: Store, **options: Any) -> CompiledGraph:
    return in_a_row(Log, {name: logging(name) for name in "abc"}, checkpointer=store, **options)


class Held:
    """A call that is held in the middle of its node for the length of a `with` block."""

    def __init__(self, store: Store) -> None:
        self.has_begun, self.may_end = Event(), Event()
        self.graph = one_node(Log, self.node, checkpointer=store)
        self.pool = ThreadPoolExecutor(1)

    def node(self, state: Log) -> Log:
        self.has_begun.set()
        assert self.may_end.wait(20)
        return {"log": ["done"]}

    def __enter__(self) -> Future[Any]:
        self.call = self.pool.submit(self.graph.invoke, {"log": []}, thread())
        assert self.has_begun.wait(20)
        return self.call

    def __exit__(self, *_: object) -> None:
        self.may_end.set()
        self.pool.shutdown()


def test_thread_that_runs_can_be_looked_at_and_takes_no_second_run_and_no_edit(store: Store):
    held = Held(store)

    with held as call:
        assert held.graph.get_state(thread()).next == ("node",)
        for meddle in (
            lambda: held.graph.invoke({"log": []}, thread()),
            lambda: held.graph.invoke(None, thread()),
            lambda: held.graph.update_state(thread(), {"log": ["edit"]}),
        ):
            with pytest.raises(ThreadBusyError):
                meddle()

    assert call.result()["log"] == ["done"]


def test_run_whose_thread_is_deleted_under_it_writes_nothing(store: Store):
    held = Held(store)

    with held as call:
        store.delete_thread("t")

    with pytest.raises(LeaseLostError, match="deleted"):
        call.result()
    assert held.graph.get_state(thread()).created_at is None


def test_deleted_thread_leaves_nothing_and_its_checkpoints_are_unknown(store: Store):
    graph = one_node(Log, lambda state: interrupt("?"), checkpointer=store)
    config = thread(7)
    graph.invoke({"log": []}, config)
    old = graph.get_state(config).config

    store.delete_thread(7)

    assert graph.get_state(config).created_at is None
    assert (store.open_waits(), store.threads(), store.events("7")) == ([], [], [])
    with pytest.raises(UnknownCheckpointError):
        graph.get_state(old)
    assert graph.invoke({"log": ["new"]}, config)["log"] == ["new"]


def test_thread_before_a_node_that_is_gone_is_an_error_that_names_it(store: Store):
    abc(store, interrupt_before=["b"]).invoke({"log": []}, thread())
    renamed = in_a_row(Log, {name: logging(name) for name in ("a", "bb", "c")}, checkpointer=store)

    with pytest.raises(GraphChanged, match=r"'b'.*Known nodes: 'a', 'bb', 'c'"):
        renamed.invoke(None, thread())

    assert abc(store).invoke(None, thread())["log"] == ["a", "b", "c"]


@pytest.mark.complaint(42)
def test_thread_before_a_node_that_is_gone_can_be_moved_on(store: Store):
    abc(store, interrupt_before=["b"]).invoke({"log": []}, thread())
    renamed = in_a_row(Log, {name: logging(name) for name in ("a", "bb", "c")}, checkpointer=store)

    renamed.update_state(thread(), None, as_node="a")

    assert renamed.invoke(None, thread())["log"] == ["a", "bb", "c"]


def test_thread_with_a_key_that_is_gone_is_an_error_that_names_it(store: Store):
    abc(store, interrupt_before=["b"]).invoke({"log": [], "way": "left"}, thread())

    class Less(TypedDict):
        log: Annotated[list[str], operator.add]

    changed = in_a_row(Less, {name: logging(name) for name in "abc"}, checkpointer=store)

    with pytest.raises(GraphChanged, match=r"'way'.*Known keys: log"):
        changed.invoke(None, thread())


def test_graph_may_grow_while_a_thread_waits(store: Store):
    abc(store, interrupt_before=["b"]).invoke({"log": []}, thread())

    class More(Log):
        extra: int

    grown = in_a_row(More, {name: logging(name) for name in "abcd"}, checkpointer=store)

    assert grown.invoke(None, thread())["log"] == ["a", "b", "c", "d"]


def test_graphs_of_one_store_may_read_each_others_threads_by_id():
    with MemorySaver() as store:
        abc(store).invoke({"log": []}, thread())

        assert abc(store, name="other").get_state(thread()).values == {"log": ["a", "b", "c"]}


# ── A graph that gets its store later ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("S3-06")
def test_store_may_be_attached_after_compiling(store: Store):
    graph = one_node(Log, lambda state: {"log": [interrupt("ready?")]})

    graph.checkpointer = store
    paused = graph.invoke({"log": []}, thread())

    assert paused.interrupt_value == "ready?"
    assert graph.invoke(Command(resume="yes"), thread())["log"] == ["yes"]
