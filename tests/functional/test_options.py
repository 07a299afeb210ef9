"""What entrypoints and tasks can be told: policies, `previous`, what is filled in for them, stores and caches."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from bide import (
    CachePolicy,
    Command,
    InMemoryCache,
    InMemoryStore,
    NodeTimeoutError,
    RetryPolicy,
    Runtime,
    Store,
    StreamWriter,
    entrypoint,
    get_config,
    get_runtime,
    get_store,
    interrupt,
    task,
)
from bide.errors import GraphError, InvalidUpdateError
from tests.functional.world import World, asked
from tests.threads import let_tasks_end, thread

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False)


# ── previous and final ─────────────────────────────────────────────────────────────────────────────────────────────


def test_previous_is_what_the_last_call_on_the_thread_returned(store: Store, driver):
    @entrypoint(checkpointer=store)
    def total(number: int, *, previous: Any = None) -> int:
        return number + (previous or 0)

    assert [driver.invoke(total, number, thread()) for number in (1, 2, 3)] == [1, 3, 6]
    assert driver.invoke(total, 10, thread("other")) == 10


def test_final_gives_the_caller_one_value_and_the_next_call_another(store: Store, driver):
    @entrypoint(checkpointer=store)
    def count(number: int, *, previous: Any = None) -> Any:
        return entrypoint.final(value=previous, save=number * 2)

    assert [driver.invoke(count, number, thread()) for number in (1, 2, 3)] == [None, 2, 4]
    assert driver.call(count, "get_state", thread()).values == 4


def test_a_falsy_save_is_saved(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: Any, *, previous: Any = "nothing") -> Any:
        return entrypoint.final(value=[previous], save=given)

    seen = [driver.invoke(run, given, thread()) for given in (0, "", [], 1)]

    assert seen == [[None], [0], [""], [[]]]


def test_previous_is_the_same_before_and_after_a_pause(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int, *, previous: Any = None) -> Any:
        return [given, previous, interrupt("Go on?")]

    driver.invoke(run, 1, thread())
    first = driver.invoke(run, Command(resume="a"), thread())
    driver.invoke(run, 2, thread())

    assert driver.invoke(run, Command(resume="b"), thread()) == [2, first, "b"]


def test_previous_is_in_the_runtime_and_in_tasks(store: Store, driver):
    @task
    def look(previous: Any) -> Any:
        return previous

    @entrypoint(checkpointer=store)
    def run(given: int, runtime: Runtime[Any]) -> Any:
        return entrypoint.final(value=[runtime.previous, look().result()], save=given)

    driver.invoke(run, 1, thread())

    assert driver.invoke(run, 2, thread()) == [1, 1]


# ── What is filled in ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Who:
    name: str


def test_everything_is_filled_in_for_entrypoints(store: Store, driver):
    @entrypoint(checkpointer=store, context_schema=Who)
    def run(given: int, config: Any, runtime: Runtime[Who], writer: StreamWriter, previous: Any, store: Any) -> Any:
        writer("hello")
        store.put(("a",), "k", {"v": given})
        return config["configurable"]["thread_id"], runtime.context.name, previous, store.get(("a",), "k").value

    assert driver.invoke(run, 5, thread("mine"), context={"name": "Ada"}) == ("mine", "Ada", None, {"v": 5})
    assert driver.stream(run, 5, thread("x"), context=Who("Ada"), stream_mode="custom") == ["hello"]


def test_everything_is_filled_in_for_tasks(store: Store, driver):
    @task
    def work(number: int, config: Any, runtime: Runtime[Who], writer: StreamWriter, store: Any) -> Any:
        writer(f"task {number}")
        store.put(("a",), "k", {"v": number})
        return config["configurable"]["thread_id"], runtime.context.name, runtime.node, store.get(("a",), "k").value

    @entrypoint(checkpointer=store, context_schema=Who)
    def run(given: int) -> Any:
        return work(given).result()

    expected = ("mine", "Ada", "work", {"v": 5})
    assert driver.invoke(run, 5, thread("mine"), context={"name": "Ada"}) == expected
    assert driver.stream(run, 6, thread("x"), context=Who("Ada"), stream_mode="custom") == ["task 6"]


def test_the_surroundings_are_found_by_functions_too(store: Store, driver):
    @task
    def look() -> Any:
        get_store().put(("a",), "k", {"v": 1})
        return get_config()["configurable"]["thread_id"], get_runtime().task_id, get_runtime().attempt

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return look().result()

    assert driver.invoke(run, 1, thread("mine")) == ("mine", "1.run:look#1", 1)
    assert store.items.get(("a",), "k").value == {"v": 1}


def test_what_the_caller_gives_is_not_filled_in(store: Store, driver):
    @task
    def work(config: Any, store: str = "shop", error: Any = None, previous: Any = None) -> Any:
        return config, store, error, previous

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return work("mine").result(), work(config="named", error="e", previous="p").result()

    assert driver.invoke(run, 1, thread()) == (("mine", "shop", None, None), ("named", "shop", "e", "p"))


def test_a_context_that_does_not_fit_is_refused(store: Store, driver):
    @entrypoint(checkpointer=store, context_schema=Who)
    def run(given: int) -> Any:
        return given

    with pytest.raises(InvalidUpdateError, match="Who"):
        driver.invoke(run, 1, thread(), context={"age": 5})


# ── Policies ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_is_tried_again_as_its_policy_says(store: Store, driver, world: World):
    @task(retry_policy=AT_ONCE)
    def shaky(number: int) -> str:
        if world.do("try") and world.counts["try"] < 3:
            raise ConnectionError("busy")
        return f"attempt {get_runtime().attempt}"

    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        world.do("entrypoint")
        return shaky(given).result()

    assert driver.invoke(run, 1, thread()) == "attempt 3"
    assert world.counts == {"try": 3, "entrypoint": 1}


def test_an_async_task_is_tried_again_as_its_policy_says(store: Store, world: World):
    @task(retry_policy=[RetryPolicy(initial_interval=0, jitter=False, retry_on=KeyError, max_attempts=2)])
    async def shaky(kind: type[Exception]) -> str:
        world.do(kind.__name__)
        if world.counts[kind.__name__] < 2:
            raise kind("busy")
        return "fine"

    @entrypoint(checkpointer=store)
    async def run(given: int) -> Any:
        found = await asyncio.gather(shaky(KeyError), shaky(LookupError), return_exceptions=True)
        return [str(each) for each in found]

    assert asyncio.run(run.ainvoke(1, thread())) == ["fine", "busy"]
    assert world.counts == {"KeyError": 2, "LookupError": 1}


def test_finished_tasks_are_not_made_again_when_the_entrypoint_is_tried_again(store: Store, driver, world: World):
    @task
    def work() -> str:
        return world.do("work")

    @entrypoint(checkpointer=store, retry_policy=AT_ONCE)
    def run(given: int) -> str:
        found = work().result()
        if world.do("try") and world.counts["try"] < 3:
            raise ConnectionError("busy")
        return found

    assert driver.invoke(run, 1, thread()) == "work done"
    assert world.counts == {"work": 1, "try": 3}


def test_a_task_that_takes_too_long_is_given_up(store: Store, driver):
    never = Event()

    @task(timeout=0.02)
    def slow() -> None:
        never.wait(30)

    @entrypoint(checkpointer=store)
    def run(given: int) -> str:
        try:
            slow().result()
        except NodeTimeoutError as problem:
            never.set()
            return f"{problem.node} gave up"
        return "in time"

    assert driver.invoke(run, 1, thread()) == "slow gave up"


def test_an_async_task_that_takes_too_long_is_cancelled(store: Store, world: World):
    @task(timeout=0.02)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            world.do("cancelled")

    @entrypoint(checkpointer=store)
    async def run(given: int) -> str:
        try:
            await slow()
        except NodeTimeoutError as problem:
            return f"{problem.node} gave up"
        return "in time"

    assert asyncio.run(run.ainvoke(1, thread())) == "slow gave up"
    assert world.effects == ["cancelled"]


def test_an_async_entrypoint_that_takes_too_long_is_given_up(store: Store):
    @entrypoint(checkpointer=store, timeout=0.02)
    async def run(given: int) -> None:
        await asyncio.Event().wait()

    with pytest.raises(NodeTimeoutError, match="'run' took longer"):
        asyncio.run(run.ainvoke(1, thread()))


@pytest.mark.timeout(20)
def test_an_async_entrypoint_that_waits_too_long_for_its_task_is_given_up(store: Store):
    @task
    async def endless() -> None:
        await asyncio.Event().wait()

    @entrypoint(checkpointer=store, timeout=0.02)
    async def run(given: int) -> None:
        await endless()

    with pytest.raises(NodeTimeoutError, match="'run' took longer"):
        asyncio.run(asyncio.wait_for(run.ainvoke(1, thread()), 10))


@pytest.mark.timeout(20)
def test_an_entrypoint_that_waits_too_long_for_its_task_is_given_up(store: Store, driver):
    go = Event()

    @task
    def slow() -> None:
        go.wait(15)

    @entrypoint(checkpointer=store, timeout=0.02)
    def run(given: int) -> None:
        slow().result()

    try:
        with pytest.raises(NodeTimeoutError, match="'run' took longer"):
            driver.invoke(run, 1, thread())
        assert not go.is_set()
    finally:
        go.set()
        let_tasks_end()


def test_the_result_of_a_task_is_taken_from_the_cache_given_with_it(store: Store, driver, world: World):
    @task(cache_policy=CachePolicy())
    def work(number: int, *, unit: str = "m") -> str:
        return world.do(f"work {number} {unit}")

    @entrypoint(checkpointer=store, cache=InMemoryCache())
    def run(given: int) -> Any:
        return [work(given).result(), work(given, unit="km").result()]

    results = [driver.invoke(run, 1, thread(name)) for name in ("a", "b")]

    assert results == [["work 1 m done", "work 1 km done"]] * 2
    assert world.counts == {"work 1 m": 1, "work 1 km": 1}


def test_the_result_of_a_task_is_cached_in_the_checkpointers_database_without_more_words(
    store: Store, driver, world: World
):
    @task(cache_policy=CachePolicy())
    def work(number: int) -> str:
        return world.do(f"work {number}")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return work(given).result()

    for name in ("a", "b"):
        driver.invoke(run, 1, thread(name))

    assert world.effects == ["work 1"]


def test_a_cache_key_may_be_made_of_the_arguments(store: Store, driver, world: World):
    @task(cache_policy=CachePolicy(key_func=lambda number, name: number))
    def work(number: int, name: str) -> str:
        return world.do(f"work {name}")

    @entrypoint(checkpointer=store, cache=InMemoryCache())
    def run(name: str) -> Any:
        return work(1, name).result()

    assert [driver.invoke(run, name, thread(name)) for name in ("a", "b")] == ["work a done"] * 2


def test_a_whole_entrypoint_may_be_cached(store: Store, driver, world: World):
    @entrypoint(checkpointer=store, cache_policy=CachePolicy())
    def run(given: int) -> str:
        return world.do(f"run {given}")

    assert [driver.invoke(run, given, thread(given)) for given in (1, 2)] == ["run 1 done", "run 2 done"]
    assert driver.invoke(run, 1, thread("other")) == "run 1 done"
    assert world.effects == ["run 1", "run 2"]


def test_policies_that_make_no_sense_are_refused_where_they_are_written():
    with pytest.raises(GraphError, match="timeout"):
        task(name="x", timeout=-1)(lambda: 1)
    with pytest.raises(GraphError, match="retry_policy"):
        task(name="x", retry_policy="often")(lambda: 1)
    with pytest.raises(GraphError, match="'retry'"):
        task(name="x", retry=AT_ONCE)(lambda: 1)
    with pytest.raises(GraphError, match="timeout"):
        entrypoint(timeout=0)(lambda given: 1)
    with pytest.raises(GraphError, match="'checkpoint'"):
        entrypoint(checkpoint="x")


# ── Stores and threads ─────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_store_everything_but_pausing_works(driver, world: World):
    @task(retry_policy=AT_ONCE)
    def work(number: int) -> Any:
        if world.do("try") and world.counts["try"] < 2:
            raise ConnectionError("busy")
        return number

    @entrypoint()
    def run(given: int, previous: Any = None) -> Any:
        works = [work(given), work(given + 1)]
        return [each.result() for each in works], previous

    assert driver.invoke(run, 1) == ([1, 2], None)
    assert driver.stream(run, 1)[-1] == {"run": ([1, 2], None)}


def test_a_checkpointer_may_be_given_by_its_url(tmp_path: Path, driver, world: World):
    @task
    def work() -> str:
        return world.do("work")

    @entrypoint(checkpointer=f"sqlite:///{tmp_path / 'own.db'}")
    def run(given: int) -> Any:
        return [work().result(), interrupt("Go on?")]

    with run.store:
        driver.invoke(run, 1, thread(7))

        assert driver.invoke(run, Command(resume="yes"), thread("7")) == ["work done", "yes"]
    assert world.effects == ["work"]


def test_a_long_term_store_of_its_own(store: Store, driver):
    items = InMemoryStore()

    @entrypoint(checkpointer=store, store=items)
    def run(given: int, store: Any) -> None:
        store.put(("a",), "k", {"v": given})

    driver.invoke(run, 1, thread())

    assert items.get(("a",), "k").value == {"v": 1}
    assert store.items.get(("a",), "k") is None
    items.close()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_tasks_are_kept_whatever_the_durability(store: Store, driver, world: World, durability: Any):
    @task
    def work(number: int) -> str:
        return world.do(f"work {number}")

    @entrypoint(checkpointer=store, durability=durability)
    def run(given: int) -> Any:
        found = work(1).result()
        if world.counts["fail"] == 0:
            world.do("fail")
            raise ValueError("broken")
        return [found, interrupt("Go on?"), work(2).result()]

    with pytest.raises(ValueError, match="broken"):
        driver.invoke(run, 1, thread())
    paused = driver.invoke(run, None, thread())

    assert asked(paused) == ["Go on?"]
    assert driver.invoke(run, Command(resume="yes"), thread()) == ["work 1 done", "yes", "work 2 done"]
    assert world.counts == {"work 1": 1, "fail": 1, "work 2": 1}


def test_history_has_the_input_and_the_end_of_every_call(store: Store, driver):
    @entrypoint(checkpointer=store)
    def run(given: int, previous: Any = None) -> Any:
        return [given, previous]

    driver.invoke(run, 1, thread())
    driver.invoke(run, 2, thread())
    history = driver.call(run, "get_state_history", thread())

    assert [(state.values, state.next, state.metadata["source"]) for state in history] == [
        ([2, [1, None]], (), "loop"),
        ([1, None], ("run",), "input"),
        ([1, None], (), "loop"),
        (None, ("run",), "input"),
    ]


def test_an_older_checkpoint_can_be_gone_on_from(store: Store, driver, world: World):
    @task
    def work() -> str:
        return world.do("work")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return [given, work().result(), interrupt("Go on?")]

    driver.invoke(run, 1, thread())
    driver.invoke(run, Command(resume="yes"), thread())
    begin = driver.call(run, "get_state_history", thread())[-1]
    again = driver.invoke(run, None, begin.config)

    assert asked(again) == ["Go on?"]
    assert driver.invoke(run, Command(resume="no"), thread()) == [1, "work done", "no"]
    assert world.effects == ["work", "work"]
