"""Running again: what is finished is not made again, and a call that differs is never given another's result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import Any

import pytest
from pydantic import BaseModel

from bide import Command, RetryPolicy, Store, entrypoint, interrupt, step, task
from bide.errors import CodecError, NotWaitingError, ReplayMismatchError, ThreadPausedError
from tests.functional.world import World, asked
from tests.threads import thread


class Colour(Enum):
    RED = "red"


@dataclass
class Order:
    number: int
    colour: Colour


class Plan(BaseModel):
    steps: list[str]


# ── After a failure ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", [None, 0, "", False, [], {}, (), 0.0, b""])
def test_finished_tasks_are_not_made_again_whatever_they_returned(store: Store, driver, world: World, value: Any):
    is_broken = [True]

    @task
    def first() -> Any:
        world.do("first")
        return value

    @task
    def second() -> str:
        world.do("second")
        if is_broken[0]:
            raise ValueError("broken")
        return "fine"

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return [first().result(), second().result()]

    with pytest.raises(ValueError, match="broken"):
        driver.invoke(run, 1, thread())
    is_broken[0] = False
    ended = driver.invoke(run, None, thread())

    assert ended == [value, "fine"]
    assert type(ended[0]) is type(value)
    assert world.effects == ["first", "second", "second"]


def test_tasks_beside_the_one_that_failed_are_kept(store: Store, driver, world: World):
    is_broken = [True]

    @task
    def work(number: int) -> int:
        world.do(f"work {number}")
        if number == 3 and is_broken[0]:
            raise ValueError("broken")
        return number

    @entrypoint(checkpointer=store)
    def run(count: int) -> list[int]:
        return [each.result() for each in [work(number) for number in range(count)]]

    with pytest.raises(ValueError, match="broken"):
        driver.invoke(run, 6, thread())
    is_broken[0] = False

    assert driver.invoke(run, None, thread()) == [0, 1, 2, 3, 4, 5]
    assert world.counts == {f"work {number}": 2 if number == 3 else 1 for number in range(6)}


def test_a_failed_entrypoint_shows_its_error_and_takes_no_plain_input_that_would_repeat_it(
    store: Store, driver, world: World
):
    @task
    def work() -> str:
        return world.do("work")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        work().result()
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        driver.invoke(run, 1, thread())
    state = driver.call(run, "get_state", thread())

    assert (state.next, state.values) == (("run",), None)
    assert "broken" in state.tasks[0].error
    with pytest.raises(ThreadPausedError):
        driver.invoke(run, 2, thread())


def test_going_on_with_an_entrypoint_that_has_ended_does_nothing(store: Store, driver, world: World):
    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        return world.do("run")

    driver.invoke(run, 1, thread())

    assert driver.invoke(run, None, thread()) == "run done"
    assert world.effects == ["run"]
    with pytest.raises(NotWaitingError):
        driver.invoke(run, Command(resume=1), thread())


def test_steps_inside_tasks_are_not_made_again(store: Store, driver, world: World):
    is_broken = [True]

    @task
    def work() -> str:
        step(world.do, "pay")
        if is_broken[0]:
            raise ValueError("broken")
        return step(world.do, "ship")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return work().result()

    with pytest.raises(ValueError, match="broken"):
        driver.invoke(run, 1, thread())
    is_broken[0] = False

    assert driver.invoke(run, None, thread()) == "ship done"
    assert world.effects == ["pay", "ship"]


def test_steps_inside_tasks_are_not_made_again_when_the_entrypoint_is_tried_again(store: Store, driver, world: World):
    @task
    def inner() -> str:
        return step(world.do, "pay")

    @task
    def work() -> None:
        inner().result()
        step(world.do, "book")
        if world.do("try") and world.counts["try"] < 3:
            raise ConnectionError("busy")

    @entrypoint(checkpointer=store, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    def run(given: int) -> str:
        work().result()
        return "end"

    assert driver.invoke(run, 1, thread()) == "end"
    assert world.counts == {"pay": 1, "book": 1, "try": 3}


def test_what_the_first_attempt_did_to_a_result_is_not_seen_by_the_second(store: Store, driver, world: World):
    @task
    def fetch() -> list[str]:
        return ["a"]

    @entrypoint(checkpointer=store, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    def run(given: int) -> list[str]:
        found = fetch().result()
        found.append("b")
        if world.do("try") and world.counts["try"] < 2:
            raise ConnectionError("busy")
        return found

    assert driver.invoke(run, 1, thread()) == ["a", "b"]


def test_tasks_of_an_attempt_that_failed_do_not_fail_the_one_that_did_not(store: Store, driver, world: World):
    @task
    def shaky(attempt: int) -> None:
        if attempt == 1:
            raise ValueError("nobody looked")

    @entrypoint(checkpointer=store, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    def run(given: int) -> str:
        world.do("try")
        shaky(world.counts["try"])
        if world.counts["try"] < 2:
            raise ConnectionError("busy")
        return "end"

    assert driver.invoke(run, 1, thread()) == "end"


def test_a_question_of_an_attempt_that_failed_is_asked_once(store: Store, driver, world: World):
    @task
    def ask() -> Any:
        return interrupt("Sure?")

    @entrypoint(checkpointer=store, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    def run(given: int) -> Any:
        sure = ask()
        if world.do("try") and world.counts["try"] < 2:
            raise ConnectionError("busy")
        return sure.result()

    paused = driver.invoke(run, 1, thread())

    assert asked(paused) == ["Sure?"]
    assert driver.invoke(run, Command(resume="yes"), thread()) == "yes"


# ── Calls that differ ──────────────────────────────────────────────────────────────────────────────────────────────


class Script:
    """An entrypoint that calls what it is told to, and then asks."""

    def __init__(self, store: Store, world: World) -> None:
        self.calls: list[tuple[str, Any]] = []

        @task
        def a(value: Any) -> str:
            return world.do(f"a {value}")

        @task
        def b(value: Any) -> str:
            return world.do(f"b {value}")

        known = {"a": a, "b": b}

        @entrypoint(checkpointer=store)
        def run(given: int) -> Any:
            found = [known[name](value).result() for name, value in self.calls]
            return [*found, interrupt("Go on?")]

        self.run = run


@pytest.fixture
def script(store: Store, world: World) -> Script:
    return Script(store, world)


def test_changed_arguments_are_an_error_that_tells_both_and_nothing_runs(script: Script, driver, world: World):
    script.calls = [("a", "red")]
    driver.invoke(script.run, 1, thread())
    script.calls = [("a", "blue")]

    with pytest.raises(ReplayMismatchError, match=r"(?s)'a#1'.*recorded: a.*now: a\('blue'\)"):
        driver.invoke(script.run, Command(resume="yes"), thread())

    assert world.effects == ["a red"]
    script.calls = [("a", "red")]
    assert driver.invoke(script.run, None, thread()) == ["a red done", "yes"]


def test_swapped_calls_of_one_task_are_an_error(script: Script, driver, world: World):
    script.calls = [("a", 1), ("a", 2)]
    driver.invoke(script.run, 1, thread())
    script.calls.reverse()

    with pytest.raises(ReplayMismatchError, match="recorded"):
        driver.invoke(script.run, Command(resume="yes"), thread())

    assert world.effects == ["a 1", "a 2"]


def test_swapped_calls_of_two_tasks_get_their_own_results(script: Script, driver, world: World):
    script.calls = [("a", 1), ("b", 2)]
    driver.invoke(script.run, 1, thread())
    script.calls.reverse()

    assert driver.invoke(script.run, Command(resume="yes"), thread()) == ["b 2 done", "a 1 done", "yes"]
    assert world.effects == ["a 1", "b 2"]


def test_a_call_that_is_gone_is_an_error_that_names_it(script: Script, driver, world: World):
    script.calls = [("a", 1), ("b", 2)]
    driver.invoke(script.run, 1, thread())
    script.calls.pop()

    with pytest.raises(ReplayMismatchError, match=r"(?s)'b#1'.*recorded: b#1.*now: \(not made\)"):
        driver.invoke(script.run, Command(resume="yes"), thread())


def test_a_call_that_is_new_is_made(script: Script, driver, world: World):
    script.calls = [("a", 1)]
    driver.invoke(script.run, 1, thread())
    script.calls.append(("b", 2))

    assert driver.invoke(script.run, Command(resume="yes"), thread()) == ["a 1 done", "b 2 done", "yes"]


class Asking:
    """An entrypoint whose task asks, with arguments that may change."""

    def __init__(self, store: Store) -> None:
        self.value: Any = "red"

        @task
        def ask(value: Any) -> Any:
            return value, interrupt("Paint?", key="paint")

        @entrypoint(checkpointer=store)
        def run(given: int) -> Any:
            return ask(self.value).result() if self.value else "nothing"

        self.run = run


@pytest.fixture
def asking(store: Store) -> Asking:
    return Asking(store)


def test_an_answer_does_not_count_for_a_call_with_other_arguments(asking: Asking, driver):
    driver.invoke(asking.run, 1, thread())
    asking.value = "blue"

    with pytest.raises(ReplayMismatchError, match=r"now: ask\('blue'\)"):
        driver.invoke(asking.run, Command(resume="yes"), thread())

    asking.value = "red"
    assert driver.invoke(asking.run, None, thread()) == ("red", "yes")


def test_a_call_that_has_asked_and_is_gone_is_an_error(asking: Asking, driver):
    driver.invoke(asking.run, 1, thread())
    asking.value = None

    with pytest.raises(ReplayMismatchError, match="'ask#1'"):
        driver.invoke(asking.run, Command(resume="yes"), thread())


def test_a_step_inside_a_task_that_is_gone_is_an_error(store: Store, driver, world: World):
    is_there = [True]

    @task
    def work() -> Any:
        if is_there[0]:
            step(world.do, "pay")
        return interrupt("Ship?")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return work().result()

    driver.invoke(run, 1, thread())
    is_there[0] = False

    with pytest.raises(ReplayMismatchError, match=r"(?s)'work#1'.*recorded: World.do#1"):
        driver.invoke(run, Command(resume="yes"), thread())


# ── Arguments and results ──────────────────────────────────────────────────────────────────────────────────────────


def test_arguments_that_were_changed_after_the_call_are_those_of_the_call_on_replay(store: Store, driver, world: World):
    @task
    def count(items: list[str]) -> int:
        return len(items)

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        items = ["a"]
        first = count(items).result()
        items.append("b")
        return [first, count(items).result(), interrupt("Go on?")]

    driver.invoke(run, 1, thread())

    assert driver.invoke(run, Command(resume="yes"), thread()) == [1, 2, "yes"]


def test_arguments_need_not_be_storable(store: Store, driver):
    @task
    def use(lock: Any, number: int) -> int:
        with lock:
            return number

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return [use(Lock(), 1).result(), interrupt("Go on?")]

    driver.invoke(run, 1, thread())

    assert driver.invoke(run, Command(resume="yes"), thread()) == [1, "yes"]


def test_a_result_that_cannot_be_stored_is_an_error_that_names_the_task(store: Store, driver):
    @task
    def connect() -> Any:
        return {"connection": Lock()}

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        connect().result()

    with pytest.raises(CodecError, match=r"(?s)connect.*connection"):
        driver.invoke(run, 1, thread())


@task
def make_order(number: int) -> Order:
    return Order(number, Colour.RED)


@task
def make_plan(steps: list[str]) -> Plan | None:
    return Plan(steps=steps)


def test_types_that_a_task_speaks_of_come_back_as_they_were(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        found = [make_order(given).result(), make_plan(["a"]).result()]
        interrupt("Go on?")
        return [found[0].number, found[0].colour.value, found[1].steps]

    driver.invoke(run, 7, thread())

    assert driver.invoke(run, Command(resume="yes"), thread()) == [7, "red", ["a"]]


def test_types_that_an_entrypoint_speaks_of_come_back_as_they_were(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(order: Order, previous: Plan | None = None) -> Plan:
        return Plan(steps=[*(previous.steps if previous else []), order.colour.value])

    driver.invoke(run, Order(1, Colour.RED), thread())

    assert driver.invoke(run, Order(2, Colour.RED), thread()) == Plan(steps=["red", "red"])
    assert driver.call(run, "get_state", thread()).values == Plan(steps=["red", "red"])
