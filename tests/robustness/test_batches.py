"""`batch` and `abatch`: many inputs at once; `with_config`: what every call begins with."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from threading import Condition
from typing import Any

import pytest

from bide import Command, get_config, interrupt
from bide.errors import InvalidUpdateError
from tests.robustness.states import State, Trouble, lone
from tests.threads import thread


class Turn:
    """Awaited, it lets everybody else on the loop have a turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Busy:
    """Counts how many are inside at once; who is inside waits for as many as are expected."""

    def __init__(self, expected: int) -> None:
        self.expected, self.now, self.most = expected, 0, 0
        self.changed = Condition()

    def sync(self, state: State) -> State:
        with self.changed:
            self.now += 1
            self.most = max(self.most, self.now)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.most >= self.expected, 30)
            self.now -= 1
        return {"value": state["name"]}

    async def on_loop(self, state: State) -> State:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):
            await Turn()
        self.now -= 1
        return {"value": state["name"]}

    def node(self, driver: Any) -> Any:
        return self.sync if driver.name == "sync" else self.on_loop


def shout(driver, store=None):
    def node(state):
        if state["name"] == "bad":
            raise Trouble("bad")
        return {"value": state["name"].upper()}

    return lone(driver.node(node), {"checkpointer": store})


def test_results_come_in_the_order_of_the_inputs(driver, store):
    names = [f"n{number}" for number in range(50)]
    configs = [thread(name) for name in names]

    results = driver.call(shout(driver, store), "batch", [{"name": name} for name in names], configs)

    assert [result["value"] for result in results] == [name.upper() for name in names]
    assert [result.thread_id for result in results] == names


def test_no_inputs_give_no_results(driver):
    assert driver.call(shout(driver), "batch", []) == []


def test_first_error_is_raised_unless_errors_are_asked_for(driver):
    graph, inputs = shout(driver), [{"name": name} for name in ("a", "bad", "c")]

    with pytest.raises(Trouble):
        driver.call(graph, "batch", inputs)
    first, second, third = driver.call(graph, "batch", inputs, return_exceptions=True)

    assert (first["value"], third["value"]) == ("A", "C")
    assert isinstance(second, Trouble)


def test_when_one_fails_no_other_is_left_running_on_the_loop():
    ended = []

    async def node(state):
        if state["name"] == "bad":
            raise Trouble
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(state["name"])

    async def main():
        with pytest.raises(Trouble):
            await lone(node).abatch([{"name": "slow"}, {"name": "bad"}])
        return list(ended), len(asyncio.all_tasks())

    assert asyncio.run(main()) == (["slow"], 1)


@pytest.mark.parametrize("bound", [True, False], ids=["with_config", "config"])
def test_no_more_inputs_run_at_once_than_are_allowed(driver, bound):
    busy = Busy(3)
    graph, limit = lone(busy.node(driver)), {"max_concurrency": 3}
    inputs = [{"name": number} for number in range(12)]

    results = (
        driver.call(graph.with_config(limit), "batch", inputs) if bound else driver.call(graph, "batch", inputs, limit)
    )

    assert [result["value"] for result in results] == list(range(12))
    assert busy.most == 3


def test_one_config_for_each_input_or_one_for_all(driver):
    with pytest.raises(InvalidUpdateError, match="2 inputs and 1 configs"):
        driver.call(shout(driver), "batch", [{"name": "a"}, {"name": "b"}], [thread()])


def test_batch_of_answers_goes_on_with_many_threads(driver, store):
    graph = lone(driver.node(lambda state: {"value": interrupt("go?")}), {"checkpointer": store})
    configs = [thread(number) for number in range(5)]
    driver.call(graph, "batch", [{"name": number} for number in range(5)], configs)

    results = driver.call(graph, "batch", [Command(resume=number) for number in range(5)], configs)

    assert [result["value"] for result in results] == list(range(5))


# ── with_config ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_config_of_a_call_is_laid_over_the_bound_one(driver, store):
    seen = []

    def node(state):
        config = get_config()
        seen.append((config["configurable"], config.get("metadata"), config.get("tags")))

    plain = lone(driver.node(node), {"checkpointer": store})
    bound = plain.with_config(
        {"configurable": {"thread_id": "bound", "user": "ada"}, "metadata": {"a": 1}, "tags": ["x"]}
    )

    driver.invoke(bound, {"name": "x"})
    driver.invoke(bound, {"name": "x"}, {"configurable": {"thread_id": "own"}, "metadata": {"b": 2}, "tags": ["y"]})

    assert seen[0] == ({"thread_id": "bound", "user": "ada"}, {"a": 1}, ["x"])
    configurable, metadata, tags = seen[1]
    assert configurable == {"thread_id": "own", "user": "ada"}
    assert metadata == {"a": 1, "b": 2}
    assert sorted(tags) == ["x", "y"]


def test_graph_that_was_bound_leaves_the_one_it_came_from_alone(driver, store):
    plain = shout(driver, store)
    bound = plain.with_config(configurable={"thread_id": "bound"})

    result = driver.invoke(bound, {"name": "x"})

    assert result.thread_id == "bound"
    assert plain.bound == {}
    assert driver.call(bound, "get_state", {}).values["value"] == "X"
