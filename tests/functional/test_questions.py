"""Questions of entrypoints and tasks: all are told at once, each is answered by its id, and nobody runs in vain."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from bide import Command, Store, entrypoint, interrupt, step, task
from bide.errors import (
    AmbiguousResumeError,
    InterruptError,
    InterruptSwallowedError,
    InvalidAnswerError,
    ThreadPausedError,
)
from tests.functional.world import World, answers, asked
from tests.threads import thread


def asking(store: Store, world: World, count: int) -> Any:
    """An entrypoint with a task that asks for each of so many names, and one that does not."""

    @task
    def ask(name: str) -> str:
        world.do(f"run {name}")
        answer = interrupt(f"{name}?")
        world.do(f"use {name}")
        return f"{name}={answer}"

    @task
    def plain() -> str:
        return world.do("plain")

    @entrypoint(checkpointer=store)
    def run(given: Any) -> list[str]:
        world.do("entrypoint")
        works = [plain(), *(ask(f"q{number}") for number in range(1, count + 1))]
        return [each.result() for each in works]

    return run


def test_questions_of_tasks_side_by_side_are_all_told_at_once_in_the_order_of_the_calls(store, driver, world):
    run = asking(store, world, 3)

    paused = driver.invoke(run, 1, thread())

    assert asked(paused) == ["q1?", "q2?", "q3?"]
    assert len({question.id for question in paused.interrupts}) == 3
    assert paused.interrupts == driver.call(run, "get_state", thread()).interrupts
    assert paused.interrupts == driver.call(run, "get_state", thread()).tasks[0].interrupts


def test_the_order_of_questions_is_that_of_the_calls_beyond_ten(store, driver, world):
    run = asking(store, world, 12)

    paused = driver.invoke(run, 1, thread())

    assert asked(paused) == [f"q{number}?" for number in range(1, 13)]
    assert paused.interrupts == driver.call(run, "get_state", thread()).interrupts


def test_a_question_is_not_mixed_up_with_one_whose_number_begins_alike(store, driver, world):
    run = asking(store, world, 12)
    paused = driver.invoke(run, 1, thread())

    paused = driver.invoke(run, answers((paused.interrupts[9], "ten")), thread())

    assert asked(paused) == [f"q{number}?" for number in range(1, 13) if number != 10]
    assert world.counts["run q1"] == 1
    assert world.counts["run q10"] == 2


def test_answered_tasks_go_on_and_unanswered_ones_are_not_run(store, driver, world):
    run = asking(store, world, 3)
    first = driver.invoke(run, 1, thread())

    second = driver.invoke(run, answers((first.interrupts[1], "b")), thread())
    third = driver.invoke(run, answers((second.interrupts[0], "a")), thread())
    ended = driver.invoke(run, Command(resume="c"), thread())

    assert [asked(second), asked(third)] == [["q1?", "q3?"], ["q3?"]]
    assert ended == ["plain done", "q1=a", "q2=b", "q3=c"]
    assert {what: world.counts[what] for what in ("plain", "use q1", "use q2", "use q3")} == dict.fromkeys(
        ("plain", "use q1", "use q2", "use q3"), 1
    )
    assert [world.counts[f"run q{number}"] for number in (1, 2, 3)] == [2, 2, 2]


def test_one_answer_to_several_questions_is_ambiguous(store, driver, world):
    run = asking(store, world, 2)
    driver.invoke(run, 1, thread())

    with pytest.raises(AmbiguousResumeError):
        driver.invoke(run, Command(resume="both?"), thread())


def test_plain_input_on_a_waiting_entrypoint_is_refused(store, driver, world):
    run = asking(store, world, 1)
    driver.invoke(run, 1, thread())

    with pytest.raises(ThreadPausedError):
        driver.invoke(run, 2, thread())

    assert asked(driver.invoke(run, 2, thread(), on_paused="restart")) == ["q1?"]


def test_an_async_entrypoint_tells_all_questions_of_sync_and_async_tasks(store, world):
    @task
    def ask(name: str) -> str:
        return f"{name} {interrupt(name)}"

    @task
    async def aask(name: str) -> str:
        world.do(name)
        return f"{name} {interrupt(name)}"

    @entrypoint(checkpointer=store)
    async def run(given: int) -> list[str]:
        return await asyncio.gather(ask("a"), aask("b"), ask("c"), aask("d"))

    paused = asyncio.run(run.ainvoke(1, thread()))
    b, d = paused.interrupts[1], paused.interrupts[3]
    again = asyncio.run(run.ainvoke(answers((d, 4)), thread()))
    a, _, c = again.interrupts
    ended = asyncio.run(run.ainvoke(answers((a, 1), (b, 2), (c, 3)), thread()))

    assert asked(paused) == ["a", "b", "c", "d"]
    assert asked(again) == ["a", "b", "c"]
    assert ended == ["a 1", "b 2", "c 3", "d 4"]
    assert world.counts == {"b": 2, "d": 2}


def test_a_task_group_that_pauses_tells_all_its_questions(store, world):
    @task
    async def ask(name: str) -> Any:
        return interrupt(name)

    @task
    async def several() -> list[Any]:
        async def one(name: str) -> Any:
            return await ask(name)

        async with asyncio.TaskGroup() as group:
            works = [group.create_task(one(name)) for name in ("a", "b")]
        return [each.result() for each in works]

    @entrypoint(checkpointer=store)
    async def run(given: int) -> Any:
        return await several()

    paused = asyncio.run(run.ainvoke(1, thread()))
    a, b = paused.interrupts

    assert asked(paused) == ["a", "b"]
    assert asyncio.run(run.ainvoke(answers((a, 1), (b, 2)), thread())) == [1, 2]


def test_the_entrypoint_and_its_tasks_may_ask_at_once(store, driver, world):
    @task
    def ask(name: str) -> Any:
        world.do(f"run {name}")
        return interrupt(name)

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        pay = ask("pay?")
        own = interrupt("own?")
        return own, pay.result()

    first = driver.invoke(run, 1, thread())
    own = next(question for question in first.interrupts if question.value == "own?")
    second = driver.invoke(run, answers((own, "o")), thread())
    ended = driver.invoke(run, Command(resume="p"), thread())

    assert asked(first) == ["pay?", "own?"]
    assert asked(second) == ["pay?"]
    assert ended == ("o", "p")
    assert world.counts["run pay?"] == 2


def test_the_tasks_answer_may_come_before_the_entrypoints(store, driver, world):
    @task
    def ask(name: str) -> Any:
        world.do(f"run {name}")
        return interrupt(name)

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        pay = ask("pay?")
        own = interrupt("own?")
        return own, pay.result()

    first = driver.invoke(run, 1, thread())
    pay = next(question for question in first.interrupts if question.value == "pay?")
    second = driver.invoke(run, answers((pay, "p")), thread())

    assert asked(second) == ["own?"]
    assert driver.invoke(run, Command(resume="o"), thread()) == ("o", "p")
    assert world.counts["run pay?"] == 2


def test_questions_in_a_loop_do_not_make_finished_tasks_run_again(store, driver, world):
    @task
    def draft(number: int) -> str:
        return world.do(f"draft {number}")

    @entrypoint(checkpointer=store)
    def write(given: int) -> Any:
        for number in range(1, 5):
            text = draft(number).result()
            if interrupt(f"{text}?") == "good":
                return text

    driver.invoke(write, 1, thread())
    for _ in range(2):
        driver.invoke(write, Command(resume="again"), thread())
    ended = driver.invoke(write, Command(resume="good"), thread())

    assert ended == "draft 3 done"
    assert world.effects == ["draft 1", "draft 2", "draft 3"]


def test_a_task_may_ask_again_and_again(store, driver, world):
    @task
    def ask() -> list[Any]:
        found = [step(world.do, "look"), interrupt("first?"), step(world.do, "use"), interrupt("second?", key="named")]
        return [*found, step(world.do, "end")]

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return ask().result()

    first = driver.invoke(run, 1, thread())
    second = driver.invoke(run, Command(resume=1), thread())
    ended = driver.invoke(run, Command(resume=None), thread())

    assert [asked(first), asked(second)] == [["first?"], ["second?"]]
    assert ended == ["look done", 1, "use done", None, "end done"]
    assert world.effects == ["look", "use", "end"]


def test_tasks_inside_tasks_ask_and_only_those_on_the_way_run_again(store, driver, world):
    @task
    def leaf(name: str) -> Any:
        world.do(f"leaf {name}")
        return interrupt(name)

    @task
    def twig(name: str) -> list[Any]:
        world.do(f"twig {name}")
        works = [leaf(f"{name}{number}") for number in (1, 2)]
        return [each.result() for each in works]

    @entrypoint(checkpointer=store)
    def tree(given: int) -> Any:
        works = [twig("a"), twig("b")]
        return [each.result() for each in works]

    first = driver.invoke(tree, 1, thread())
    a1, a2, b1, b2 = first.interrupts
    second = driver.invoke(tree, answers((a1, 1)), thread())
    third = driver.invoke(tree, answers((b2, 4)), thread())
    ended = driver.invoke(tree, answers((a2, 2), (b1, 3)), thread())

    assert [asked(each) for each in (first, second, third)] == [
        ["a1", "a2", "b1", "b2"],
        ["a2", "b1", "b2"],
        ["a2", "b1"],
    ]
    assert ended == [[1, 2], [3, 4]]
    assert world.counts == {"twig a": 3, "twig b": 3, **{f"leaf {name}": 2 for name in ("a1", "a2", "b1", "b2")}}


def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open(store, driver, world):
    @task
    def ask() -> Any:
        return interrupt("Ship?", response_schema=Literal["yes", "no"])

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return ask().result()

    driver.invoke(run, 1, thread())
    with pytest.raises(InvalidAnswerError):
        driver.invoke(run, Command(resume="perhaps"), thread())

    assert asked_of(run, driver) == ["Ship?"]
    assert driver.invoke(run, Command(resume="yes"), thread()) == "yes"


def asked_of(run: Any, driver: Any) -> list[Any]:
    return [question.value for question in driver.call(run, "get_state", thread()).interrupts]


def test_a_failure_beside_a_question_is_raised_and_the_question_is_kept(store, driver, world):
    is_broken = [True]

    @task
    def ask() -> Any:
        return interrupt("Go on?")

    @task
    def work() -> str:
        world.do("work")
        if is_broken[0]:
            raise ValueError("broken")
        return "mended"

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        works = [ask(), work()]
        return [each.result() for each in reversed(works)]

    with pytest.raises(ValueError, match="broken"):
        driver.invoke(run, 1, thread())
    is_broken[0] = False
    open_now = asked_of(run, driver)

    assert open_now == ["Go on?"]
    assert driver.invoke(run, Command(resume="yes"), thread()) == ["mended", "yes"]
    assert world.counts["work"] == 2


def test_a_task_that_waits_for_an_asking_task_beside_it_waits_too(store, driver, world):
    @task
    def ask() -> Any:
        return interrupt("Number?")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        number = ask()

        @task(name="next_one")
        def next_one() -> Any:
            return number.result() + 1

        return next_one().result()

    paused = driver.invoke(run, 1, thread())

    assert asked(paused) == ["Number?"]
    assert driver.invoke(run, Command(resume=41), thread()) == 42


# ── Signals that are caught ────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_that_catches_its_own_pause_is_told_so(store, driver):
    @task
    def ask() -> Any:
        try:
            return interrupt("Sure?")
        except BaseException:  # noqa: BLE001 — the mistake that this test is about
            return "never mind"

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return ask().result()

    with pytest.raises(InterruptSwallowedError, match="'ask' called interrupt"):
        driver.invoke(run, 1, thread())


def test_a_task_that_turns_its_pause_into_an_error_is_told_so(store, driver):
    @task
    def ask() -> Any:
        try:
            return interrupt("Sure?")
        except BaseException as signal:
            raise ValueError("something") from signal

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return ask().result()

    with pytest.raises(InterruptSwallowedError, match="Sure"):
        driver.invoke(run, 1, thread())


def test_an_entrypoint_that_catches_the_pause_of_a_task_pauses_all_the_same(store, driver, world):
    @task
    def ask() -> Any:
        return interrupt("Sure?")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        try:
            return ask().result()
        except BaseException:  # noqa: BLE001 — the mistake that this test is about
            return "never mind"

    paused = driver.invoke(run, 1, thread())

    assert asked(paused) == ["Sure?"]
    assert driver.invoke(run, Command(resume="yes"), thread()) == "yes"


def test_pauses_that_gather_returns_as_values_are_pauses_all_the_same(store):
    @task
    async def ask() -> Any:
        return interrupt("Sure?")

    @entrypoint(checkpointer=store)
    async def run(given: int) -> Any:
        return [str(each) for each in await asyncio.gather(ask(), return_exceptions=True)]

    paused = asyncio.run(run.ainvoke(1, thread()))

    assert asked(paused) == ["Sure?"]
    assert asyncio.run(run.ainvoke(Command(resume="yes"), thread())) == ["yes"]


def test_a_question_that_nobody_waits_for_pauses_the_entrypoint(store, driver):
    @task
    def ask() -> Any:
        return interrupt("Sure?")

    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        ask()
        return "end"

    assert asked(driver.invoke(run, 1, thread())) == ["Sure?"]
    assert driver.invoke(run, Command(resume="yes"), thread()) == "end"


def test_an_update_of_a_state_that_a_function_does_not_have_is_refused(store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return given, interrupt("Sure?", update={"given": 2})

    with pytest.raises((InterruptError, ValueError), match="update"):
        driver.invoke(run, 1, thread())


def test_without_a_store_nobody_can_ask(driver):
    @task
    def ask() -> Any:
        return interrupt("Sure?")

    @entrypoint()
    def run(given: int) -> Any:
        return ask().result()

    with pytest.raises(InterruptError, match="no store"):
        driver.invoke(run, 1)
