"""The rest of The Edge Agent's own tests that need no YAML: checkpoints, fan-in, streams, secrets, memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import (
    START,
    Command,
    CompiledGraph,
    MemorySaver,
    Runtime,
    StateGraph,
    Store,
    UntrackedValue,
    get_store,
    interrupt,
)
from bide.errors import GraphChanged, UnknownCheckpointError, UnknownThreadError
from tests.drivers import Driver
from tests.requirements.conftest import FakeClock
from tests.requirements.graphs import Line, Work, checkpoint_ids, in_line, thread, url_of

BEFORE_B = {"interrupt_before": ["b"]}


# ── What a checkpoint holds ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_stategraph_checkpoint.py::test_save_checkpoint_creates_valid_pickle_file")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_load_checkpoint_returns_correct_structure")
@pytest.mark.requirement("T2-14", "T2-22")
def test_checkpoint_in_the_file_names_its_state_place_config_time_and_origin(
    driver: Driver, open_file: Callable[[], Store]
):
    """The Edge Agent pickles a dict of these five; here no bytes can run code, and a snapshot has them all."""
    config = {**thread("work"), "metadata": {"prepared_by": "ada"}}
    paused = driver.invoke(Line().graph().compile(open_file(), **BEFORE_B), {"value": 1}, config)

    loaded = Line().graph().compile(open_file()).get_state(thread("work", checkpoint_id=paused.checkpoint_id))

    assert loaded.values == {"value": 1, "found": ["a"]}
    assert loaded.next == ("b",)
    assert loaded.config["configurable"]["thread_id"] == "work"
    assert loaded.created_at == "2023-11-14T22:13:20+00:00"
    assert {key: loaded.metadata[key] for key in ("source", "step", "prepared_by")} == {
        "source": "loop",
        "step": 1,
        "prepared_by": "ada",
    }


@pytest.mark.seed("test_stategraph_checkpoint.py::test_auto_save_at_interrupt_before")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_auto_save_at_interrupt_after")
@pytest.mark.seed("test_checkpoint.rs::test_executor_saves_checkpoint_on_interrupt_before")
@pytest.mark.seed("test_checkpoint.rs::test_executor_saves_checkpoint_on_interrupt_after")
@pytest.mark.seed("test_checkpoint.rs::test_stream_executor_saves_checkpoint_on_interrupt_before")
@pytest.mark.seed("test_checkpoint.rs::test_stream_executor_saves_checkpoint_on_interrupt_after")
@pytest.mark.requirement("T2-14", "T2-21")
@pytest.mark.parametrize("how", ["invoke", "stream"])
@pytest.mark.parametrize(
    ("pause", "found", "following"),
    [({"interrupt_before": ["a"]}, [], ("a",)), ({"interrupt_after": ["a"]}, ["a"], ("b",))],
    ids=["before", "after"],
)
def test_pause_is_saved_under_its_node_by_itself(
    driver: Driver, open_file: Callable[[], Store], how: str, pause: Any, found: list[str], following: tuple[str, ...]
):
    graph = Line().graph().compile(open_file(), **pause)
    getattr(driver, how)(graph, {"value": 1}, thread("work"))

    store = open_file()
    saved = Line().graph().compile(store).get_state(thread("work"))

    assert (saved.values["found"], saved.next) == (found, following)
    assert [(row.thread_id, row.node) for row in store.open_waits()] == [("work", "a")]


@pytest.mark.seed("test_stategraph_checkpoint.py::test_memory_checkpointer_stores_checkpoints")
@pytest.mark.seed(
    "test_checkpoint.rs::test_memory_checkpointer_list", "test_checkpoint.rs::test_file_checkpointer_list"
)
@pytest.mark.requirement("T2-02")
def test_store_counts_lists_and_loads_what_it_holds(driver: Driver, store: Store):
    graph = Line().graph().compile(store, **BEFORE_B)
    paused = driver.invoke(graph, {"value": 1}, thread("work"))

    held = checkpoint_ids(graph, thread("work"))

    assert len(held) == 2
    assert paused.checkpoint_id in held
    assert graph.get_state(thread("work", checkpoint_id=held[-1])).values == {"value": 1, "found": ["a"]}
    assert [row.thread_id for row in store.threads()] == ["work"]


@pytest.mark.seed("test_checkpoint.rs::test_memory_checkpointer_load_nonexistent")
@pytest.mark.seed("test_checkpoint.rs::test_file_checkpointer_load_nonexistent")
@pytest.mark.seed("test_checkpoint.rs::test_memory_checkpointer_delete")
@pytest.mark.seed("test_checkpoint.rs::test_file_checkpointer_delete")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_error_handling_file_not_found")
@pytest.mark.requirement("T2-10", "T2-27")
def test_checkpoint_that_is_gone_or_was_never_there_is_a_lookup_error_and_runs_nothing(driver: Driver, store: Store):
    line = Line()
    graph = line.graph().compile(store, **BEFORE_B)
    paused = driver.invoke(graph, {"value": 1}, thread("work"))

    store.delete_thread("work")

    for reference in (paused.checkpoint_id, "b_1733500000.pkl"):
        with pytest.raises(UnknownCheckpointError) as refused:
            driver.invoke(graph, {"value": 2}, checkpoint=reference)
        assert isinstance(refused.value, LookupError)
    assert line.ran == ["a"]
    assert store.threads() == []


@pytest.mark.seed("test_stategraph_checkpoint.py::test_error_handling_incompatible_checkpoint")
@pytest.mark.requirement("T2-27", "T2-28")
def test_checkpoint_of_another_graph_is_a_value_error_that_names_what_does_not_fit(
    driver: Driver, open_file: Callable[[], Store]
):
    line = Line()
    paused = driver.invoke(line.graph().compile(open_file(), **BEFORE_B), {"value": 1}, thread("work"))
    other = in_line({"title": str}, line.a, line.c)

    with pytest.raises(GraphChanged, match=r"'b'|'value'|'found'") as refused:
        driver.invoke(other.compile(open_file()), None, checkpoint=paused.checkpoint_id)

    assert isinstance(refused.value, ValueError)
    assert line.ran == ["a"]


@pytest.mark.seed("test_stategraph_checkpoint.py::test_error_handling_incompatible_checkpoint")
@pytest.mark.requirement("T2-28")
def test_checkpoint_of_an_older_version_is_brought_along_by_a_hook(driver: Driver, open_file: Callable[[], Store]):
    line = Line()
    driver.invoke(line.graph().compile(open_file(), **BEFORE_B), {"value": 1}, thread("work"))

    def renamed(state: Work) -> dict[str, Any]:
        return {"found": ["renamed"]}

    def migrate(stored: Any) -> None:
        stored.rename_node("b", "renamed")

    newer = in_line(Work, line.a, renamed, line.c).compile(open_file(), migrate=migrate)

    assert driver.invoke(newer, None, thread("work"))["found"] == ["a", "renamed", "c"]


# ── Resuming ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_stategraph_checkpoint.py::test_resume_from_checkpoint_continues_execution")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_invoke_checkpoint_resumes_correctly")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_invoke_none_with_checkpoint_resumes")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_stream_checkpoint_resumes_correctly")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_stream_none_with_checkpoint_resumes")
@pytest.mark.requirement("T2-10")
@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_resume_by_checkpoint_runs_the_rest_in_order_and_nothing_else(
    driver: Driver, open_file: Callable[[], Store], how: str
):
    line = Line()
    paused = driver.invoke(line.graph().compile(open_file(), **BEFORE_B), {"value": 1})

    graph = line.graph().compile(open_file(), **BEFORE_B)
    getattr(driver, how)(graph, None, checkpoint=paused.checkpoint_id)

    done = graph.get_state(thread(paused.thread_id))
    assert line.ran == ["a", "b", "c"]
    assert (done.values, done.next) == ({"value": 1, "found": ["a", "b", "c"]}, ())


@pytest.mark.seed("test_stategraph_checkpoint.py::test_interrupt_before_stops_execution")
@pytest.mark.seed("test_stategraph_core.py::test_invoke_with_interrupts")
@pytest.mark.seed("test_stategraph_core.py::test_interrupt_handling")
@pytest.mark.requirement("T2-06", "T2-08")
def test_pause_before_a_node_is_the_last_that_is_heard_and_that_node_has_not_run(driver: Driver, store: Store):
    line = Line()
    graph = line.graph().compile(store, **BEFORE_B)

    parts = driver.stream(graph, {"value": 1}, thread("work"))

    assert parts == [{"a": {"found": ["a"]}}, {"__interrupt__": ()}]
    assert line.ran == ["a"]


@pytest.mark.seed("test_stategraph_core.py::test_complex_workflow_with_interrupts")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_multiple_interrupts_require_multiple_resumes")
@pytest.mark.seed("test_checkpoint.rs::test_multiple_checkpoints_saved_independently")
@pytest.mark.requirement("T2-10", "T2-13")
def test_every_pause_has_a_checkpoint_and_a_resume_of_its_own(driver: Driver, store: Store):
    line = Line()
    graph = line.graph().compile(store, interrupt_before=["b", "c"], interrupt_after=["b"])

    stops = [driver.invoke(graph, {"value": 1}, thread("work"))]
    while stops[-1].is_interrupted:
        stops.append(driver.invoke(graph, None, checkpoint=stops[-1].checkpoint_id))

    assert [(stop.next, stop["found"]) for stop in stops] == [
        (("b",), ["a"]),
        (("c",), ["a", "b"]),  # after b
        (("c",), ["a", "b"]),  # before c
        ((), ["a", "b", "c"]),
    ]
    first = graph.get_state(thread("work", checkpoint_id=stops[0].checkpoint_id))
    assert first.values["found"] == ["a"], "a later pause does not write over an earlier one"
    assert line.ran == ["a", "b", "c"]


@pytest.mark.seed("test_stategraph_checkpoint.py::test_interrupt_after_skips_reexecution_on_resume")
@pytest.mark.requirement("T2-07")
def test_node_before_a_pause_runs_once_however_often_the_thread_is_taken_up(
    driver: Driver, open_file: Callable[[], Store]
):
    line = Line()
    for given in ({"value": 1}, None, None):
        driver.invoke(line.graph().compile(open_file(), interrupt_after=["a", "b"]), given, thread("work"))

    assert line.ran == ["a", "b", "c"]


@pytest.mark.seed("test_stategraph_checkpoint.py::test_invoke_none_without_checkpoint_raises")
@pytest.mark.requirement("T2-10")
def test_nothing_to_go_on_from_is_a_value_error(driver: Driver, store: Store):
    line = Line()
    graph = line.graph().compile(store)

    for config in (None, thread("nobody")):
        with pytest.raises(UnknownThreadError) as refused:
            driver.invoke(graph, None, config)
        assert isinstance(refused.value, ValueError)

    assert line.ran == []


@pytest.mark.seed("test_interrupt_state_update.py::test_interrupt_before_and_resume_with_state_update")
@pytest.mark.seed("test_interrupt_state_update.py::test_stream_interrupt_resume_with_state_update")
@pytest.mark.requirement("T2-11")
@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_what_a_person_adds_at_the_pause_is_seen_by_every_node_after_it(driver: Driver, store: Store, how: str):
    seen: list[tuple[str, Any, Any]] = []

    def b(state: Work) -> None:
        seen.append(("b", state["value"], state["feedback"]))

    def c(state: Work) -> None:
        seen.append(("c", state["value"], state["feedback"]))

    graph = in_line(Work, Line().a, b, c).compile(store, **BEFORE_B)
    paused = driver.invoke(graph, {"value": 1}, thread("work"))

    getattr(driver, how)(graph, {"value": 2, "feedback": "kinder"}, checkpoint=paused.checkpoint_id)

    assert seen == [("b", 2, "kinder"), ("c", 2, "kinder")]
    done = graph.get_state(thread("work")).values
    assert done == {"value": 2, "feedback": "kinder", "found": ["a"]}


@pytest.mark.seed("test_stategraph_checkpoint.py::test_existing_tests_still_pass")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_no_checkpoint_when_checkpoint_dir_none")
@pytest.mark.requirement("T2-05")
def test_graph_that_never_pauses_needs_no_store_and_writes_nothing(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)

    done = driver.invoke(Line().graph().compile(), {"value": 1})

    assert done == {"value": 1, "found": ["a", "b", "c"]}
    assert list(tmp_path.iterdir()) == []


# ── Fan-in ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class FanIn:
    """split → left, right → join(state, parallel_results), with a note of what ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def branch(self, name: str) -> Callable[[Work], dict[str, Any]]:
        def run(state: Work) -> dict[str, Any]:
            self.ran.append(name)
            return {"found": [name]}

        return run

    def join(self, state: Work, parallel_results: list[dict[str, Any]]) -> dict[str, Any]:
        self.ran.append("join")
        return {"joined": [found for result in parallel_results for found in result["found"]]}

    def compile(self, store: Store | None, **options: Any) -> CompiledGraph:
        builder = StateGraph(Work).add_node("split", lambda state: None).set_entry_point("split")
        builder.add_fanin_node("join", self.join).set_finish_point("join")
        for name in ("left", "right"):
            builder.add_node(name, self.branch(name)).add_edge("split", name).add_edge(name, "join")
        return builder.compile(store, **options)


@pytest.mark.seed("test_stategraph_checkpoint.py::test_checkpoint_at_fanin_includes_parallel_results")
@pytest.mark.requirement("T2-15", "T2-16")
def test_checkpoint_before_the_join_holds_what_each_branch_returned(driver: Driver, open_file: Callable[[], Store]):
    fan = FanIn()
    driver.invoke(fan.compile(open_file(), interrupt_before=["join"]), {"value": 1}, thread("work"))

    saved = fan.compile(open_file()).get_state(thread("work"))
    done = driver.invoke(fan.compile(open_file()), None, thread("work"))

    assert saved.next == ("join",)
    assert saved.values["parallel_results"] == [{"found": ["left"]}, {"found": ["right"]}]
    assert sorted(fan.ran) == ["join", "left", "right"]
    assert done["joined"] == ["left", "right"]


@pytest.mark.seed("test_stategraph_stream.py::test_stream_parallel_interrupt_support")
@pytest.mark.requirement("T2-16", "T2-08")
@pytest.mark.parametrize("pauses_before", [False, True], ids=["at once", "after a resume"])
def test_pause_at_the_join_ends_the_stream_once_also_after_a_resume(driver: Driver, store: Store, pauses_before: bool):
    """The Edge Agent forgets the pause at the join once a thread was resumed, or tells it and goes on."""
    fan = FanIn()
    options = {"interrupt_after": ["split"]} if pauses_before else {}
    graph = fan.compile(store, interrupt_before=["join"], **options)
    if pauses_before:
        assert driver.stream(graph, {"value": 1}, thread("work"))[-1] == {"__interrupt__": ()}

    parts = driver.stream(graph, None if pauses_before else {"value": 1}, thread("work"))

    assert [part for part in parts if "__interrupt__" in part] == parts[-1:] == [{"__interrupt__": ()}]
    assert sorted(fan.ran) == ["left", "right"]
    assert driver.stream(graph, None, thread("work")) == [{"join": {"joined": ["left", "right"]}}]


@pytest.mark.seed("test_remote_validation.py::test_detect_interrupt_before_in_scope")
@pytest.mark.seed("test_remote_validation.py::test_detect_interrupt_after_in_scope")
@pytest.mark.seed("test_remote_validation.py::test_no_error_when_interrupt_outside_scope")
@pytest.mark.requirement("T2-15")
@pytest.mark.parametrize("place", ["left", "split", "join"])
@pytest.mark.parametrize("kind", ["interrupt_before", "interrupt_after"])
def test_pause_may_stand_anywhere_inside_or_outside_of_branches(driver: Driver, store: Store, kind: str, place: str):
    """The Edge Agent forbids it in branches that run elsewhere; here a branch may pause wherever it runs."""
    fan = FanIn()
    graph = fan.compile(store, **{kind: [place]})

    paused = driver.invoke(graph, {"value": 1}, thread("work"))
    done = driver.invoke(graph, None, thread("work"))

    assert (paused.is_interrupted, done.is_complete) == (True, True)
    assert done["joined"] == ["left", "right"]
    assert sorted(fan.ran) == ["join", "left", "right"]


# ── Secrets and memory ─────────────────────────────────────────────────────────────────────────────────────────────


class Guarded(TypedDict, total=False):
    token: Annotated[str, UntrackedValue]
    answer: str


@pytest.mark.seed("test_secrets_yaml_integration.py::test_secrets_backend_not_in_checkpoint")
@pytest.mark.requirement("T2-14")
def test_secret_is_at_hand_in_nodes_and_not_in_the_file(driver: Driver, tmp_path: Path):
    seen: list[tuple[str, str]] = []

    def first(state: Guarded, runtime: Runtime[dict[str, str]]) -> None:
        seen.append((state["token"], runtime.context["password"]))

    def second(state: Guarded) -> Guarded:
        return {"answer": interrupt("Go on?")}

    context = {"password": "hunter2-in-context"}
    with Store.open(url_of(tmp_path)) as store:
        graph = in_line(Guarded, first, second).compile(store)
        driver.invoke(graph, {"token": "s3cr3t-in-state"}, thread("work"), context=context)
        driver.invoke(graph, Command(resume="yes"), thread("work"), context=context)

    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert seen == [("s3cr3t-in-state", "hunter2-in-context")]
    assert b"Go on?" in written
    assert b"s3cr3t-in-state" not in written
    assert b"hunter2-in-context" not in written


@pytest.mark.seed("test_yaml_engine_memory.py::memory with TTL survives a checkpoint")
@pytest.mark.seed("test_yaml_engine_memory.py::expired memory is excluded")
@pytest.mark.requirement("T2-22")
@pytest.mark.parametrize(("minutes", "remembered"), [(59, "blue"), (61, None)])
def test_memory_with_a_time_to_live_outlives_the_pause_and_not_its_time(
    driver: Driver, store: Store, clock: FakeClock, minutes: int, remembered: str | None
):
    def note(state: Guarded) -> None:
        get_store().put(("ada",), "colour", {"is": "blue"}, ttl=timedelta(hours=1))

    def recall(state: Guarded) -> Guarded:
        interrupt("Later?")
        item = get_store().get(("ada",), "colour")
        return {"answer": "forgotten" if item is None else item.value["is"]}

    graph = in_line(Guarded, note, recall).compile(store)
    driver.invoke(graph, {"token": "t"}, thread("work"))
    clock.advance(seconds=60 * minutes)

    done = driver.invoke(graph, Command(resume="now"), thread("work"))

    assert done["answer"] == (remembered or "forgotten")


# ── The builder ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-31", "T2-02")
def test_graph_is_built_by_nodes_edges_and_points_and_nodes_get_what_they_name(driver: Driver):
    got: dict[str, Any] = {}

    def by_name(state: Work, config: Any, runtime: Any, writer: Any) -> None:
        got.update(value=state["value"], thread=config["configurable"]["thread_id"], node=runtime.node)
        writer("heard")

    builder = StateGraph(Work).add_node("first", by_name).add_node("second", lambda state: {"found": ["second"]})
    builder.set_entry_point("first").add_edge("first", "second").set_finish_point("second")
    with MemorySaver() as saver:
        graph = builder.compile(checkpointer=saver)

        heard = driver.stream(graph, {"value": 7}, thread("work"), stream_mode="custom")

        assert heard == ["heard"]
        assert got == {"value": 7, "thread": "work", "node": "first"}
        assert graph.get_state(thread("work")).values["found"] == ["second"]
        assert [edge.source for edge in graph.get_graph().edges if edge.target == "first"] == [START]
