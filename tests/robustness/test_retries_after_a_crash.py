"""A worker that takes over goes on counting attempts, and waits no longer than was left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from bide import RetryPolicy, Store, get_runtime, get_stream_writer, step
from tests.robustness.clocks import SleepyClock
from tests.robustness.states import Flaky, State, Trouble, beside, lone
from tests.threads import let_tasks_end, thread

STEADY = RetryPolicy(initial_interval=10.0, max_attempts=3, jitter=False)


class Crash(BaseException):
    """Stands for the end of a process."""


class DeadlySleep(SleepyClock):
    """A clock on which the first sleep is the end of the process."""

    def sleep(self, seconds: float, stopped: Event) -> None:
        raise Crash

    async def asleep(self, seconds: float) -> None:
        raise Crash


def flaky_node(errors: int, seen: list[int]) -> Any:
    flaky = Flaky(*(Trouble() for _ in range(errors)))

    def node(state: State) -> State:
        seen.append(get_runtime().attempt)
        return {"value": flaky()}

    return node


@pytest.mark.parametrize(("passed", "left"), [(0, 10.0), (4, 6.0), (10, 0.0), (500, -490.0)])
def test_next_worker_goes_on_counting_and_waits_only_what_is_left(driver, tmp_path, passed, left):
    url, seen = f"sqlite:///{tmp_path / 'bide.db'}", []
    node = driver.node(flaky_node(1, seen))
    with Store.open(url, clock=DeadlySleep()) as dying, pytest.raises(Crash):
        driver.invoke(lone(node, {"checkpointer": dying}, retry_policy=STEADY), {"name": "x"}, thread())

    clock = SleepyClock()
    clock.advance(passed)
    with Store.open(url, clock=clock) as heir:
        result = driver.invoke(lone(node, {"checkpointer": heir}, retry_policy=STEADY), None, thread())

    assert result["value"] == "done"
    assert seen == [1, 2]
    assert clock.naps == [left]


def test_attempts_of_all_workers_together_are_no_more_than_the_policy_allows(driver, tmp_path):
    url, seen = f"sqlite:///{tmp_path / 'bide.db'}", []
    node = driver.node(flaky_node(99, seen))
    for given in ({"name": "x"}, None):
        with Store.open(url, clock=DeadlySleep()) as dying, pytest.raises(Crash):
            driver.invoke(lone(node, {"checkpointer": dying}, retry_policy=STEADY), given, thread())

    with Store.open(url, clock=SleepyClock()) as heir, pytest.raises(Trouble) as raised:
        driver.invoke(lone(node, {"checkpointer": heir}, retry_policy=STEADY), None, thread())

    assert seen == [1, 2, 3]
    assert "It was attempt 3 of 3." in raised.value.__notes__


def test_steps_of_an_attempt_before_the_crash_are_not_made_again(driver, tmp_path):
    url, paid, flaky = f"sqlite:///{tmp_path / 'bide.db'}", Flaky(), Flaky(Trouble(), Trouble())

    def node(state: State) -> State:
        receipt = step(paid, "receipt")
        flaky()
        return {"value": receipt}

    with Store.open(url, clock=DeadlySleep()) as dying, pytest.raises(Crash):
        driver.invoke(lone(driver.node(node), {"checkpointer": dying}, retry_policy=STEADY), {}, thread())

    with Store.open(url, clock=SleepyClock()) as heir:
        result = driver.invoke(lone(driver.node(node), {"checkpointer": heir}, retry_policy=STEADY), None, thread())

    assert result["value"] == "receipt"
    assert (paid.calls, flaky.calls) == (1, 3)


def test_only_the_task_that_rested_runs_after_the_crash(driver, tmp_path):
    url, seen = f"sqlite:///{tmp_path / 'bide.db'}", []
    flaky = Flaky(Trouble())

    def calm(state: State) -> State:
        seen.append("calm")
        return {"log": ["calm"]}

    def wild(state: State) -> State:
        seen.append(f"wild {get_runtime().attempt}")
        return {"log": [flaky("wild")]}

    nodes = [("calm", driver.node(calm), {}), ("wild", driver.node(wild), {"retry_policy": STEADY})]
    with Store.open(url, clock=DeadlySleep()) as dying, pytest.raises(Crash):
        driver.invoke(beside(nodes, checkpointer=dying), {"name": "x"}, thread(max_concurrency=1))

    with Store.open(url, clock=SleepyClock()) as heir:
        result = driver.invoke(beside(nodes, checkpointer=heir), None, thread())

    assert result["log"] == ["calm", "wild"]
    assert seen == ["calm", "wild 1", "wild 2"]


class Patient(SleepyClock):
    """A clock on which a sleep lasts until the caller has gone away."""

    def __init__(self) -> None:
        super().__init__()
        self.rests = Event()

    def sleep(self, seconds: float, stopped: Event) -> None:
        self.rests.set()
        assert stopped.wait(30)


def test_no_further_attempt_is_made_for_a_caller_who_has_left(tmp_path):
    seen, clock = [], Patient()

    def flaky(state: State) -> State:
        seen.append(get_runtime().attempt)
        raise Trouble

    def witness(state: State) -> None:
        assert clock.rests.wait(30)
        get_stream_writer()("the other one rests")

    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", clock=clock) as store:
        nodes = [("flaky", flaky, {"retry_policy": STEADY}), ("witness", witness, {})]
        stream = beside(nodes, checkpointer=store).stream({"name": "x"}, thread(), stream_mode="custom")
        assert next(stream) == "the other one rests"
        stream.close()
        let_tasks_end()
        left = store.threads()[0].status

    assert left == "cancelled"
    assert seen == [1]


PROGRAM = Path(__file__).with_name("resting_worker.py")


@pytest.mark.slow
def test_killed_process_leaves_its_attempts_and_its_back_off(tmp_path):
    folder = str(tmp_path)
    worker = subprocess.Popen([sys.executable, str(PROGRAM), folder], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    with worker.stdout as told:
        assert told.readline() == "attempt 1\n"
        assert told.readline() == "resting 3600\n"
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait(30)

    heir = subprocess.run(
        [sys.executable, str(PROGRAM), folder, "go on"], capture_output=True, text=True, timeout=60, check=False
    )

    assert heir.stderr == ""
    attempt, *rest = heir.stdout.split("\n")[::-1][1:]
    assert attempt == "attempt 2"
    seconds = int(rest[0].removeprefix("resting "))
    assert 3500 < seconds <= 3600
