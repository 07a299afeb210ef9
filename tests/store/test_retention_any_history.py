"""Whatever a thread's history is and whatever the policy: what stays is as it was, and the thread goes on as if nothing
had gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bide import MemorySaver, Store
from tests.store.histories import (
    WORDS,
    Life,
    beginning_of,
    branches_of,
    check_nothing_is_left_over,
    inner_states,
    points_of,
)
from tests.stores import KINDS, opened_store

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)
events = st.one_of(
    st.tuples(st.just("do"), words, st.sampled_from(["sync", "async", "exit"])),
    st.tuples(st.just("leave"), words),
    st.tuples(st.just("edit"), st.integers(1, 1000)),
    st.tuples(st.just("fork"), st.integers(0, 10_000)),
    st.tuples(st.just("branch"), st.integers(0, 10_000), words),
)
histories = st.lists(events, min_size=1, max_size=6)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


def happen(life: Life, event: tuple[Any, ...], seqs: list[int]) -> None:
    """Let something happen to a thread; `seqs` are the checkpoints to choose from."""
    kind, *details = event
    if kind == "do":
        life.do(*details)
    elif kind == "leave":  # perhaps in the middle of a question
        life.finish()
        life.graph.invoke({"words": details[0]}, {"configurable": {"thread_id": life.name}})
    elif kind == "edit":
        life.edit(*details)
    elif kind == "fork":
        life.fork(seqs[details[0] % len(seqs)])
    elif kind == "branch":
        life.do(details[1], config=life.at(seqs[details[0] % len(seqs)]))


def is_inside(place: tuple[str, int]) -> bool:
    """Whether this is a checkpoint of a graph inside a task, which begins anew at every call."""
    return place[0] != "" and not place[0].startswith("@")


def newest_inside(inside: dict[tuple[str, int], Any], left: dict[int, Any], keep: int) -> set[tuple[str, int]]:
    """The last checkpoints of graphs inside tasks, where a checkpoint is left that the task comes next at."""
    tasks = {task.id for snapshot in left.values() for task in snapshot.tasks}
    by_task = {ns: sorted(place for place in inside if place[0] == ns) for ns in tasks}
    return {place for places in by_task.values() for place in places[-keep:]}


@given(histories, st.integers(1, 12), histories, st.integers(1, 12))
@settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_what_stays_is_as_it_was_and_the_thread_goes_on_to_the_same_end(store, before, keep_last, after, keep_less):
    store.delete_thread("t")
    ends: set[int] = set()
    with MemorySaver() as memory:
        life, twin = Life(store), Life(memory)
        for history, keep in ((before, keep_last), (after, keep_less)):
            for event in history:
                seqs = sorted(life.shown())
                happen(life, event, seqs)
                happen(twin, event, seqs)
            assert life.end() == twin.end()
            ends |= branches_of(points_of(memory))
            shown, inside, head = life.shown(), inner_states(store), life.end()

            store.prune(keep_last=keep)

            left = life.shown()
            assert left.keys() == set(sorted(shown)[-keep:]) | ((ends | beginning_of(memory)) & shown.keys())
            assert left == {seq: shown[seq] for seq in left}
            now = inner_states(store)
            assert now == {place: inside[place] for place in now}
            assert {place for place in now if is_inside(place)} == newest_inside(inside, left, keep)
            assert life.end() == head
            check_nothing_is_left_over(store)
            assert not any(store.prune(keep_last=keep)[1:])
        life.finish()
        twin.finish()
        assert life.end() == twin.end()
