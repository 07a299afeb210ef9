"""Many tasks in one step: how many at once, in which order, and which of them run again."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from bide import Command, Send, StateGraph, interrupt
from bide.types import START
from tests.robustness.states import State, Trouble
from tests.threads import thread


def fan_out(node, count, store, **options):
    """A graph that sends so many tasks to one node."""
    builder = StateGraph(State).add_node("node", node, **options)
    builder.add_conditional_edges(START, lambda state: [Send("node", {"name": number}) for number in range(count)])
    return builder.compile(checkpointer=store)


class Busy:
    """Counts how many tasks run at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)

    def come(self) -> None:
        with self.changed:
            self.now += 1
            self.most = max(self.most, self.now)
            self.changed.notify_all()

    def go(self) -> None:
        with self.changed:
            self.now -= 1

    def meet(self, count: int) -> None:
        """Wait until so many have been here at once."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.most >= count, 30)


def busy_node(driver: Any, busy: Busy, at_least: int) -> Any:
    """A node that waits until as many as are allowed run beside it."""

    def sync(arg: State) -> State:
        busy.come()
        busy.meet(at_least)
        busy.go()
        return {"log": [arg["name"]]}

    async def on_loop(arg: State) -> State:
        busy.come()
        for _ in range(20):
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0)
        busy.go()
        return {"log": [arg["name"]]}

    return sync if driver.name == "sync" else on_loop


def test_thousand_sends_come_back_in_the_order_in_which_they_were_sent(driver, store):
    graph = fan_out(driver.node(lambda arg: {"log": [arg["name"]]}), 1000, store)

    assert driver.invoke(graph, {}, thread())["log"] == list(range(1000))


@pytest.mark.parametrize("most", [1, 3, 20])
def test_as_many_tasks_run_at_once_as_are_allowed_and_no_more(driver, store, most):
    busy = Busy()
    graph = fan_out(busy_node(driver, busy, most), 40, store)

    result = driver.invoke(graph, {}, thread(max_concurrency=most))

    assert result["log"] == list(range(40))
    assert busy.most == most


def test_plain_nodes_of_an_async_run_keep_to_max_concurrency_too(store):
    busy = Busy()

    def node(arg):
        busy.come()
        busy.meet(3)
        busy.go()
        return {"log": [arg["name"]]}

    graph = fan_out(node, 40, store)

    asyncio.run(graph.ainvoke({}, thread(max_concurrency=3)))

    assert busy.most == 3


def test_plain_nodes_of_an_async_run_do_not_start_a_thread_each():
    most = [0]

    def node(arg):
        most[0] = max(most[0], threading.active_count())
        assert gate.wait(0.2) or True

    gate = threading.Event()
    builder = StateGraph(State).add_node("node", node)
    builder.add_conditional_edges(START, lambda state: [Send("node", {"name": number}) for number in range(400)])
    before = threading.active_count()

    asyncio.run(builder.compile().ainvoke({}))

    assert most[0] - before <= 150


def test_only_those_that_failed_or_were_answered_run_again(driver, store):
    runs: list[int] = []
    is_mended = []

    def node(arg):
        number = arg["name"]
        runs.append(number)
        if number % 10 == 3:
            return {"log": [[number, interrupt(number)]]}
        if number == 55 and not is_mended:
            raise Trouble(number)
        return {"log": [number]}

    graph = fan_out(driver.node(node), 60, store)
    with pytest.raises(Trouble):
        driver.invoke(graph, {}, thread(max_concurrency=1))
    first, runs[:] = sorted(runs), []
    is_mended.append(True)

    paused = driver.invoke(graph, None, thread())
    second, runs[:] = sorted(runs), []
    answers = {ask.id: "yes" for ask in paused.interrupts if ask.value in (3, 43)}
    partly = driver.invoke(graph, Command(resume=answers), thread())
    third, runs[:] = sorted(runs), []
    done = driver.invoke(graph, Command(resume={ask.id: "late" for ask in partly.interrupts}), thread())

    assert first == list(range(56))
    assert second == [55, 56, 57, 58, 59]
    assert [ask.value for ask in paused.interrupts] == [3, 13, 23, 33, 43, 53]
    assert third == [3, 43]
    assert sorted(runs) == [13, 23, 33, 53]
    answered = {3: "yes", 43: "yes", 13: "late", 23: "late", 33: "late", 53: "late"}
    assert done["log"] == [[number, answered[number]] if number in answered else number for number in range(60)]


def test_command_may_send_beside_going_somewhere(driver, store):
    def lead(state):
        return Command(update={"log": ["lead"]}, goto=[Send("node", {"name": 2}), "plain", Send("node", {"name": 1})])

    builder = StateGraph(State).add_node("lead", driver.node(lead)).add_edge(START, "lead")
    builder.add_node("node", driver.node(lambda arg: {"log": [arg["name"]]}))
    builder.add_node("plain", driver.node(lambda state: {"log": ["plain"]}))
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {}, thread())["log"] == ["lead", "plain", 2, 1]
