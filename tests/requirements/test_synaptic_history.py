"""Synaptic's tests of savers: checkpoints are kept, told apart, listed in order, found by id, and never doubled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bide import MemorySaver, StateSnapshot, Store
from bide.errors import GraphError
from tests.drivers import Driver
from tests.requirements.graphs import checkpoint_ids, thread
from tests.requirements.visits import after, visit


def shown(history: list[StateSnapshot]) -> list[tuple[object, tuple[str, ...]]]:
    """What a history says: the visits so far, and what comes next."""
    return [(snapshot.values["visited"], snapshot.next) for snapshot in history]


# ── Looking at a thread ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("get_state.rs::get_state_returns_none_for_empty_thread", "checkpoint.rs::memory_saver_empty_thread")
@pytest.mark.seed("get_state.rs::get_state_history_returns_empty_for_new_thread")
@pytest.mark.requirement("S3-08", "S3-13")
def test_unknown_thread_has_an_empty_state_and_no_history(driver: Driver, store: Store):
    graph = visit("ab", store)

    seen = driver.call(graph, "get_state", thread("nobody"))
    history = driver.call(graph, "get_state_history", thread("nobody"))

    assert (seen.values, seen.next, seen.created_at, seen.interrupts) == ({}, (), None, ())
    assert history == []
    assert store.threads() == [], "looking makes no thread"


@pytest.mark.seed("get_state.rs::get_state_errors_without_checkpointer")
@pytest.mark.seed("get_state.rs::get_state_history_errors_without_checkpointer")
@pytest.mark.requirement("S3-08", "S3-13")
@pytest.mark.parametrize("method", ["get_state", "get_state_history"])
def test_state_and_history_without_a_store_are_an_error_that_names_the_way(driver: Driver, method: str):
    with pytest.raises(GraphError, match=r"no store.*compile\("):
        driver.call(visit("ab"), method, thread("t"))


@pytest.mark.seed("get_state.rs::get_state_returns_latest_state", "checkpoint.rs::memory_saver_returns_latest")
@pytest.mark.requirement("S3-08")
def test_state_is_that_of_the_newest_checkpoint(driver: Driver, store: Store):
    graph = visit("ab", store)
    driver.invoke(graph, {}, thread("t"))
    first = driver.call(graph, "get_state", thread("t"))

    driver.invoke(graph, {"visited": ["again"]}, thread("t"))

    latest = driver.call(graph, "get_state", thread("t"))
    assert (first.values, first.next) == (after("a", "b"), ())
    assert latest.values == {"counter": 4, "visited": ["a", "b", "again", "a", "b"]}
    assert latest.config["configurable"]["checkpoint_id"] == checkpoint_ids(graph, thread("t"))[-1]


@pytest.mark.seed("get_state.rs::get_state_after_interrupt_before")
@pytest.mark.requirement("S3-08", "S3-03")
def test_state_at_a_pause_before_a_node_is_that_of_the_nodes_before_it(driver: Driver, store: Store):
    graph = visit("ab", store, interrupt_before=["b"])
    driver.invoke(graph, {}, thread("t"))

    seen = driver.call(graph, "get_state", thread("t"))

    assert (seen.values, seen.next) == (after("a"), ("b",))


# ── History ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("get_state.rs::get_state_history_returns_all_checkpoints", "checkpoint.rs::memory_saver_list")
@pytest.mark.seed("checkpointer_basic.rs::test_checkpoint_with_parent_and_metadata")
@pytest.mark.requirement("S3-13")
def test_history_lists_every_checkpoint_with_what_came_next(driver: Driver, store: Store):
    """Synaptic has one per node; here the input has one of its own, and each names the one before it."""
    graph = visit("ab", store)
    driver.invoke(graph, {}, thread("t"))

    history = driver.call(graph, "get_state_history", thread("t"))

    assert shown(history) == [(["a", "b"], ()), (["a"], ("b",)), ([], ("a",))]
    assert [seen.parent_config for seen in history] == [history[1].config, history[2].config, None]
    assert [seen.metadata["source"] for seen in history] == ["loop", "loop", "input"]
    assert [seen.metadata["step"] for seen in history] == [2, 1, 0]


@pytest.mark.seed("get_state.rs::get_state_history_with_interrupt_shows_partial")
@pytest.mark.requirement("S3-13")
def test_history_of_a_paused_thread_ends_at_the_pause_and_grows_with_the_resume(driver: Driver, store: Store):
    graph = visit("abc", store, interrupt_before=["c"])
    driver.invoke(graph, {}, thread("t"))
    before = driver.call(graph, "get_state_history", thread("t"))

    driver.invoke(graph, None, thread("t"))

    grown = driver.call(graph, "get_state_history", thread("t"))
    assert shown(before) == [(["a", "b"], ("c",)), (["a"], ("b",)), ([], ("a",))]
    assert shown(grown) == [(["a", "b", "c"], ()), *shown(before)]


@pytest.mark.seed("checkpoint.rs::list_returns_checkpoints_in_order")
@pytest.mark.requirement("S3-13")
def test_checkpoints_are_listed_in_order_however_many_share_an_instant(driver: Driver, store: Store):
    """The clock of this store stands still; Synaptic orders by time."""
    graph = visit("abcdefgh", store)
    driver.invoke(graph, {}, thread("t"))

    oldest_first = driver.call(graph, "get_state_history", thread("t"), order="asc")
    newest_first = driver.call(graph, "get_state_history", thread("t"))

    assert [len(seen.values["visited"]) for seen in oldest_first] == list(range(9))
    assert newest_first == oldest_first[::-1]
    assert len({seen.created_at for seen in oldest_first}) == 1


@pytest.mark.seed("checkpoint.rs::get_by_checkpoint_id")
@pytest.mark.requirement("S3-13")
def test_checkpoint_can_be_looked_up_by_its_id(driver: Driver, store: Store):
    graph = visit("ab", store)
    driver.invoke(graph, {}, thread("t"))
    middle = driver.call(graph, "get_state_history", thread("t"))[1]

    seen = driver.call(graph, "get_state", middle.config)

    assert (seen.values, seen.next, seen.config) == (after("a"), ("b",), middle.config)


# ── What a saver keeps ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("checkpoint.rs::memory_saver_put_get")
@pytest.mark.requirement("S3-14")
def test_what_was_saved_comes_back_as_it_was(driver: Driver, store: Store):
    graph = visit("a", store)

    driver.invoke(graph, {"counter": 41, "visited": ["früher"]}, thread("t"))

    assert driver.call(graph, "get_state", thread("t")).values == {"counter": 42, "visited": ["früher", "a"]}


@pytest.mark.seed("checkpoint.rs::threads_are_isolated")
@pytest.mark.requirement("S3-06")
def test_threads_share_nothing_and_deleting_one_leaves_the_other(driver: Driver, store: Store):
    graph = visit("ab", store, interrupt_before=["b"])
    for name in ("one", "two"):
        driver.invoke(graph, {"visited": [name]}, thread(name))
    of_two = checkpoint_ids(graph, thread("two"))

    driver.invoke(graph, None, thread("one"))
    store.delete_thread("one")

    assert graph.get_state(thread("one")).values == {}
    assert graph.get_state(thread("two")).values["visited"] == ["two", "a"]
    assert checkpoint_ids(graph, thread("two")) == of_two
    assert driver.invoke(graph, None, thread("two"))["visited"] == ["two", "a", "b"]


@pytest.mark.seed("checkpoint.rs::checkpoint_with_metadata")
@pytest.mark.seed("checkpointer_basic.rs::test_checkpoint_with_parent_and_metadata")
@pytest.mark.requirement("S3-13")
def test_metadata_of_the_call_is_on_every_checkpoint_that_it_made(driver: Driver, open_file: Callable[[], Store]):
    for number, metadata in enumerate(({"author": "ada"}, {"author": "ben"})):
        graph = visit("ab", open_file())
        driver.invoke(graph, {"visited": [str(number)]}, {**thread("t"), "metadata": metadata})

    graph = visit("ab", open_file())
    history = driver.call(graph, "get_state_history", thread("t"), order="asc")
    of_ben = driver.call(graph, "get_state_history", thread("t"), filter={"author": "ben"})

    assert [seen.metadata["author"] for seen in history] == ["ada"] * 3 + ["ben"] * 3
    assert of_ben == history[:2:-1]
    assert [seen.parent_config for seen in history] == [None, *(seen.config for seen in history[:-1])]


@pytest.mark.seed("checkpointer_basic.rs::test_idempotent_put")
@pytest.mark.requirement("S3-10")
@pytest.mark.parametrize("options", [{}, {"interrupt_after": ["b"]}], ids=["finished", "paused"])
def test_going_on_where_nothing_is_left_to_do_saves_nothing_twice(driver: Driver, store: Store, options: dict):
    graph = visit("ab", store, **options)
    driver.invoke(graph, {}, thread("t"))
    driver.invoke(graph, None, thread("t"))
    saved = checkpoint_ids(graph, thread("t"))

    again = [driver.invoke(graph, None, thread("t")).value for _ in range(3)]

    assert again == [after("a", "b")] * 3
    assert checkpoint_ids(graph, thread("t")) == saved
    assert len(saved) == len(set(saved)) == 3


@pytest.mark.seed("checkpoint.rs::memory_saver_put_get")
@pytest.mark.requirement("S3-14")
def test_saver_is_shared_by_graphs_that_are_given_the_same_one(driver: Driver):
    with MemorySaver() as saver, MemorySaver() as other:
        driver.invoke(visit("ab", saver), {}, thread("t"))

        assert visit("ab", saver).get_state(thread("t")).values == after("a", "b")
        assert visit("ab", other).get_state(thread("t")).values == {}
