"""Complaints 3, 8 and 14: tasks that run twice, get another's result, or lose their question.

Each test says in its first paragraph what the same program does on LangGraph 1.2.20. docs/complaints.md has the table.
"""

from __future__ import annotations

from typing import Any

import pytest

from bide import Command, Store, entrypoint, interrupt, task
from bide.errors import ReplayMismatchError
from tests.complaints.world import State, World, answer
from tests.threads import one_node, thread


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.complaint(3)
def test_what_a_task_did_to_its_argument_is_noticed_where_a_person_is_asked_about_it(store: Store, world: World):
    """There, the person says yes to a teapot, and an empty basket is bought."""

    @task
    def fill(basket: list[str]) -> None:
        basket.append("teapot")

    @entrypoint(checkpointer=store)
    def shop(basket: list[str]) -> None:
        fill(basket).result()
        if interrupt(f"Buy {basket}?") == "yes":
            world.do(f"buy {basket}")

    shop.invoke([], thread())

    with pytest.raises(ReplayMismatchError, match="teapot"):
        shop.invoke(Command(resume="yes"), thread())

    assert world.effects == []


@pytest.mark.timeout(20)
@pytest.mark.complaint(3)
def test_tasks_in_another_order_than_recorded_never_get_each_others_results(store: Store, world: World):
    """There, each of them is given the result that was recorded for the other."""
    order = ["a", "b"]

    @task
    def work(name: str) -> str:
        return world.do(name)

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        found = {name: work(name).result() for name in order}
        interrupt("Go on?")
        return found

    run.invoke(1, thread())
    order.reverse()

    with pytest.raises(ReplayMismatchError, match="recorded"):
        run.invoke(Command(resume="yes"), thread())

    assert world.effects == ["a", "b"]


@pytest.mark.complaint(8)
def test_task_before_a_question_inside_a_subgraph_is_made_once(store: Store, world: World):
    """There, it ran again in releases before; on 1.2.20 it does not."""

    @task
    def pay(amount: int) -> str:
        return world.do(f"pay {amount}")

    def inner(state: State) -> dict[str, Any]:
        return {"log": [pay(10).result(), interrupt("Ship?")]}

    graph = one_node(State, one_node(State, inner), checkpointer=store)
    graph.invoke({}, thread())

    assert graph.invoke(Command(resume="yes"), thread())["log"] == ["pay 10 done", "yes"]
    assert world.effects == ["pay 10"]


@pytest.mark.complaint(14)
def test_questions_of_parallel_tasks_are_all_told(store: Store):
    """There, one of the two is told, and an answer to it fails because there are two."""

    @task
    def ask(question: str) -> Any:
        return interrupt(question)

    @entrypoint(checkpointer=store)
    def both(given: int) -> list[Any]:
        return [asked.result() for asked in [ask("Pay?"), ask("Ship?")]]

    pay, ship = both.invoke(1, thread()).interrupts
    both.invoke(answer(ship, "ship"), thread())

    result = both.invoke(answer(pay, "pay"), thread())

    assert [pay.value, ship.value] == ["Pay?", "Ship?"]
    assert result == ["pay", "ship"]
