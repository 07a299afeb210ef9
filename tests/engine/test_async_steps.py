"""Async steps: awaited they are made once; one that nobody awaits is told, since it was not made."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest

from bide import step
from bide.errors import StepError
from tests.threads import one_node, thread


class State(TypedDict, total=False):
    sent: str


async def send(to: str) -> str:
    return f"sent to {to}"


def test_async_step_in_a_plain_node_is_refused_with_the_way_to_write_it(store, driver):
    def node(state: State) -> Any:
        step(send, "ada")
        return {"sent": "done"}

    with pytest.raises(StepError, match=r"Make the node `async def`, write `await step\(send, …\)`"):
        driver.invoke(one_node(State, node, checkpointer=store), {}, thread())


def test_async_step_that_nobody_awaits_is_an_error_of_its_node(store):
    async def node(state: State) -> Any:
        step(send, "ada")
        return {"sent": "done"}

    graph = one_node(State, node, checkpointer=store)

    with pytest.raises(StepError, match="did not await it, so it was not made"):
        asyncio.run(graph.ainvoke({}, thread()))
    assert graph.get_state(thread()).next == ("node",)


def test_async_step_that_is_awaited_gives_its_result(store):
    async def node(state: State) -> Any:
        return {"sent": await step(send, "ada")}

    result = asyncio.run(one_node(State, node, checkpointer=store).ainvoke({}, thread()))

    assert result == {"sent": "sent to ada"}
