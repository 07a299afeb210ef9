"""A damaged checkpoint is told, with the last good one, and the thread goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import pytest

from bide import CompiledGraph, CorruptDataError, Store, ThreadDeletedError
from bide.engine.flow import advance
from bide.engine.opening import Request
from bide.graph.hold import Hold
from bide.graph.recorder import Recorder
from tests.threads import one_node, thread


class Count(TypedDict):
    number: int


def graph_on(store: Store) -> CompiledGraph:
    return one_node(Count, lambda state: {"number": state["number"] + 1}, checkpointer=store)


def damage(store: Store, seq: int) -> None:
    """Change one byte of a checkpoint behind the store's back."""

    def change(tx: Any) -> None:
        (body,) = tx.connection.execute("SELECT body FROM checkpoints WHERE seq = ?", (seq,)).fetchone()
        flipped = body[:-1] + bytes([body[-1] ^ 1])
        tx.connection.execute("UPDATE checkpoints SET body = ? WHERE seq = ?", (flipped, seq))

    store.database.write("test", change)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        yield store


def test_error_names_the_thread_and_the_last_good_checkpoint_and_a_fork_from_there_goes_on(store: Store):
    graph = graph_on(store)
    for number in range(3):
        graph.invoke({"number": 10 * number}, thread())
    damage(store, 6)

    with pytest.raises(CorruptDataError, match=r"'t' cannot be read at checkpoint 6.*damaged.*fork\(config\)") as told:
        graph.invoke({"number": 7}, thread())

    good = {"configurable": {"thread_id": "t", "checkpoint_id": told.value.last_good}}
    assert graph.get_state(good).values == {"number": 20}
    graph.fork(good)
    assert graph.invoke(None, thread())["number"] == 21


def test_history_is_read_up_to_the_damage(store: Store):
    graph = graph_on(store)
    for number in range(3):
        graph.invoke({"number": 10 * number}, thread())
    damage(store, 3)

    history = graph.get_state_history(thread())

    assert [next(history).values["number"] for _ in range(3)] == [21, 20, 11]
    with pytest.raises(CorruptDataError, match="damaged"):
        next(history)


def test_thread_without_a_good_checkpoint_says_so(store: Store):
    graph = graph_on(store)
    graph.invoke({"number": 1}, thread())
    for seq in (1, 2):
        damage(store, seq)

    with pytest.raises(CorruptDataError, match="restore a backup") as told:
        graph.get_state(thread())

    assert told.value.last_good is None


@pytest.mark.complaint(38)
def test_whoever_read_a_thread_before_it_was_deleted_does_not_bring_it_back(store: Store):
    graph = graph_on(store)
    graph.invoke({"number": 1}, thread())
    late = Recorder(Hold(store, "t", "sync"), graph.spec)
    flow = advance(graph.spec, Request({"number": 5}))
    begin = flow.send(late.perform(flow.send(None)))
    store.delete_thread("t")

    with pytest.raises(ThreadDeletedError, match="deleted since it was read"):
        late.perform(begin)

    assert store.threads() == []
    assert graph.invoke({"number": 3}, thread())["number"] == 4


def test_life_that_was_deleted_is_not_taken_for_the_new_one_under_the_same_id(store: Store):
    graph = graph_on(store)
    graph.invoke({"number": 1}, thread())
    old = graph.get_state(thread()).config
    store.delete_thread("t")
    graph.invoke({"number": 5}, thread())

    with pytest.raises(LookupError, match="deleted"):
        graph.get_state(old)
