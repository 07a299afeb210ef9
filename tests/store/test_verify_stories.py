"""After the busiest lives of threads a store is sound: forks, edits, graphs inside, failures, deaths, retention."""

from __future__ import annotations

import operator
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import END, START, Command, CompiledGraph, Send, StateGraph, Store, interrupt, step
from bide.store.stored_rows import CHECKPOINTS
from tests.store.inspected import all_rows
from tests.stores import KINDS, opened_store
from tests.stories.programs.child import run_program
from tests.threads import one_node, thread

DURABILITIES = ["sync", "async", "exit"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


class Talk(TypedDict):
    log: Annotated[list[str], operator.add]
    text: str


def line(text: str) -> str:
    """Something that is too long for a checkpoint's own row."""
    return f"{text} " * 100


def check_sound(store: Store) -> None:
    found = store.verify()
    assert found.is_sound, str(found)


def team_graph(store: Store, durability: str) -> tuple[CompiledGraph, list[str]]:
    """A graph inside a graph: it asks, fails once, and sends work to several at once."""
    failures = ["once"]

    def draft(state: Talk) -> dict[str, Any]:
        return {"log": [line("drafted")], "text": "long " * 20_000}

    def ask(state: Talk) -> dict[str, Any]:
        step(str, "looked up")
        return {"log": [line(interrupt("Shall we?"))]}

    def check(state: Talk) -> dict[str, Any]:
        if failures:
            raise ConnectionError(failures.pop())
        return {"log": [line("checked")], "text": "short"}

    inner = StateGraph(Talk)
    inner.add_sequence([draft, ask, check])
    inner.add_edge(START, "draft")
    outer = StateGraph(Talk)
    outer.add_node("first", lambda state: {"log": [line("begun")]})
    outer.add_node("team", inner.compile())
    outer.add_node("worker", lambda state: {"log": [line(state["text"])]})
    outer.add_node("last", lambda state: {"log": [line("ended")]})
    outer.add_edge(START, "first")
    outer.add_edge("first", "team")
    outer.add_conditional_edges("team", lambda state: [Send("worker", {"text": str(number)}) for number in range(3)])
    outer.add_edge("worker", "last")
    outer.add_edge("last", END)
    return outer.compile(checkpointer=store, durability=durability), failures


@pytest.mark.parametrize("durability", DURABILITIES)
def test_graph_inside_that_asks_and_fails_leaves_a_sound_store_at_every_stage(store, durability):
    graph, failures = team_graph(store, durability)
    graph.invoke({"log": [], "text": ""}, thread("t"))
    check_sound(store)

    with pytest.raises(ConnectionError):
        graph.invoke(Command(resume="yes"), thread("t"))
    check_sound(store)

    graph.invoke(None, thread("t"))
    check_sound(store)
    assert not failures

    graph.invoke({"log": [line("again")]}, thread("t"))
    check_sound(store)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_forks_and_edits_leave_a_sound_store_at_every_stage(store, durability):
    graph, failures = team_graph(store, durability)
    failures.clear()
    graph.invoke({"log": [], "text": ""}, thread("t"))
    graph.update_state(thread("t"), {"log": [line("edited while it waits")]})
    check_sound(store)

    graph.invoke(Command(resume="yes"), thread("t"))
    past = list(graph.get_state_history(thread("t")))
    for old in past[::2]:
        graph.invoke(None, old.config)
        check_sound(store)

    graph.update_state(past[-1].config, {"log": [line("another past")]})
    check_sound(store)
    graph.update_state(thread("t"), {"text": "moved"}, as_node="first")
    check_sound(store)
    graph.invoke({"log": []}, thread("t"), on_paused="restart")
    check_sound(store)


def test_retention_leaves_a_sound_store(store):
    graph, failures = team_graph(store, "sync")
    failures.clear()
    for name in ("a", "b"):
        graph.invoke({"log": [], "text": ""}, thread(name))
        for _ in range(3):
            graph.invoke(Command(resume="yes"), thread(name))
            graph.invoke({"log": [], "text": ""}, thread(name))

    for keep_last in (5, 2, 1):
        store.prune(keep_last=keep_last)
        check_sound(store)

    graph.invoke(Command(resume="yes"), thread("a"))
    store.delete_thread("b")
    check_sound(store)


def test_thread_that_was_forked_at_its_beginning_and_pruned_is_sound_and_so_is_its_copy(store, tmp_path):
    graph = one_node(Talk, lambda state: {"log": [line("said")]}, checkpointer=store)
    graph.invoke({"log": [], "text": ""}, thread("t"))
    first = list(graph.get_state_history(thread("t")))[-1]
    graph.invoke({"text": "another beginning"}, first.config)
    for _ in range(5):
        graph.invoke({"text": "more"}, thread("t"))

    store.prune(keep_last=3, thread_id="t")
    store.export_thread("t", tmp_path / "t.bide")
    store.import_thread(tmp_path / "t.bide", "copy")

    check_sound(store)
    for name in ("t", "copy"):
        points = all_rows(store, CHECKPOINTS, name)
        assert points[0]["parent"] is None
        assert {point["parent"] for point in points[1:]} - {point["seq"] for point in points}  # some are gone


def test_long_conversation_whose_rows_are_put_together_is_sound_on_every_branch(store):
    graph = StateGraph(Talk)
    graph.add_node("talk", lambda state: {"log": [line(state["text"])]})
    graph.add_edge(START, "talk")
    compiled = graph.compile(checkpointer=store)
    for number in range(80):
        compiled.invoke({"text": str(number)}, thread("t"))
    old = list(compiled.get_state_history(thread("t")))[100]
    compiled.invoke({"text": "another way"}, old.config)

    check_sound(store)


def test_memory_does_not_grow_with_the_store(tmp_path):
    def write(state: Talk) -> dict[str, Any]:
        return {"text": f"{len(state['log'])} " * 300_000, "log": ["x"]}

    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        graph = StateGraph(Talk).add_node("write", write).add_edge(START, "write").compile(checkpointer=store)
        for _ in range(40):
            graph.invoke({"log": ["x"]}, thread("t"))
        assert store.stats().blob_bytes > 24_000_000

        tracemalloc.start()
        assert store.verify().is_sound
        store.export_thread("t", tmp_path / "t.bide")
        store.import_thread(tmp_path / "t.bide", "copy")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    assert peak < 8_000_000


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", DURABILITIES)
def test_death_at_any_point_leaves_a_sound_store_before_and_after_somebody_goes_on(tmp_path, durability):
    (tmp_path / "in peace").mkdir()
    trace = tmp_path / "trace.txt"
    assert run_program("order.py", tmp_path / "in peace", durability, BIDE_FAILPOINT_TRACE=str(trace)).returncode == 0
    points = [point for point in trace.read_text(encoding="utf-8").splitlines() if not point.startswith("migrate")]

    for number, point in enumerate(points[3::25]):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed = run_program("order.py", folder, durability, BIDE_FAILPOINT=point)
        assert killed.returncode == -signal.SIGKILL
        with Store.open(f"sqlite:///{folder / 'bide.db'}") as store:
            assert store.verify().is_sound, f"{point}: {store.verify()}"
        assert run_program("order.py", folder, durability).returncode == 0
        with Store.open(f"sqlite:///{folder / 'bide.db'}") as store:
            assert store.verify().is_sound, f"{point}: {store.verify()}"
            assert store.verify().checked["threads"] == 1
