"""step(): a call inside a node that is made once, however often the node runs again."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.errors import ReplayMismatchError, StepError, UnstorableValueError
from tests.engine.ledger import Ledger
from tests.threads import one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def resume(graph: CompiledGraph, answer: Any = "yes") -> Any:
    return graph.invoke(Command(resume=answer), thread())


def status_of(store: Store) -> str | None:
    return store.threads()[0].status


# ── Once, and kept ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_step_is_made_once_and_gives_the_same_result_at_every_replay(store: Store, ledger: Ledger):
    def node(state: Log) -> Log:
        receipt = step(ledger.charge, 10)
        return {"log": [receipt, interrupt("one?"), interrupt("two?")]}

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())
    resume(graph, 1)
    done = resume(graph, 2)

    assert done["log"] == ["receipt 1", 1, 2]
    assert ledger.calls == [10]


async def test_async_step_is_made_once_and_gives_the_same_result(store: Store, ledger: Ledger):
    async def node(state: Log) -> Log:
        return {"log": [await step(ledger.acharge, 10), interrupt("?")]}

    graph = one_node(Log, node, checkpointer=store)
    await graph.ainvoke({"log": []}, thread())
    done = await graph.ainvoke(Command(resume="yes"), thread())

    assert done["log"] == ["receipt 1", "yes"]
    assert ledger.calls == [10]


async def test_steps_gathered_in_one_node_keep_their_own_results(store: Store, ledger: Ledger):
    async def node(state: Log) -> Log:
        receipts = await asyncio.gather(*(step(ledger.acharge, amount) for amount in (1, 2, 3)))
        interrupt("?")
        return {"log": receipts}

    graph = one_node(Log, node, checkpointer=store)
    await graph.ainvoke({"log": []}, thread())
    done = await graph.ainvoke(Command(resume="yes"), thread())

    assert done["log"] == ["receipt 1", "receipt 2", "receipt 3"]
    assert ledger.calls == [1, 2, 3]


def test_plain_step_may_be_made_in_an_async_node(store: Store, ledger: Ledger):
    async def node(state: Log) -> Log:
        return {"log": [step(ledger.charge, 10), interrupt("?")]}

    graph = one_node(Log, node, checkpointer=store)
    asyncio.run(graph.ainvoke({"log": []}, thread()))
    done = asyncio.run(graph.ainvoke(Command(resume="yes"), thread()))

    assert (done["log"], ledger.calls) == (["receipt 1", "yes"], [10])


def test_same_function_twice_is_two_steps(store: Store, ledger: Ledger):
    def node(state: Log) -> Log:
        return {"log": [step(ledger.charge, 10), step(ledger.charge, 10), interrupt("?")]}

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())

    assert resume(graph)["log"] == ["receipt 1", "receipt 2", "yes"]
    assert ledger.calls == [10, 10]


def test_steps_with_keys_may_change_places_between_replays(store: Store, ledger: Ledger):
    order = ["rent", "food"]

    def node(state: Log) -> Log:
        receipts = {what: step(ledger.charge, len(what), key=what) for what in order}
        interrupt("?")
        return {"log": [receipts["rent"], receipts["food"]]}

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())
    order.reverse()

    assert resume(graph)["log"] == ["receipt 1", "receipt 2"]


@pytest.mark.parametrize("result", [None, 0, "", [], False])
def test_empty_result_is_a_result(store: Store, result: Any):
    calls = []

    def work() -> Any:
        calls.append("call")
        return result

    def node(state: Log) -> Log:
        return {"log": [step(work), interrupt("?")]}

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())

    assert resume(graph)["log"] == [result, "yes"]
    assert len(calls) == 1


def test_what_a_node_does_to_a_result_afterwards_is_not_kept(store: Store):
    def node(state: Log) -> Log:
        items = step(list, "ab")
        items.append("c")
        interrupt("?")
        return {"log": items}

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())

    assert resume(graph)["log"] == ["a", "b", "c"]


def test_next_visit_of_the_node_makes_its_step_anew(store: Store, ledger: Ledger):
    def node(state: Log) -> Command:
        receipt = step(ledger.charge, 10)
        return Command(update={"log": [receipt]}, goto="node" if len(state["log"]) < 2 else "__end__")

    assert one_node(Log, node, checkpointer=store).invoke({"log": []}, thread())["log"] == [
        "receipt 1",
        "receipt 2",
        "receipt 3",
    ]


def test_parallel_tasks_of_one_node_have_journals_of_their_own(store: Store, ledger: Ledger):
    def node(state: Log) -> Log:
        return {"log": [step(ledger.charge, 10), interrupt("?")]}

    graph = side_by_side(Log, {"a": node, "b": node}, checkpointer=store)
    paused = graph.invoke({"log": []}, thread())
    done = resume(graph, {question.id: "yes" for question in paused.interrupts})

    assert ledger.calls == [10, 10]
    assert sorted(done["log"]) == ["receipt 1", "receipt 2", "yes", "yes"]


def test_step_that_was_made_is_not_repeated_when_a_later_one_fails(store: Store, ledger: Ledger):
    broken = Ledger()
    broken.trouble = OSError("no connection")

    def node(state: Log) -> Log:
        return {"log": [step(ledger.charge, 1), step(broken.charge, 2)]}

    graph = one_node(Log, node, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread())
    broken.trouble = None
    done = graph.invoke(None, thread())

    assert (ledger.calls, broken.calls) == ([1], [2, 2])
    assert done["log"] == ["receipt 1", "receipt 2"]


def test_graph_without_a_store_just_makes_the_call(ledger: Ledger):
    assert one_node(Log, lambda state: {"log": [step(ledger.charge, 10)]}).invoke({"log": []})["log"] == ["receipt 1"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_step_is_durable_in_every_mode_before_the_node_goes_on(tmp_path: Path, ledger: Ledger, durability: Any):
    url = f"sqlite:///{tmp_path / 'bide.db'}"
    seen_by_another = []

    def node(state: Log) -> None:
        step(ledger.charge, 10)
        with closing(sqlite3.connect(tmp_path / "bide.db")) as other, other:
            seen_by_another.extend(other.execute("SELECT key FROM journal WHERE kind = 'step'").fetchall())
        other.close()

    with Store.open(url) as store:
        one_node(Log, node, checkpointer=store).invoke({"log": []}, thread(), durability=durability)

    assert [key for (key,) in seen_by_another] == ["Ledger.charge#1"]


# ── Replays that do something else ─────────────────────────────────────────────────────────────────────────────────


def other_charge(amount: int) -> str:
    raise AssertionError("must not be called")


class Script:
    """A node whose code can be changed between runs."""

    def __init__(self, first: Callable[[], Any]) -> None:
        self.act = first

    def __call__(self, state: Log) -> Log:
        made = self.act()
        return {"log": [made, interrupt("?")]}


@pytest.mark.complaint(10)
@pytest.mark.parametrize("change", ["arguments", "function", "missing"])
def test_replay_that_does_something_else_is_blocked_and_goes_on_when_the_code_is_right_again(
    store: Store, ledger: Ledger, change: str
):
    changed = {
        "arguments": lambda: step(ledger.charge, 99, key="pay"),
        "function": lambda: step(other_charge, 10, key="pay"),
        "missing": lambda: None,
    }
    script = Script(lambda: step(ledger.charge, 10, key="pay"))
    graph = one_node(Log, script, checkpointer=store)
    graph.invoke({"log": []}, thread())
    right, script.act = script.act, changed[change]

    with pytest.raises(ReplayMismatchError, match="'pay'") as caught:
        resume(graph)
    blocked = status_of(store)
    script.act = right
    done = graph.invoke(None, thread())

    assert "recorded" in str(caught.value)
    assert "now" in str(caught.value)
    assert blocked == "blocked"
    assert done["log"] == ["receipt 1", "yes"]
    assert ledger.calls == [10]


def test_blocked_thread_takes_no_new_answer_and_keeps_the_one_it_has(store: Store, ledger: Ledger):
    script = Script(lambda: step(ledger.charge, 10, key="pay"))
    graph = one_node(Log, script, checkpointer=store)
    graph.invoke({"log": []}, thread())
    script.act = lambda: step(ledger.charge, 11, key="pay")
    with pytest.raises(ReplayMismatchError):
        resume(graph, "first")

    with pytest.raises(ReplayMismatchError):
        graph.invoke(None, thread())
    script.act = lambda: step(ledger.charge, 10, key="pay")

    assert graph.invoke(None, thread())["log"] == ["receipt 1", "first"]


def test_node_may_make_more_steps_after_its_answer(store: Store, ledger: Ledger):
    def node(state: Log) -> Log:
        first = step(ledger.charge, 1)
        answer = interrupt("?")
        return {"log": [first, answer, step(ledger.charge, 2)]}

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())

    assert resume(graph)["log"] == ["receipt 1", "yes", "receipt 2"]


# ── Keys, and wrong use ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(7)
def test_idempotency_key_is_the_same_at_every_attempt_and_differs_between_steps_and_threads(
    store: Store, ledger: Ledger
):
    def node(state: Log) -> Log:
        return {"log": [step(ledger.charge_with_key, 1), step(ledger.charge_with_key, 1)]}

    graph = one_node(Log, node, checkpointer=store)
    ledger.trouble = OSError("no connection")
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread())
    ledger.trouble = None
    done = graph.invoke(None, thread())
    other = graph.invoke({"log": []}, thread("other"))

    first, again, second, *rest = ledger.calls
    assert first == again
    assert len({first, second, *rest}) == 4
    assert (done["log"], other["log"]) == ([first, second], rest)


def test_result_that_cannot_be_stored_is_an_error_that_names_the_step(store: Store):
    def handle() -> object:
        return {"connection": object()}

    graph = one_node(Log, lambda state: {"log": [step(handle)]}, checkpointer=store)

    with pytest.raises(UnstorableValueError, match="result of step 'handle#1' in node 'node'"):
        graph.invoke({"log": []}, thread())


@pytest.mark.parametrize("inner", [lambda: step(list), lambda: interrupt("?")], ids=["step()", "interrupt()"])
def test_step_is_one_call_and_nothing_is_asked_or_kept_inside_it(store: Store, inner: Callable[[], Any]):
    def outer() -> Any:
        return inner()

    with pytest.raises(StepError, match="inside step 'outer#1'"):
        one_node(Log, lambda state: {"log": [step(outer)]}, checkpointer=store).invoke({"log": []}, thread())


def test_step_may_run_another_graph_whose_nodes_make_steps_of_their_own(store: Store, ledger: Ledger):
    inner = one_node(Log, lambda state: {"log": [step(ledger.charge, 10)]}, checkpointer=store)

    def run_inner() -> list[str]:
        receipts: list[str] = inner.invoke({"log": []}, thread("inner"))["log"]
        return receipts

    outer = one_node(Log, lambda state: {"log": [*step(run_inner), interrupt("?")]}, checkpointer=store)
    outer.invoke({"log": []}, thread())

    assert resume(outer)["log"] == ["receipt 1", "yes"]
    assert ledger.calls == [10]


def test_step_outside_a_node_is_refused():
    with pytest.raises(StepError, match="outside a node"):
        step(list)


def test_two_steps_with_one_key_are_refused(store: Store, ledger: Ledger):
    def node(state: Log) -> Log:
        return {"log": [step(ledger.charge, n, key="same") for n in (1, 2)]}

    with pytest.raises(StepError, match=r"Two steps of node 'node' have the key 'same'"):
        one_node(Log, node, checkpointer=store).invoke({"log": []}, thread())


def test_unknown_effect_is_refused_before_the_call(store: Store, ledger: Ledger):
    graph = one_node(Log, lambda state: step(ledger.charge, 1, effect="twice"), checkpointer=store)

    with pytest.raises(StepError, match="'twice'"):
        graph.invoke({"log": []}, thread())

    assert ledger.calls == []


def test_step_in_a_conditional_edge_is_made_once_with_its_node(store: Store, ledger: Ledger):
    def node(state: Log) -> Log:
        return {"log": [interrupt("?")]}

    def choose(state: Log) -> str:
        step(ledger.charge, 5)
        return "__end__"

    builder = StateGraph(Log).add_node(node).add_edge(START, "node").add_conditional_edges("node", choose)
    graph = builder.compile(store)
    graph.invoke({"log": []}, thread())
    resume(graph)

    assert ledger.calls == [5]
