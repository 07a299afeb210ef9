"""Calling a task gives a future: every way to wait for one works, and tasks run beside each other."""

from __future__ import annotations

import asyncio
import concurrent.futures
from functools import partial
from threading import Barrier, Event, Thread, current_thread
from typing import Any

import pytest

from bide import Store, entrypoint, step, task
from bide.errors import BideError, GraphError, StepError
from tests.functional.world import World
from tests.threads import thread


@task
def double(number: int) -> int:
    return number * 2


@task
async def adouble(number: int) -> int:
    return number * 2


@task
def fail(text: str) -> None:
    raise ValueError(text)


@task
async def afail(text: str) -> None:
    raise ValueError(text)


# ── Waiting ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_result_waits_for_the_task(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(number: int) -> int:
        return double(number).result()

    assert driver.invoke(run, 4, thread()) == 8


@pytest.mark.parametrize("work", [double, adouble], ids=["sync task", "async task"])
def test_a_task_is_awaited_in_an_async_entrypoint(store: Store, work: Any):
    @entrypoint(checkpointer=store)
    async def run(number: int) -> int:
        return await work(number)

    assert asyncio.run(run.ainvoke(4, thread())) == 8


@pytest.mark.parametrize("work", [double, adouble], ids=["sync task", "async task"])
def test_gather_returns_results_in_the_order_of_the_calls(store: Store, work: Any):
    @entrypoint(checkpointer=store)
    async def run(numbers: list[int]) -> list[int]:
        return await asyncio.gather(*map(work, numbers))

    assert asyncio.run(run.ainvoke([1, 2, 3], thread())) == [2, 4, 6]


@pytest.mark.parametrize("work", [double, adouble], ids=["sync task", "async task"])
def test_asyncio_wait_and_as_completed_take_tasks(store: Store, work: Any):
    @entrypoint(checkpointer=store)
    async def run(numbers: list[int]) -> Any:
        done, pending = await asyncio.wait([work(number) for number in numbers])
        ended = [await each for each in asyncio.as_completed([work(number) for number in numbers])]
        return sorted(each.result() for each in done), len(pending), sorted(ended)

    assert asyncio.run(run.ainvoke([1, 2, 3], thread())) == ([2, 4, 6], 0, [2, 4, 6])


def test_wait_and_as_completed_of_concurrent_futures_take_tasks(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(numbers: list[int]) -> Any:
        first = [double(number) for number in numbers]
        done, pending = concurrent.futures.wait(first)
        ended = [each.result() for each in concurrent.futures.as_completed([double(number) for number in numbers])]
        return sorted(each.result() for each in done), len(pending), sorted(ended)

    assert driver.invoke(run, [1, 2, 3], thread()) == ([2, 4, 6], 0, [2, 4, 6])


def test_done_callbacks_are_called_with_the_task(store: Store):
    seen: list[int] = []
    heard = Event()

    @entrypoint(checkpointer=store)
    def run(number: int) -> int:
        work = double(number)
        work.add_done_callback(lambda ended: (seen.append(ended.result()), heard.set()))
        return work.result()

    run.invoke(4, thread())

    assert heard.wait(30)
    assert seen == [8]


@pytest.mark.parametrize("work", [double, adouble], ids=["sync task", "async task"])
def test_done_callbacks_that_were_added_on_the_event_loop_are_called_there(store: Store, work: Any):
    seen: list[Any] = []

    @entrypoint(checkpointer=store)
    async def run(number: int) -> int:
        called = asyncio.Event()
        each = work(number)
        each.add_done_callback(lambda ended: (seen.append(current_thread() is here), called.set()))
        here = current_thread()
        await called.wait()
        return await each

    assert asyncio.run(run.ainvoke(4, thread())) == 8
    assert seen == [True]


def test_who_stops_waiting_does_not_stop_the_task(store: Store, world: World):
    go = Event()

    @task
    def slow() -> str:
        go.wait(30)
        return world.do("slow")

    @entrypoint(checkpointer=store)
    async def run(given: int) -> str:
        try:
            return await asyncio.wait_for(slow(), 0.001)
        except TimeoutError:
            go.set()
            return "gave up"

    assert asyncio.run(run.ainvoke(1, thread())) == "gave up"
    assert world.effects == ["slow"]


def test_result_of_an_async_task_on_its_own_event_loop_is_an_error_and_no_deadlock(store: Store):
    @entrypoint(checkpointer=store)
    async def run(number: int) -> int:
        return adouble(number).result()

    with pytest.raises(StepError, match=r"await adouble"):
        asyncio.run(run.ainvoke(4, thread()))


def test_a_task_may_be_waited_for_more_than_once(store: Store, driver, world: World):
    @task
    def work() -> str:
        return world.do("work")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        each = work()
        return each.result(), each.result(), each.exception(), each.done()

    assert driver.invoke(run, 1, thread()) == ("work done", "work done", None, True)
    assert world.effects == ["work"]


def test_a_task_may_wait_for_a_task_beside_it(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(number: int) -> int:
        first = double(number)

        @task(name="after")
        def after() -> int:
            return first.result() + 1

        return after().result()

    assert driver.invoke(run, 4, thread()) == 9


# ── Beside each other ──────────────────────────────────────────────────────────────────────────────────────────────


def test_sync_tasks_run_at_the_same_time(store: Store, driver):
    together = Barrier(5)

    @task
    def meet(number: int) -> int:
        together.wait(30)
        return number

    @entrypoint(checkpointer=store)
    def run(count: int) -> list[int]:
        return [each.result() for each in [meet(number) for number in range(count)]]

    assert driver.invoke(run, 5, thread()) == [0, 1, 2, 3, 4]


def test_sync_and_async_tasks_run_at_the_same_time_as_an_async_entrypoint(store: Store):
    in_thread, told = Event(), asyncio.Event()

    @task
    def plain() -> str:
        in_thread.wait(30)
        return "plain"

    @task
    async def on_loop() -> str:
        await told.wait()
        return "loop"

    @entrypoint(checkpointer=store)
    async def run(given: int) -> list[str]:
        works = [plain(), on_loop()]
        in_thread.set()
        told.set()
        return await asyncio.gather(*works)

    assert asyncio.run(run.ainvoke(1, thread())) == ["plain", "loop"]


def test_a_task_runs_while_the_entrypoint_goes_on(store: Store, driver):
    begun, go = Event(), Event()

    @task
    def wait() -> str:
        begun.set()
        assert go.wait(30)
        return "waited"

    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        waiting = wait()
        assert begun.wait(30)
        go.set()
        return waiting.result()

    assert driver.invoke(run, 1, thread()) == "waited"


@pytest.mark.parametrize("work", [double, adouble], ids=["sync task", "async task"])
def test_a_thousand_tasks_in_one_entrypoint(work: Any, store: Store):
    @entrypoint(checkpointer=store)
    async def run(count: int) -> int:
        return sum(await asyncio.gather(*map(work, range(count))))

    assert asyncio.run(run.ainvoke(1000, thread())) == 999_000


# ── Failures ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_error_of_a_task_is_raised_where_its_result_is_asked_for(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        try:
            fail("broken").result()
        except ValueError as problem:
            return f"caught {problem}"
        return "nothing"

    assert driver.invoke(run, 1, thread()) == "caught broken"


def test_the_error_of_an_async_task_is_raised_where_it_is_awaited(store: Store):
    @entrypoint(checkpointer=store)
    async def run(given: int) -> Any:
        try:
            await afail("broken")
        except ValueError as problem:
            return [f"caught {problem}", repr(await asyncio.gather(fail("x"), afail("y"), return_exceptions=True))]

    assert asyncio.run(run.ainvoke(1, thread())) == ["caught broken", "[ValueError('x'), ValueError('y')]"]


def test_a_failure_that_nobody_looked_at_fails_the_entrypoint(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        fail("nobody looked")
        return "fine"

    with pytest.raises(ValueError, match="nobody looked"):
        driver.invoke(run, 1, thread())


def test_a_failure_that_nobody_awaited_fails_the_async_entrypoint(store: Store):
    @entrypoint(checkpointer=store)
    async def run(given: int) -> str:
        afail("nobody looked")
        return "fine"

    with pytest.raises(ValueError, match="nobody looked"):
        asyncio.run(run.ainvoke(1, thread()))


def test_a_task_that_nobody_waited_for_is_finished_before_the_entrypoint_ends(store: Store, driver, world: World):
    go = Event()

    @task
    def work() -> str:
        go.wait(30)
        return world.do("work")

    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        work()
        go.set()
        return "end"

    assert driver.invoke(run, 1, thread()) == "end"
    assert world.effects == ["work"]


def test_a_task_that_ends_the_process_is_not_taken_for_a_success(store: Store):
    @task
    def leave() -> None:
        raise SystemExit(3)

    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        leave()
        return "fine"

    with pytest.raises(SystemExit):
        run.invoke(1, thread())


# ── Where tasks may be called, and what may be one ─────────────────────────────────────────────────────────────────


def test_a_task_outside_a_run_says_where_it_belongs():
    with pytest.raises(BideError, match="'double' was called outside"):
        double(1)


def test_a_task_in_a_thread_of_ones_own_says_what_is_missing(store: Store):
    problems: list[BaseException] = []

    def call() -> None:
        try:
            double(1)
        except BideError as problem:
            problems.append(problem)

    @entrypoint(checkpointer=store)
    def run(given: int) -> None:
        other = Thread(target=call)
        other.start()
        other.join()

    run.invoke(1, thread())

    assert "copy_context" in str(problems[0])


def test_a_task_inside_a_step_is_refused(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(number: int) -> int:
        return step(lambda: double(number).result(), key="all")

    with pytest.raises(StepError, match="'double' was called inside a step"):
        driver.invoke(run, 4, thread())


def test_an_async_task_in_plain_code_says_that_it_needs_an_event_loop(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(number: int) -> Any:
        return adouble(number)

    with pytest.raises(StepError, match="'adouble' is async"):
        driver.invoke(run, 4, thread())


def test_generators_are_refused():
    def several(given: int) -> Any:
        yield given

    async def aseveral(given: int) -> Any:
        yield given

    for function in (several, aseveral):
        with pytest.raises(GraphError, match="generator"):
            task(function)
        with pytest.raises(GraphError, match="generator"):
            entrypoint()(function)


def test_an_entrypoint_takes_one_input():
    with pytest.raises(GraphError, match="takes no input"):
        entrypoint()(lambda: 1)
    with pytest.raises(GraphError, match="'second' that nobody fills"):
        entrypoint()(lambda first, second: 1)


def test_an_entrypoint_without_brackets_is_explained():
    with pytest.raises(GraphError, match=r"@entrypoint\(\)"):
        entrypoint(lambda given: given)


@pytest.mark.parametrize("name", ["a:b", "a|b", "a#1"])
def test_names_that_would_be_paths_are_refused(name: str):
    with pytest.raises(GraphError, match="cannot be the name of a task"):
        task(name=name)(lambda given: given)
    with pytest.raises(GraphError, match="cannot be the name of an entrypoint"):
        entrypoint(name=name)(lambda given: given)


def test_a_task_needs_a_name():
    with pytest.raises(GraphError, match="no name of its own"):
        task(lambda given: given)


class Shop:
    def price(self, number: int) -> int:
        return number * 100


class Doubling:
    async def __call__(self, number: int) -> int:
        return number * 2


def test_methods_partials_and_callable_objects_can_be_tasks(store: Store):
    price = task(Shop().price)
    tenfold = task(partial(lambda factor, number: factor * number, 10), name="tenfold")
    doubling = task(Doubling(), name="doubling")

    @entrypoint(checkpointer=store)
    async def run(number: int) -> list[int]:
        return [await price(number), await tenfold(number), await doubling(number)]

    assert asyncio.run(run.ainvoke(4, thread())) == [400, 40, 8]


def test_a_task_keeps_the_name_and_the_words_of_its_function():
    @task(name="other")
    def described() -> None:
        """What it does."""

    assert (described.name, described.__name__, described.__doc__) == ("other", "described", "What it does.")
