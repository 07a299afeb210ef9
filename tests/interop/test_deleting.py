"""Deleting, pruning and copying threads: what goes is gone, what stays can be read, and nothing comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from bide import Store
from bide.errors import ConflictError, ThreadDeletedError
from bide.interop.langgraph import BideSaver
from bide.store.database import queries
from tests.interop.graphs import CONFIG, RESUME, Log, asking, chat, checkpoint, delta, outer, say

LONG = "word " * 200


def rows_of(saver: BideSaver, thread_id: str = "t") -> dict[str, int]:
    """How many rows each table has for a thread."""
    listings = {
        "checkpoints": "saver_thread_checkpoints",
        "values": "saver_thread_values",
        "writes": "saver_written_on",
    }
    assert set(listings.values()) <= queries().keys()
    return saver.store.database.read(
        lambda tx: {name: len(tx.all(query, {"thread_id": thread_id})) for name, query in listings.items()}
    )


NOTHING = {"checkpoints": 0, "values": 0, "writes": 0}


def test_a_deleted_thread_leaves_nothing_behind(saver: BideSaver) -> None:
    graph = outer().compile(checkpointer=saver)
    graph.invoke({"log": [LONG]}, CONFIG)

    saver.delete_thread("t")

    assert rows_of(saver) == NOTHING
    assert graph.get_state(CONFIG).created_at is None


def test_a_new_conversation_may_take_the_id_of_a_deleted_one(saver: BideSaver) -> None:
    graph = asking().compile(checkpointer=saver)
    for answer in ("first", "second"):
        graph.invoke({"log": [answer]}, CONFIG, durability="async")
        state = graph.invoke(RESUME, CONFIG, durability="exit")

        assert state["log"] == [answer, "prepared", "answered yes"]
        saver.delete_thread("t")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_whose_thread_is_deleted_meanwhile_does_not_bring_it_back(saver: BideSaver, durability: str) -> None:
    def delete(state: Log) -> Log:
        saver.delete_thread("t")
        return {"log": ["too late"]}

    builder = StateGraph(Log).add_node(delete).add_node("after", lambda state: {"log": ["after"]})
    graph = builder.add_edge(START, "delete").add_edge("delete", "after").compile(checkpointer=saver)
    chat().compile(checkpointer=saver).invoke(say("hello"), CONFIG)

    with pytest.raises(ThreadDeletedError, match="stays deleted"):
        graph.invoke({"log": [LONG]}, CONFIG, durability=durability)

    # In the background, writes may be saved on a checkpoint that never comes: nobody sees them, and they go as soon as
    # the thread begins anew.
    left = rows_of(saver)
    assert left["checkpoints"] == left["values"] == 0
    assert left["writes"] == 0 or durability == "async"
    assert saver.get_tuple(CONFIG) is None  # type: ignore[arg-type]
    chat().compile(checkpointer=saver).invoke(say("anew"), CONFIG, durability="sync")
    assert rows_of(saver) == {"checkpoints": 3, "values": 0, "writes": 2}


def test_a_graph_inside_a_deleted_thread_does_not_bring_it_back(saver: BideSaver) -> None:
    def delete(state: Log) -> Log:
        saver.delete_thread("t")
        return {"log": ["too late"]}

    inner = StateGraph(Log).add_node("first", delete).add_edge(START, "first").compile()
    graph = StateGraph(Log).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)

    with pytest.raises(ThreadDeletedError):
        graph.invoke({"log": [LONG]}, CONFIG, durability="sync")

    assert rows_of(saver) == NOTHING


def test_late_writes_on_a_deleted_checkpoint_are_refused(saver: BideSaver) -> None:
    graph = asking().compile(checkpointer=saver)
    graph.invoke({"log": []}, CONFIG)
    old = graph.get_state(CONFIG).config
    saver.delete_thread("t")
    graph.invoke({"log": ["new life"]}, CONFIG)

    with pytest.raises(ThreadDeletedError, match="'t'"):
        saver.put_writes(old, [("log", ["late"])], "task-1")

    assert graph.get_state(CONFIG).values["log"] == ["new life", "prepared"]


def test_writes_may_come_before_their_checkpoint(saver: BideSaver) -> None:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "1ef-first"}}
    saver.put_writes(config, [("log", ["early"])], "task-1")  # type: ignore[arg-type]
    nothing_yet = saver.get_tuple(CONFIG)  # type: ignore[arg-type]

    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint("1ef-first"), {}, {})

    found = saver.get_tuple(CONFIG)  # type: ignore[arg-type]
    assert nothing_yet is None
    assert found is not None
    assert found.pending_writes == [("task-1", "log", ["early"])]


def test_a_checkpoint_that_is_put_again_takes_the_place_of_the_first(saver: BideSaver) -> None:
    base: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    first = saver.put(base, checkpoint("1", log=[LONG]), {}, {"log": 1})
    second = saver.put(first, checkpoint("2", log=[LONG, "b"]), {}, {"log": 1})

    saver.put(base, checkpoint("1", log=["other" + LONG]), {}, {"log": 1})

    values = [found.checkpoint["channel_values"]["log"] for found in map(saver.get_tuple, (first, second)) if found]
    assert values == [["other" + LONG], [LONG, "b"]]


def test_pruning_keeps_the_newest_checkpoint_and_what_it_is_made_of(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)
    for turn in range(5):
        graph.invoke(say(f"{turn} {LONG}"), CONFIG)
    before = graph.get_state(CONFIG)

    saver.prune(["t"])

    after = graph.get_state(CONFIG)
    assert rows_of(saver)["checkpoints"] == 1
    assert (after.values, after.config) == (before.values, before.config)
    graph.invoke(say("go on"), CONFIG)
    assert len(graph.get_state(CONFIG).values["messages"]) == 12


def test_a_pruned_pause_can_still_be_answered(saver: BideSaver) -> None:
    graph = outer().compile(checkpointer=saver)
    graph.invoke({"log": [LONG]}, CONFIG)

    saver.prune(["t"])
    answered = graph.invoke(RESUME, CONFIG)

    assert answered["log"] == [LONG, LONG, "prepared", "answered yes", "after"]


@pytest.mark.parametrize("turns", range(1, 8))
def test_pruning_leaves_delta_channels_whole(saver: BideSaver, turns: int) -> None:
    graph = delta().compile(checkpointer=saver)
    for turn in range(turns):
        graph.invoke({"lines": [f"{turn} {LONG}"]}, CONFIG)
    before = graph.get_state(CONFIG).values

    saver.prune(["t"])

    assert graph.get_state(CONFIG).values == before
    assert len(before["lines"]) == 2 * turns


def test_runs_are_not_deleted_under_delta_channels_that_need_them(saver: BideSaver) -> None:
    graph = delta().compile(checkpointer=saver)
    for run in ("one", "two"):
        graph.invoke({"lines": [run]}, {"configurable": {"thread_id": "t", "run_id": run}})
    before = graph.get_state(CONFIG).values

    with pytest.raises(ConflictError, match="delta channels"):
        saver.delete_for_runs(["one"])

    assert graph.get_state(CONFIG).values == before


def test_deleting_a_run_brings_back_the_state_before_it(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)
    for run in ("one", "two"):
        graph.invoke(say(f"{run} {LONG}"), {"configurable": {"thread_id": "t", "run_id": run}})

    saver.delete_for_runs(["two"])

    said = [message.content for message in graph.get_state(CONFIG).values["messages"]]
    assert said == [f"one {LONG}", f"You said: one {LONG}"]


def test_a_copy_lives_its_own_life(saver: BideSaver) -> None:
    graph = outer().compile(checkpointer=saver)
    graph.invoke({"log": [LONG]}, CONFIG)
    other: Any = {"configurable": {"thread_id": "other"}}

    saver.copy_thread("t", "other")
    answered = graph.invoke(RESUME, other)
    saver.delete_thread("other")

    assert answered["log"] == [LONG, LONG, "prepared", "answered yes", "after"]
    assert graph.get_state(CONFIG).next == ("inner",)
    assert graph.invoke(RESUME, CONFIG) == answered


def test_a_copy_onto_a_thread_that_is_there_is_refused(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)
    graph.invoke(say("one"), CONFIG)
    graph.invoke(say("two"), {"configurable": {"thread_id": "other"}})

    with pytest.raises(ConflictError, match="'other' has checkpoints of its own"):
        saver.copy_thread("t", "other")

    assert graph.get_state({"configurable": {"thread_id": "other"}}).values["messages"][0].content == "two"


def test_a_thread_of_ours_with_the_same_id_is_another_thread(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)
    graph.invoke(say("x" * 100_000), CONFIG)

    saver.store.delete_thread("t")

    assert len(graph.get_state(CONFIG).values["messages"]) == 2


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda saver: saver.prune(["t"], strategy="keep_some"), "'keep_latest' or 'delete'"),
        (lambda saver: saver.prune("thread"), r"Write \['thread'\]"),
        (lambda saver: saver.get_tuple({"configurable": {}}), "thread_id"),
        (lambda saver: list(saver.list(CONFIG, filter="source")), "dict of metadata"),
    ],
)
def test_what_was_meant_otherwise_is_told_what_to_write(
    saver: BideSaver, use: Callable[[BideSaver], Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        use(saver)


def test_large_bodies_go_with_the_last_checkpoint_that_holds_them(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)
    for turn in range(4):
        graph.invoke(say(f"{turn}" * 100_000), CONFIG)
    many = large_bodies(saver.store)

    saver.prune(["t"])
    few = large_bodies(saver.store)
    whole = [len(message.content) for message in graph.get_state(CONFIG).values["messages"]]
    saver.delete_thread("t")

    assert many > few > 0
    assert whole == [100_000, 100_010] * 4
    assert large_bodies(saver.store) == 0


def large_bodies(store: Store) -> int:
    """How many large bodies there are."""
    found = store.database.read(lambda tx: tx.connection.execute("SELECT COUNT(*) FROM blobs").fetchall())
    count: int = found[0][0]
    return count


async def test_the_same_for_async_callers(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)
    await graph.ainvoke(say(LONG), CONFIG)

    await saver.acopy_thread("t", "copy")
    await saver.adelete_thread("t")
    await saver.aprune(["copy"])

    kept = [found async for found in saver.alist({"configurable": {"thread_id": "copy"}})]
    assert (await saver.aget_tuple(CONFIG), len(kept)) == (None, 1)  # type: ignore[arg-type]
    assert asyncio.get_running_loop().is_running()
