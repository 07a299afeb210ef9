"""durability="sync" | "async" | "exit": the same results, and a pause that is durable in each."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, MemorySaver, StateGraph, Store, interrupt, step
from bide.errors import StoreError
from bide.store.sqlite import SqliteDatabase
from tests.threads import in_a_row, one_node, side_by_side, thread

MODES = ["sync", "async", "exit"]
PATIENCE = 20


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def logging(name: str) -> Any:
    return lambda state: {"log": [name]}


def asks(question: str, **options: Any) -> Any:
    return lambda state: {"log": [interrupt(question, **options)]}


@pytest.fixture
def open_file(tmp_path: Path) -> Callable[[], Store]:
    return lambda: Store.open(f"sqlite:///{tmp_path / 'bide.db'}")


def whole_story(store: Store) -> CompiledGraph:
    """Steps, a step of two with a question and an update, a journaled call, and a question at the end."""
    builder = StateGraph(Log)
    builder.add_node("a", logging("a")).add_node("b", lambda state: {"log": [step(str.upper, "b")]})
    builder.add_node("c", asks("c?", update={"log": ["asked"]})).add_node("d", logging("d")).add_node("e", asks("e?"))
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("b", "d")
    return builder.add_edge(["c", "d"], "e").compile(store)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_gives_the_same_result(store: Store, mode: Any):
    graph = whole_story(store)

    paused = graph.invoke({"log": []}, thread(), durability=mode)
    again = graph.invoke(Command(resume="C"), thread(), durability=mode)
    done = graph.invoke(Command(resume="E"), thread(), durability=mode)

    assert (paused.value, paused.interrupt_value) == ({"log": ["a", "B", "asked", "d"]}, "c?")
    assert (again.value, again.interrupt_value) == ({"log": ["a", "B", "asked", "C", "d"]}, "e?")
    assert done.value == {"log": ["a", "B", "asked", "C", "d", "E"]}
    assert graph.get_state(thread()).values == done.value


@pytest.mark.parametrize("mode", MODES)
async def test_every_mode_gives_the_same_result_with_asyncio(store: Store, mode: Any):
    graph = whole_story(store)

    await graph.ainvoke({"log": []}, thread(), durability=mode)
    await graph.ainvoke(Command(resume="C"), thread(), durability=mode)
    done = await graph.ainvoke(Command(resume="E"), thread(), durability=mode)

    assert done.value == {"log": ["a", "B", "asked", "C", "d", "E"]}


@pytest.mark.parametrize("mode", MODES)
def test_pause_is_in_the_file_in_every_mode_when_the_call_returns(open_file: Callable[[], Store], mode: Any):
    with open_file() as store, open_file() as other:
        paused = whole_story(store).invoke({"log": []}, thread(), durability=mode)
        seen = whole_story(other).get_state(thread())
        done = whole_story(other).invoke(Command(resume="C"), thread(), durability=mode)

    assert seen.interrupts == paused.interrupts
    assert seen.values == {"log": ["a", "B", "asked", "d"]}
    assert done.interrupt_value == "e?"


@pytest.mark.parametrize("mode", MODES)
def test_pause_is_in_the_file_in_every_mode_when_the_stream_tells_it(open_file: Callable[[], Store], mode: Any):
    seen = []

    with open_file() as store, open_file() as other:
        for part in whole_story(store).stream({"log": []}, thread(), durability=mode):
            if "__interrupt__" in part:
                seen += [row.node for row in other.open_waits()]

    assert seen == ["c"]


@pytest.mark.parametrize("mode", MODES)
def test_declared_pause_is_in_the_file_in_every_mode(open_file: Callable[[], Store], mode: Any):
    nodes = {name: logging(name) for name in "abc"}
    with open_file() as store:
        in_a_row(Log, nodes, checkpointer=store, interrupt_before=["c"]).invoke({"log": []}, thread(), durability=mode)

    with open_file() as other:
        assert in_a_row(Log, nodes, checkpointer=other).invoke(None, thread())["log"] == ["a", "b", "c"]


@pytest.mark.parametrize(("mode", "points"), [("sync", ["", "a", "ab", "abc"]), ("async", ["", "a", "ab", "abc"])])
def test_history_holds_every_step_in_sync_and_async(store: Store, mode: Any, points: list[str]):
    graph = in_a_row(Log, {name: logging(name) for name in "abc"}, checkpointer=store, durability=mode)
    graph.invoke({"log": []}, thread())

    assert ["".join(seen.values["log"]) for seen in graph.get_state_history(thread(), order="asc")] == points


def test_history_holds_the_input_and_the_end_in_exit(store: Store):
    graph = in_a_row(Log, {name: logging(name) for name in "abc"}, checkpointer=store, durability="exit")
    graph.invoke({"log": []}, thread())

    found = list(graph.get_state_history(thread(), order="asc"))

    assert [seen.values["log"] for seen in found] == [[], ["a", "b", "c"]]
    assert found[1].parent_config == found[0].config


@pytest.mark.complaint(5)
def test_step_is_in_the_file_before_the_next_one_starts_in_sync(open_file: Callable[[], Store]):
    seen = []
    with open_file() as store, open_file() as other:
        nodes = {"a": logging("a"), "b": lambda state: None}
        watcher = in_a_row(Log, nodes, checkpointer=other)
        nodes["b"] = lambda state: seen.append(watcher.get_state(thread()).values["log"])

        in_a_row(Log, nodes, checkpointer=store).invoke({"log": []}, thread(), durability="sync")

    assert seen == [["a"]]


def test_finished_sibling_is_in_the_file_while_another_still_runs_in_sync(tmp_path: Path):
    is_recorded = Event()

    class Telling(Store):
        def commit(self, lease, transition):
            super().commit(lease, transition)
            is_recorded.set()

    def slow(state: Log) -> Log:
        assert is_recorded.wait(PATIENCE)
        with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as other:
            return {"log": [" ".join(graph_of(other).get_state(thread()).next)]}

    def graph_of(store: Store) -> CompiledGraph:
        return side_by_side(Log, {"quick": logging("quick"), "slow": slow}, checkpointer=store)

    with Telling(SqliteDatabase(str(tmp_path / "bide.db"))) as store:
        done = graph_of(store).invoke({"log": []}, thread())

    assert done["log"] == ["quick", "slow"], "only `slow` was left to do when it looked"


# ── Failures ───────────────────────────────────────────────────────────────────────────────────────────────────────


def broken(state: Log) -> None:
    raise OSError("no connection")


@pytest.mark.parametrize("mode", MODES)
def test_what_was_done_before_an_error_is_kept_in_every_mode(open_file: Callable[[], Store], mode: Any):
    with open_file() as store:
        graph = in_a_row(Log, {"a": logging("a"), "b": logging("b"), "c": broken}, checkpointer=store)
        with pytest.raises(OSError, match="no connection"):
            graph.invoke({"log": []}, thread(), durability=mode)

    with open_file() as other:
        mended = in_a_row(Log, {name: logging(name) for name in "abc"}, checkpointer=other)

        assert mended.get_state(thread()).values == {"log": ["a", "b"]}
        assert mended.invoke(None, thread())["log"] == ["a", "b", "c"]


@pytest.mark.parametrize("mode", MODES)
def test_sibling_of_a_failed_task_is_kept_in_every_mode(store: Store, mode: Any):
    runs = []

    def once(state: Log) -> Log:
        runs.append("run")
        return {"log": ["once"]}

    graph = side_by_side(Log, {"a": once, "b": broken}, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread(max_concurrency=1), durability=mode)
    mended = side_by_side(Log, {"a": once, "b": logging("b")}, checkpointer=store)

    assert mended.invoke(None, thread(), durability=mode)["log"] == ["once", "b"]
    assert runs == ["run"]


@pytest.mark.parametrize("mode", MODES)
def test_reader_who_leaves_keeps_the_finished_steps_in_every_mode(store: Store, mode: Any):
    runs: list[str] = []

    def counting(name: str) -> Any:
        def node(state: Log) -> Log:
            runs.append(name)
            return {"log": [name]}

        return node

    graph = in_a_row(Log, {name: counting(name) for name in "abc"}, checkpointer=store)
    for part in graph.stream({"log": []}, thread(), stream_mode="values", durability=mode):
        if part["log"] == ["a", "b"]:
            break

    assert graph.invoke(None, thread())["log"] == ["a", "b", "c"]
    assert runs == ["a", "b", "c"]


class Failing(MemorySaver):
    """A store that cannot write the checkpoint after so many."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def commit(self, lease, transition):
        if transition.checkpoint is not None:
            self.left -= 1
            if self.left < 0:
                raise StoreError("disk full")
        super().commit(lease, transition)


def test_error_of_the_background_writer_reaches_the_caller_and_nothing_later_is_written():
    with Failing(after=2) as store:
        graph = in_a_row(Log, {name: logging(name) for name in "abcdef"}, checkpointer=store)

        with pytest.raises(StoreError, match="disk full"):
            graph.invoke({"log": []}, thread(), durability="async")

        assert graph.get_state(thread()).values == {"log": ["a", "b"]}


def test_thread_whose_background_writer_failed_goes_on_from_what_was_written():
    with Failing(after=2) as store:
        graph = in_a_row(Log, {name: logging(name) for name in "abcdef"}, checkpointer=store)
        with pytest.raises(StoreError, match="disk full"):
            graph.invoke({"log": []}, thread(), durability="async")
        store.left = 100

        assert graph.invoke(None, thread())["log"] == list("abcdef")


def test_pause_after_a_failed_background_write_is_an_error_and_no_pause():
    with Failing(after=1) as store:
        graph = in_a_row(Log, {"a": logging("a"), "b": logging("b"), "c": asks("?")}, checkpointer=store)

        with pytest.raises(StoreError, match="disk full"):
            graph.invoke({"log": []}, thread(), durability="async")

        assert graph.get_state(thread()).interrupts == ()


@pytest.mark.complaint(39)
def test_background_writer_is_given_more_than_it_can_hold_and_loses_nothing(store: Store):
    def count(state: dict[str, int]) -> Command:
        return Command(update={"n": state["n"] + 1}, goto="node" if state["n"] < 199 else "__end__")

    graph = one_node({"n": int}, count, checkpointer=store, durability="async")

    assert graph.invoke({"n": 0}, thread())["n"] == 200
    assert [seen.values["n"] for seen in graph.get_state_history(thread())] == list(range(200, -1, -1))
