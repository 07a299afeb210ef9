"""A claimed run goes on as `invoke` would, whatever it waited for and however its nodes are written."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypedDict

import pytest

from bide import END, START, Bide, Interrupt, StateGraph, Store, ask, interrupt, step
from bide.store.lanes import lane_of
from bide.types import RunControl
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import State, graph


def two_nodes(first: Any, second: Any, **options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder.compile(name="asks", **options)


def test_question_that_a_finished_node_returned_is_answered_from_outside(world: MakeWorld) -> None:
    here = world(two_nodes(lambda state: Interrupt("go?"), lambda state, runtime: {"answer": runtime.resume_value}))
    run = here.app.start("asks", {"given": 1})
    here.settle()

    here.app.resume(run.thread_id, "gladly")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == "gladly"


def test_static_pause_is_passed_from_outside(world: MakeWorld, store: Store) -> None:
    told = {"interrupt_before": ["second"], "checkpointer": store}
    asks = two_nodes(lambda state: {"given": 2}, lambda state: {"answer": state["given"]}, **told)
    here = world(asks)
    run = here.app.start("asks", {"given": 1})
    assert here.settle() == ["waiting"]
    (wait,) = here.app.waits()
    assert wait.kind == "pause"

    here.app.wake(wait.id)
    assert here.settle() == ["done"]

    assert here.app.get(run.thread_id).values["answer"] == 2


def test_async_nodes_are_driven_as_well(world: MakeWorld) -> None:
    async def node(state: Any) -> Any:
        return {"answer": [await step(fetch, 2), ask("?")]}

    async def fetch(number: int) -> int:
        return number * 2

    here = world(graph(node))
    run = here.app.start("asks", {"given": 1})
    here.settle()
    here.app.resume(run.thread_id, "yes")
    here.settle()

    assert here.app.get(run.thread_id).values["answer"] == [4, "yes"]


def test_run_that_is_asked_to_stop_is_given_back_between_two_steps(world: MakeWorld, store: Store) -> None:
    from bide.runtime.driving import drive

    control = RunControl()
    here = world(
        two_nodes(lambda state: control.request_drain("deploy") or {"given": 2}, lambda state: {"answer": "on"})
    )
    run = here.app.start("asks", {"given": 1})
    (claim,) = store.claim([lane_of("asks")], 1)

    assert drive(store, here.app.graphs, claim, control).outcome == "drained"
    assert here.app.get(run.thread_id).status == "ready"
    assert here.settle() == ["done"]


def test_input_is_applied_once_though_its_worker_died_right_after(world: MakeWorld, store: Store) -> None:
    from tests.runtime.test_runs import lay_off

    builder = StateGraph(Counting)
    builder.add_node("node", lambda state: {"total": ask("?")})
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    here = world(builder.compile(name="asks"))
    run = here.app.start("asks", {"total": 1})
    here.settle()
    here.app.resume(run.thread_id, 10)
    store.claim([lane_of("asks")], 1)
    lay_off(store)

    here.settle()

    assert here.app.get(run.thread_id).values["total"] == 11


def plus(old: int, new: int) -> int:
    return old + new


class Counting(TypedDict):
    total: Annotated[int, plus]


def test_graph_that_lost_a_node_blocks_its_thread_until_it_is_back(store: Store, clock: Any) -> None:
    old = Bide(store, [two_nodes(lambda state: {"given": interrupt("?")}, lambda state: {"answer": 1})])
    run = old.start("asks", {"given": 1})
    old.run_ready()
    changed = StateGraph(State)
    changed.add_node("other", lambda state: {"answer": 2})
    changed.add_edge(START, "other")
    new = Bide(store, [changed.compile(name="asks")])
    old.resume(run.thread_id, "yes")

    assert [one.outcome for one in new.run_ready()] == ["failed"]
    thread = old.get(run.thread_id)
    assert thread.status == "blocked"
    assert "no longer has" in (thread.error or "")
    assert old.release(run.thread_id)
    assert [one.outcome for one in old.run_ready()] == ["done"]


def test_context_and_config_of_a_start_reach_the_nodes_after_every_pause(world: MakeWorld) -> None:
    seen: list[Any] = []

    def node(state: Any, runtime: Any, config: Any) -> Any:
        seen.append((runtime.context, config["configurable"]["user"], config["metadata"]["why"]))
        return {"answer": ask("?")}

    here = world(graph(node))
    config = {"configurable": {"user": "ann"}, "metadata": {"why": "test"}}
    run = here.app.start("asks", {"given": 1}, context={"tone": "calm"}, config=config)
    here.settle()
    here.app.resume(run.thread_id, "yes")
    here.settle()

    assert seen == [({"tone": "calm"}, "ann", "test")] * 2


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_pauses_and_goes_on(world: MakeWorld, durability: Any) -> None:
    here = world(two_nodes(lambda state: {"given": ask("?")}, lambda state: {"answer": state["given"]}))
    run = here.app.start("asks", {"given": 1}, durability=durability)
    here.settle()
    here.app.resume(run.thread_id, "yes")
    here.settle()

    assert here.app.get(run.thread_id).values == {"given": "yes", "answer": "yes"}


def test_node_that_ends_the_process_ends_its_run_alone(world: MakeWorld) -> None:
    here = world(graph(lambda state: sys.exit("enough")))
    run = here.app.start("asks", {"given": 1})

    assert here.settle() == ["failed"]

    thread = here.app.get(run.thread_id)
    assert (thread.status, thread.error) == ("failed", "SystemExit: enough")


def test_run_whose_end_could_not_be_written_is_given_back_and_counted(
    world: MakeWorld, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bide import StoreBusyError

    here = world(graph(lambda state: {"answer": 1}))
    run = here.app.start("asks", {"given": 1})
    monkeypatch.setattr(store, "commit", lambda *_: (_ for _ in ()).throw(StoreBusyError("not now")))

    assert [one.outcome for one in here.app.run_ready()] == ["given back"]
    monkeypatch.undo()
    here.app.tend()
    thread = here.app.get(run.thread_id)
    assert (thread.status, thread.run and thread.run.crashes) == ("ready", 1)

    assert here.settle() == ["done"]


def test_run_that_could_not_be_read_because_the_database_was_away_is_given_back_and_not_blocked(
    world: MakeWorld, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bide import StoreUnavailableError

    here = world(graph(lambda state: {"answer": 1}))
    run = here.app.start("asks", {"given": 1})
    monkeypatch.setattr(store, "open_claim", lambda _: (_ for _ in ()).throw(StoreUnavailableError("it is away")))

    assert [one.outcome for one in here.app.run_ready()] == ["given back"]
    monkeypatch.undo()
    here.app.tend()

    assert here.settle() == ["done"]
    assert here.app.get(run.thread_id).values["answer"] == 1


def test_answer_between_the_reading_and_the_taking_of_a_thread_is_not_forgotten(
    world: MakeWorld, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StateGraph(State)
    builder.add_node("a", lambda state: {"given": interrupt("a")})
    builder.add_node("b", lambda state: {"answer": interrupt("b")})
    for name in ("a", "b"):
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    asks = builder.compile(name="asks")
    here = world(asks)
    run = here.app.start("asks", {"given": 1})
    here.settle()
    waits = {wait.node: wait.id for wait in here.app.waits()}
    here.app.wake(waits["a"], "A")
    (claim,) = store.claim([lane_of("asks")], 1)
    store.let_go(claim.lease)
    begin = store.begin

    def begin_late(taking: Any) -> Any:
        monkeypatch.undo()
        here.app.wake(waits["b"], "B")
        return begin(taking)

    monkeypatch.setattr(store, "begin", begin_late)
    asks.invoke(None, {"configurable": {"thread_id": run.thread_id}})
    here.settle()

    assert here.app.get(run.thread_id).values == {"given": "A", "answer": "B"}
