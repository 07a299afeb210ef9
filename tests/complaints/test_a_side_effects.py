"""Complaints 1 to 10: effects that happen twice.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bide import Command, NodeError, Send, StateGraph, Store, interrupt, step
from bide.errors import ReplayMismatchError
from bide.types import START
from tests.complaints.world import State, World, answer
from tests.threads import one_node, side_by_side, thread


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.complaint(1)
def test_branch_that_still_waits_is_not_run_again_when_its_sibling_is_answered(store: Store, world: World):
    """There, answering the left branch runs the right one again, only to have it ask again."""

    def asks(side: str) -> Any:
        def node(state: State) -> dict[str, Any]:
            world.do(side)
            return {"log": [interrupt(f"{side}?")]}

        return node

    graph = side_by_side(State, {"left": asks("left"), "right": asks("right")}, checkpointer=store)
    left, right = graph.invoke({}, thread()).interrupts
    world.effects.clear()

    still_waiting = graph.invoke(answer(left, "yes"), thread())

    assert world.effects == ["left"]
    assert still_waiting.interrupts == (right,)


@pytest.mark.complaint(2)
def test_effects_of_a_loop_that_asks_are_made_once_each(store: Store, world: World):
    """There, the loop begins anew with every answer: four questions make fourteen effects."""

    def interview(state: State) -> dict[str, Any]:
        answers = []
        for number in range(4):
            step(world.do, f"prepare {number}")
            answers.append(interrupt(f"Question {number}?"))
        return {"log": answers}

    graph = one_node(State, interview, checkpointer=store)
    result = graph.invoke({}, thread())
    for number in range(4):
        result = graph.invoke(Command(resume=number), thread())

    assert result["log"] == [0, 1, 2, 3]
    assert world.effects == [f"prepare {number}" for number in range(4)]


@pytest.mark.complaint(2)
def test_answers_of_a_loop_belong_to_their_keys_though_the_list_is_in_another_order(store: Store):
    """There, answers are given by position: after a reordering each item would get the answer to another."""
    items = ["teapot", "cup"]

    def review(state: State) -> dict[str, Any]:
        return {"log": [(item, interrupt(f"Ship the {item}?", key=item)) for item in items]}

    graph = one_node(State, review, checkpointer=store)
    graph.invoke({}, thread())
    graph.invoke(Command(resume="teapot: no"), thread())
    items.reverse()

    result = graph.invoke(Command(resume="cup: yes"), thread())

    assert result["log"] == [("cup", "cup: yes"), ("teapot", "teapot: no")]


@pytest.mark.complaint(3)
def test_step_that_changes_its_argument_is_told_so_and_the_question_about_it_is_not_answered(
    store: Store, world: World
):
    """There, the same with `@task`: the person says yes to a teapot, and an empty basket is bought."""

    def fill(basket: list[str]) -> None:
        basket.append("teapot")

    def shop(state: State) -> dict[str, Any]:
        basket: list[str] = []
        step(fill, basket)
        if interrupt(f"Buy {basket}?") == "yes":
            world.do(f"buy {basket}")
        return {}

    graph = one_node(State, shop, checkpointer=store)
    with pytest.warns(UserWarning, match="changed one of its arguments in place"):
        graph.invoke({}, thread())

    with pytest.raises(ReplayMismatchError, match="teapot"):
        graph.invoke(Command(resume="yes"), thread())

    assert world.effects == []


@pytest.mark.complaint(3)
def test_steps_in_another_order_than_recorded_never_get_each_others_results(store: Store, world: World):
    """There, the same with `@task`: each gets the result that was recorded for the other."""
    order = ["a", "b"]

    def node(state: State) -> dict[str, Any]:
        found = {name: step(world.do, name) for name in order}
        interrupt("Go on?")
        return {"name": found}

    graph = one_node(State, node, checkpointer=store)
    graph.invoke({}, thread())
    order.reverse()

    with pytest.raises(ReplayMismatchError, match="recorded"):
        graph.invoke(Command(resume="yes"), thread())

    assert world.effects == ["a", "b"]


@pytest.mark.complaint(4)
async def test_tool_that_has_finished_is_not_called_again_because_another_tool_asks(store: Store, world: World):
    """There, the three calls of one message run in one task: each of them is made three times until both have answers.

    The calls run side by side in one node here too.
    """

    async def look_up() -> str:
        return world.do("look up")

    async def ask(question: str) -> str:
        return str(interrupt(question, key=question))

    async def tools(state: State) -> dict[str, Any]:
        return {"log": list(await asyncio.gather(step(look_up), ask("Pay?"), ask("Ship?")))}

    graph = one_node(State, tools, checkpointer=store)
    pay, ship = (await graph.ainvoke({}, thread())).interrupts
    await graph.ainvoke(answer(pay, "pay"), thread())

    result = await graph.ainvoke(answer(ship, "ship"), thread())

    assert result["log"] == ["look up done", "pay", "ship"]
    assert world.effects == ["look up"]


@pytest.mark.complaint(4)
def test_tools_that_are_sent_one_by_one_are_tasks_of_their_own(store: Store, world: World):
    """There, this works too, for who knows that one `Send` per call is needed."""

    def call(tool: dict[str, Any]) -> dict[str, Any]:
        return {"log": [interrupt(tool["ask"]) if "ask" in tool else world.do(tool["do"])]}

    builder = StateGraph(State).add_node("call", call)
    calls = [{"do": "look up"}, {"ask": "Pay?"}, {"ask": "Ship?"}]
    builder.add_conditional_edges(START, lambda state: [Send("call", each) for each in calls])
    graph = builder.compile(checkpointer=store)

    pay, ship = graph.invoke({"log": []}, thread()).interrupts
    graph.invoke(answer(ship, "ship"), thread())
    result = graph.invoke(answer(pay, "pay"), thread())

    assert result["log"] == ["look up done", "pay", "ship"]
    assert world.effects == ["look up"]


@pytest.mark.complaint(7)
def test_call_that_failed_is_tried_again_under_the_same_idempotency_key(store: Store):
    """There, a node gets no key that is stable across attempts; everybody derives their own."""
    seen: list[str] = []

    def charge(amount: int, idempotency_key: str) -> str:
        seen.append(idempotency_key)
        if len(seen) == 1:
            raise ConnectionError("the provider did not say whether it took the money")
        return "receipt"

    graph = one_node(State, lambda state: {"name": step(charge, 10)}, checkpointer=store)
    with pytest.raises(ConnectionError):
        graph.invoke({}, thread())

    assert graph.invoke(None, thread())["name"] == "receipt"
    assert graph.invoke({}, thread("another customer"))["name"] == "receipt"
    first, second, another = seen
    assert first == second != another


@pytest.mark.complaint(9)
def test_error_handler_is_not_run_again_because_a_sibling_asks(store: Store, world: World):
    """There, the handler's work is committed, and it runs again when the sibling's question is answered."""

    def fails(state: State) -> dict[str, Any]:
        raise ValueError("no paper")

    def order_paper(state: State, error: NodeError) -> dict[str, Any]:
        return {"log": [world.do(f"order because of {error.error}")]}

    builder = StateGraph(State).add_node("print", fails, error_handler=order_paper)
    builder.add_node("ask", lambda state: {"name": interrupt("Your name?")})
    graph = builder.add_edge(START, "print").add_edge(START, "ask").compile(checkpointer=store)
    graph.invoke({}, thread())

    result = graph.invoke(Command(resume="Ada"), thread())

    assert result == {"name": "Ada", "log": ["order because of no paper done"]}
    assert world.effects == ["order because of no paper"]


@pytest.mark.complaint(10)
def test_approval_of_one_action_does_not_approve_another(store: Store, world: World):
    """There, an answer belongs to a position: "yes" to 10 pays 10000 when the node's second run asks for that."""
    amounts = iter([10, 10_000])

    def pay(state: State) -> dict[str, Any]:
        amount = next(amounts)
        if interrupt(f"Pay {amount}?") == "yes":
            world.do(f"pay {amount}")
        return {}

    graph = one_node(State, pay, checkpointer=store)
    graph.invoke({}, thread())

    with pytest.raises(ReplayMismatchError, match="Pay 10000"):
        graph.invoke(Command(resume="yes"), thread())

    assert world.effects == []
