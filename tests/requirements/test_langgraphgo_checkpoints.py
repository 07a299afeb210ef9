"""langgraphgo's tests of checkpoints: saved by themselves, found again, and never the cause of a node's second run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, GraphInterrupt, StateGraph, Store, get_config, interrupt
from bide.errors import UnknownCheckpointError
from tests.drivers import Driver
from tests.requirements.graphs import checkpoint_ids, thread
from tests.requirements.visits import Visits, after, visit


def points(driver: Driver, graph: CompiledGraph, name: str = "t") -> list[tuple[list[str], tuple[str, ...]]]:
    """Every checkpoint of a thread, oldest first: the visits so far, and what comes next."""
    history = driver.call(graph, "get_state_history", thread(name), order="asc")
    return [(seen.values["visited"], seen.next) for seen in history]


# ── A store, in memory and in a file ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("checkpointing_test.go::TestMemoryCheckpointStore_SaveAndLoad")
@pytest.mark.seed("checkpointing_test.go::TestFileCheckpointStore_SaveAndLoad")
@pytest.mark.seed("checkpointing_test.go::TestCheckpointableRunnable_LoadCheckpoint")
@pytest.mark.requirement("L4-10")
def test_checkpoint_is_loaded_by_its_id_with_all_that_it_was_saved_with(driver: Driver, store: Store):
    graph = visit("ab", store)
    driver.invoke(graph, {}, {**thread("t"), "metadata": {"source_system": "shop"}})
    _, middle, _ = checkpoint_ids(graph, thread("t"))

    loaded = driver.call(graph, "get_state", thread("t", checkpoint_id=middle))

    assert (loaded.values, loaded.next) == (after("a"), ("b",))
    assert loaded.metadata["source_system"] == "shop"
    assert loaded.created_at == "2023-11-14T22:13:20+00:00"


@pytest.mark.seed("checkpointing_test.go::TestMemoryCheckpointStore_LoadNonExistent")
@pytest.mark.seed("checkpointing_test.go::TestFileCheckpointStore_LoadNonExistent")
@pytest.mark.requirement("L4-10")
def test_checkpoint_that_is_not_there_is_a_typed_error_and_makes_nothing(driver: Driver, store: Store):
    graph = visit("ab", store)
    driver.invoke(graph, {}, thread("t"))
    saved = checkpoint_ids(graph, thread("t"))

    with pytest.raises(UnknownCheckpointError, match="nowhere"):
        driver.call(graph, "get_state", thread("t", checkpoint_id="nowhere"))

    assert checkpoint_ids(graph, thread("t")) == saved


@pytest.mark.seed("checkpointing_test.go::TestMemoryCheckpointStore_List")
@pytest.mark.seed("checkpointing_test.go::TestFileCheckpointStore_List")
@pytest.mark.seed("store/*_test.go::filter by thread or session")
@pytest.mark.requirement("L4-10")
def test_list_holds_the_checkpoints_of_one_thread_and_of_no_other(driver: Driver, store: Store):
    graph = visit("ab", store)
    for name in ("one", "two"):
        driver.invoke(graph, {"visited": [name]}, thread(name))

    assert points(driver, graph, "one") == [(["one"], ("a",)), (["one", "a"], ("b",)), (["one", "a", "b"], ())]
    assert len(points(driver, graph, "two")) == 3
    assert not set(checkpoint_ids(graph, thread("one"))) & set(checkpoint_ids(graph, thread("two")))


@pytest.mark.seed("checkpointing_test.go::TestMemoryCheckpointStore_Delete")
@pytest.mark.seed("checkpointing_test.go::TestFileCheckpointStore_Delete")
@pytest.mark.seed("checkpointing_test.go::TestMemoryCheckpointStore_Clear")
@pytest.mark.seed("checkpointing_test.go::TestFileCheckpointStore_Clear")
@pytest.mark.seed("checkpointing_test.go::TestCheckpointableRunnable_ClearCheckpoints")
@pytest.mark.seed("test_checkpoint.rs::test_delete_nonexistent_checkpoint")
@pytest.mark.seed("store/*_test.go::delete of what is missing is a no-op")
@pytest.mark.requirement("L4-10")
def test_thread_is_deleted_with_all_its_checkpoints_and_no_other_thread(driver: Driver, store: Store):
    graph = visit("ab", store)
    for name in ("gone", "kept"):
        driver.invoke(graph, {}, thread(name))
    [*_, last] = checkpoint_ids(graph, thread("gone"))

    store.delete_thread("gone")
    store.delete_thread("gone")
    store.delete_thread("never there")

    assert points(driver, graph, "gone") == []
    with pytest.raises(UnknownCheckpointError):
        driver.call(graph, "get_state", thread("gone", checkpoint_id=last))
    assert len(points(driver, graph, "kept")) == 3
    assert [row.thread_id for row in store.threads()] == ["kept"]


# ── What a run saves ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("checkpointing_test.go::TestCheckpointableRunnable_Basic")
@pytest.mark.requirement("L4-06")
def test_two_nodes_save_two_checkpoints_beside_that_of_the_input(driver: Driver, store: Store):
    graph = visit("ab", store)

    driver.invoke(graph, {}, thread("t"))

    assert points(driver, graph) == [([], ("a",)), (["a"], ("b",)), (["a", "b"], ())]


@pytest.mark.seed("checkpointing_test.go::TestCheckpointListener_ErrorHandling")
@pytest.mark.requirement("L4-05")
def test_run_whose_first_node_fails_saves_none_but_that_of_the_input(driver: Driver, store: Store):
    def broken(state: Visits) -> Visits:
        raise KeyError("no such article")

    graph = StateGraph(Visits).add_node(broken).add_edge(START, "broken").compile(store)

    with pytest.raises(KeyError, match="no such article"):
        driver.invoke(graph, {}, thread("t"))

    assert points(driver, graph) == [([], ("broken",))]


@pytest.mark.seed("checkpointing_test.go::TestCheckpointableStateGraph_CustomConfig")
@pytest.mark.requirement("L4-06")
@pytest.mark.parametrize(("durability", "saved"), [("sync", 4), ("async", 4), ("exit", 2)])
def test_how_often_is_saved_is_chosen_at_compile_and_the_end_is_always_saved(
    driver: Driver, open_file: Callable[[], Store], durability: str, saved: int
):
    driver.invoke(visit("abc", open_file(), durability=durability), {}, thread("t"))

    graph = visit("abc", open_file())
    told = points(driver, graph)

    assert len(told) == saved
    assert told[-1] == (["a", "b", "c"], ())


@pytest.mark.seed("checkpointing_test.go::TestCheckpointing_Integration", "examples::time_travel")
@pytest.mark.requirement("L4-10", "L4-14")
def test_thread_is_run_listed_taken_up_in_the_past_and_told_both_ways(driver: Driver, open_file: Callable[[], Store]):
    driver.invoke(visit("abc", open_file()), {}, thread("t"))
    graph = visit("abc", open_file())
    first_life = checkpoint_ids(graph, thread("t"))
    after_a = driver.call(graph, "get_state_history", thread("t"), order="asc")[1]

    edited = driver.call(graph, "update_state", after_a.config, {"visited": ["edited"]})
    other = driver.invoke(graph, None, edited)

    assert other["visited"] == ["a", "edited", "b", "c"]
    assert checkpoint_ids(graph, thread("t"))[:4] == first_life, "what was, stays"
    past = driver.call(graph, "get_state", thread("t", checkpoint_id=first_life[-1]))
    assert past.values["visited"] == ["a", "b", "c"]
    assert graph.get_state(edited).parent_config == after_a.config


@pytest.mark.seed("checkpointing_test.go::TestMaxCheckpoints_ZeroOrNegative")
@pytest.mark.requirement("L4-10")
def test_every_checkpoint_is_kept_where_nobody_says_otherwise(driver: Driver, store: Store):
    letters = "abcdefghijklmnopqrstuvwxyz"

    graph = visit(letters, store)
    driver.invoke(graph, {}, thread("t"))

    assert [len(visited) for visited, _ in points(driver, graph)] == list(range(27))


# ── The same thread again ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("checkpointing_test.go::TestWithThreadID")
@pytest.mark.requirement("L4-08")
def test_thread_id_of_the_config_is_known_to_the_nodes_the_result_and_the_store(driver: Driver, store: Store):
    seen: list[str] = []
    config = thread("order-7")

    def look(state: Visits) -> None:
        seen.append(get_config()["configurable"]["thread_id"])

    graph = StateGraph(Visits).add_node(look).add_edge(START, "look").compile(store)
    done = driver.invoke(graph, {}, config)

    assert (seen, done.thread_id) == (["order-7"], "order-7")
    assert [row.thread_id for row in store.threads()] == ["order-7"]
    assert config == thread("order-7"), "the caller's config is left as it was"


@pytest.mark.seed("checkpointing_test.go::TestAutoResume_WithThreadID")
@pytest.mark.requirement("L4-08")
def test_next_call_on_a_finished_thread_finds_the_state_and_runs_each_node_once(
    driver: Driver, open_file: Callable[[], Store]
):
    driver.invoke(visit("ab", open_file()), {"visited": ["first"]}, thread("t"))

    again = driver.invoke(visit("ab", open_file()), {"visited": ["second"]}, thread("t"))

    assert again.value == {"counter": 4, "visited": ["first", "a", "b", "second", "a", "b"]}


@pytest.mark.seed("checkpointing_test.go::TestAutoResume_InterruptAndResume")
@pytest.mark.seed("checkpointing_test.go::TestWithInterruptBeforeAfter")
@pytest.mark.requirement("L4-08")
@pytest.mark.parametrize(
    ("pause", "state", "rest"),
    [
        ({"interrupt_after": ["b"]}, after("a", "b"), ["c"]),
        ({"interrupt_before": ["c"]}, after("a", "b"), ["c"]),
        ({"interrupt_before": ["b"], "interrupt_after": ["a"]}, after("a"), ["b", "c"]),
        ({"interrupt_after": "b"}, after("a", "b"), ["c"]),
    ],
)
def test_resume_of_a_thread_runs_only_what_has_not_run(
    driver: Driver, store: Store, pause: dict[str, Any], state: Visits, rest: list[str]
):
    """In langgraphgo the node before the pause runs again, and after the end so does the last one."""
    graph = visit("abc", store)
    paused = driver.invoke(graph, {}, thread("t"), **pause)

    resumed = driver.stream(graph, None, thread("t"))
    more = driver.stream(graph, None, thread("t"))

    assert (paused.is_interrupted, paused.value) == (True, state)
    assert [name for part in resumed for name in part] == rest
    assert more == []
    assert graph.get_state(thread("t")).values == after("a", "b", "c")


class Basket(TypedDict, total=False):
    items: Annotated[list[str], operator.add]
    customer: str
    note: str


@pytest.mark.seed("checkpointing_test.go::TestAutoResume_MergeStates")
@pytest.mark.requirement("L4-08")
@pytest.mark.parametrize("on_paused", ["resume", "error"])
def test_input_is_merged_over_the_saved_state_key_by_key(driver: Driver, store: Store, on_paused: str):
    def pack(state: Basket) -> Basket:
        return {"items": ["packed"]}

    builder = StateGraph(Basket).add_node(pack).add_edge(START, "pack")
    graph = builder.compile(store, on_paused=on_paused)
    driver.invoke(graph, {"items": ["tea"], "customer": "ada", "note": "first"}, thread("t"))

    merged = driver.invoke(graph, {"items": ["milk"], "note": "second"}, thread("t"))

    assert merged.value == {"items": ["tea", "packed", "milk", "packed"], "customer": "ada", "note": "second"}


@pytest.mark.seed("checkpointing_test.go::TestAutoResume_MergeStates")
@pytest.mark.requirement("L4-08")
def test_one_call_starts_or_resumes_a_session_where_the_graph_says_so(driver: Driver, open_file: Callable[[], Store]):
    """A stateless endpoint need not know whether its session waits: the same call does what is due."""

    def ask(state: Basket) -> Basket:
        return {"note": f"to {interrupt('Where to?')['customer']}", "items": ["asked"]}

    def endpoint(body: dict[str, Any]) -> Any:
        builder = StateGraph(Basket).add_node(ask).add_edge(START, "ask")
        return driver.invoke(builder.compile(open_file(), on_paused="resume"), body, thread("session"))

    started = endpoint({"items": ["tea"]})
    resumed = endpoint({"customer": "ada"})
    started_again = endpoint({"items": ["milk"]})

    assert [started.status, resumed.status, started_again.status] == ["waiting", "done", "waiting"]
    assert resumed.value == {"items": ["tea", "asked"], "customer": "ada", "note": "to ada"}
    assert started_again["items"] == ["tea", "asked", "milk"]


@pytest.mark.seed("checkpointing_test.go::TestWithInterruptBeforeAfter")
@pytest.mark.requirement("L4-08")
def test_pauses_of_one_call_bind_no_other_call_of_the_same_graph(driver: Driver, store: Store):
    graph = visit("ab", store)

    paused = driver.invoke(graph, {}, thread("paused"), interrupt_before=["b"])
    free = driver.invoke(graph, {}, thread("free"))

    assert (paused.next, free.next) == (("b",), ())
    assert driver.invoke(graph, None, thread("paused")).value == free.value == after("a", "b")


# ── At a pause ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("main_test.go::TestCheckpointSavedOnInterrupt", "main_test.go::TestResumeFromInterrupt")
@pytest.mark.requirement("L4-03", "L4-13")
def test_pause_that_changes_the_state_saves_one_checkpoint_and_its_resume_a_second(
    driver: Driver, open_file: Callable[[], Store]
):
    """Beside that of the input, which langgraphgo does not save."""

    def ask(state: Basket) -> Basket:
        return {"note": interrupt("Which?", update={"items": ["asked"]})}

    def graph() -> CompiledGraph:
        return StateGraph(Basket).add_node(ask).add_edge(START, "ask").compile(open_file())

    driver.invoke(graph(), {"items": ["tea"]}, thread("t"))
    at_the_pause = list(graph().get_state_history(thread("t"), order="asc"))
    done = driver.invoke(graph(), Command(resume="green"), thread("t"))
    at_the_end = list(graph().get_state_history(thread("t"), order="asc"))

    assert [seen.values["items"] for seen in at_the_pause] == [["tea"], ["tea", "asked"]]
    assert [seen.next for seen in at_the_end] == [("ask",), ("ask",), ()]
    assert done.value == {"items": ["tea", "asked"], "note": "green"}


@pytest.mark.seed("main_test.go::TestCheckpointNotSavedOnRegularError")
@pytest.mark.requirement("L4-05", "L4-13")
def test_error_after_a_pause_saves_nothing_and_leaves_the_pause_to_be_taken_up(driver: Driver, store: Store):
    failures = [KeyError("no such article")]

    def ask(state: Visits) -> Visits:
        answer = interrupt("Which?")
        if failures:
            raise failures.pop()
        return {"visited": [answer]}

    graph = StateGraph(Visits).add_node(ask).add_edge(START, "ask").compile(store)
    driver.invoke(graph, {}, thread("t"))
    saved = points(driver, graph)

    with pytest.raises(KeyError, match="no such article"):
        driver.invoke(graph, Command(resume="green"), thread("t"))

    assert points(driver, graph) == saved == [([], ("ask",))]
    assert driver.invoke(graph, None, thread("t"))["visited"] == ["green"]


@pytest.mark.seed("interrupt_test.go::TestGraphInterrupt/InterruptBefore")
@pytest.mark.seed("interrupt_test.go::TestGraphInterrupt/InterruptAfter")
@pytest.mark.seed("resume_test.go::TestGraphResume/ResumeBefore", "resume_test.go::TestGraphResume/ResumeAfter")
@pytest.mark.requirement("L4-01", "L4-08")
@pytest.mark.parametrize(
    ("pause", "state", "following"),
    [({"interrupt_before": ["b"]}, after("a"), ("b",)), ({"interrupt_after": ["b"]}, after("a", "b"), ("c",))],
    ids=["before", "after"],
)
def test_declared_pause_as_an_exception_names_its_node_its_state_and_what_comes_next(
    driver: Driver, store: Store, pause: dict[str, Any], state: Visits, following: tuple[str, ...]
):
    """langgraphgo saves nothing at a pause before a node; here that pause is resumed like any other."""
    graph = visit("abc", store)

    with pytest.raises(GraphInterrupt) as caught:
        driver.invoke(graph, {}, thread("t"), raise_on_interrupt=True, **pause)

    assert (caught.value.node, caught.value.state, caught.value.next) == ("b", state, following)
    assert driver.invoke(graph, None, thread("t")).value == after("a", "b", "c")
