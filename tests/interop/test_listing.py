"""Lists of checkpoints: newest first, filtered by typed values, read a page at a time."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from bide.interop.langgraph import BideSaver
from bide.interop.langgraph.reading import PAGE, SCANNED
from tests.interop.graphs import checkpoint

MANY = SCANNED + PAGE + 7


@pytest.fixture
def full(saver: BideSaver) -> BideSaver:
    """Two threads, one of them with more checkpoints than a page has, in two graphs."""
    config: Any = {"configurable": {"thread_id": "long", "checkpoint_ns": ""}}
    for number in range(MANY):
        metadata: Any = {"step": number, "source": "loop" if number % 100 else "input", "even": number % 2 == 0}
        config = saver.put(config, checkpoint(f"{number:04}", log=["x" * 300, number]), metadata, {"log": 1})
    inner: Any = {"configurable": {"thread_id": "long", "checkpoint_ns": "inner"}}
    saver.put(inner, checkpoint("0003i"), {"step": 0}, {})
    saver.put({"configurable": {"thread_id": "short", "checkpoint_ns": ""}}, checkpoint("0005"), {"step": 1}, {})
    return saver


LONG: Any = {"configurable": {"thread_id": "long", "checkpoint_ns": ""}}


def steps(saver: BideSaver, *args: Any, **options: Any) -> list[int]:
    return [found.metadata["step"] for found in saver.list(*args, **options)]


def test_all_of_it_comes_newest_first_each_with_its_own_values(full: BideSaver) -> None:
    found = list(full.list(LONG))

    assert [one.metadata["step"] for one in found] == list(range(MANY))[::-1]
    assert [one.checkpoint["channel_values"]["log"][1] for one in found] == list(range(MANY))[::-1]


def test_filters_look_at_every_page(full: BideSaver) -> None:
    assert steps(full, LONG, filter={"source": "input"}) == [200, 100, 0]
    assert steps(full, LONG, filter={"source": "input"}, limit=2) == [200, 100]
    assert steps(full, LONG, filter={"source": "input", "step": 100}) == [100]
    assert len(steps(full, LONG, filter={"source": "loop"})) == MANY - 3


def test_filters_compare_values_and_their_types(full: BideSaver) -> None:
    assert steps(full, LONG, filter={"step": True}) == []
    assert steps(full, LONG, filter={"step": "1"}) == []
    assert steps(full, LONG, filter={"even": 1}) == []
    assert steps(full, LONG, filter={"nowhere": None}, limit=1) == [MANY - 1]
    assert steps(full, LONG, filter={"step' OR '1'='1": 1}) == []
    assert len(steps(full, LONG, filter={"even": True})) == (MANY + 1) // 2


def test_a_list_ends_where_it_is_told_to(full: BideSaver) -> None:
    before: Any = {"configurable": {"thread_id": "long", "checkpoint_id": "0003"}}

    assert steps(full, LONG, before=before) == [2, 1, 0]
    assert steps(full, LONG, before=before, limit=1) == [2]
    assert steps(full, LONG, limit=PAGE + 1) == list(range(MANY))[::-1][: PAGE + 1]
    assert steps(full, LONG, limit=0) == []
    assert steps(full, {"configurable": {**LONG["configurable"], "checkpoint_id": "0007"}}) == [7]
    assert steps(full, {"configurable": {**LONG["configurable"], "checkpoint_id": "none"}}) == []


def test_without_a_namespace_all_graphs_of_a_thread_are_listed(full: BideSaver) -> None:
    before: Any = {"configurable": {"checkpoint_id": "0005"}}
    found = full.list({"configurable": {"thread_id": "long"}}, before=before)

    assert [one.config["configurable"]["checkpoint_id"] for one in found] == [
        "0004",
        "0003i",
        "0003",
        "0002",
        "0001",
        "0000",
    ]


def test_without_a_thread_all_are_listed(full: BideSaver) -> None:
    found = [one.config["configurable"]["thread_id"] for one in full.list(None)]

    assert len(found) == MANY + 2
    assert found.count("short") == 1
    assert steps(full, None, filter={"step": 1}) == [1, 1]


def test_a_list_that_is_left_in_the_middle_holds_nothing(full: BideSaver) -> None:
    listing = full.list(LONG)
    first = next(listing)
    full.delete_thread("long")

    rest = list(listing)
    del listing
    gc.collect()

    assert first.metadata["step"] == MANY - 1
    assert len(rest) == PAGE - 1, "what was read is given out; the rest is gone"


async def test_async_lists_are_the_same(full: BideSaver) -> None:
    found = [one.metadata["step"] async for one in full.alist(LONG, filter={"even": True}, limit=30)]

    assert found == steps(full, LONG, filter={"even": True}, limit=30)
