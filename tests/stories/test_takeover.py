"""Who may go on with a run whose worker is dead, stopped, far away, or only believed dead."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bide import Store
from bide.clock import Instant, SystemClock
from bide.errors import StoreError, ThreadBusyError
from bide.store.workers import LEASE
from tests.stories.programs.child import Child
from tests.stories.programs.worker import build

pytestmark = pytest.mark.slow

CONFIG = {"configurable": {"thread_id": "job"}}


class LaterClock:
    """A clock that is ahead of the machine's by as much as it is told."""

    ahead: Instant = 0

    def now(self) -> Instant:
        return SystemClock().now() + self.ahead


@pytest.fixture
def clock() -> LaterClock:
    return LaterClock()


@pytest.fixture
def store(tmp_path: Path, clock: LaterClock) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", clock=clock) as store:
        yield store


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Child]:
    """A process that stands in the middle of its node."""
    with Child("worker.py", tmp_path, "owner") as owner:
        assert owner.ask("start", "job") == "inside"
        yield owner


def kill(child: Child) -> None:
    child.process.kill()
    child.process.wait()


def stop(child: Child) -> None:
    os.kill(child.process.pid, signal.SIGSTOP)
    os.waitpid(child.process.pid, os.WUNTRACED)


def dump(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "bide.db")) as database:
        return list(database.iterdump())


def pretend_that_the_owner_is_on_another_machine(folder: Path, *, lease_until: Instant) -> None:
    with closing(sqlite3.connect(folder / "bide.db", isolation_level=None)) as database:
        database.execute("UPDATE workers SET host = 'another machine', lease_until = ?", (lease_until,))


def marks(folder: Path) -> list[str]:
    return (folder / "marks.txt").read_text(encoding="utf-8").splitlines()


def test_run_of_a_killed_process_is_taken_over_at_once_and_its_steps_are_kept(owner, tmp_path):
    kill(owner)

    with Child("worker.py", tmp_path, "heir") as heir:
        assert heir.ask("go on", "job") == "inside"
        end = heir.ask("go")

    assert end == {"done_by": ["first by owner", "second by heir"]}
    assert marks(tmp_path) == ["first by owner", "second by heir"]


def test_takeover_is_told_in_the_log(owner, store, tmp_path):
    kill(owner)

    build(tmp_path, "heir", store, lambda: None).invoke(None, CONFIG)

    assert [event.kind for event in store.events("job")] == ["run.started", "run.taken_over", "run.done"]


def test_dead_process_that_nobody_has_waited_for_is_dead(owner, store, tmp_path):
    """A killed child stays in the process table until its parent looks; its pid still answers."""
    os.kill(owner.process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, owner.process.pid, os.WEXITED | os.WNOWAIT)

    result = build(tmp_path, "heir", store, lambda: None).invoke(None, CONFIG)

    assert result["done_by"] == ["first by owner", "second by heir"]


@pytest.mark.complaint(6)
@pytest.mark.parametrize("what", ["go on", "start", "answer"])
def test_run_of_a_living_process_is_left_alone(owner, what, tmp_path):
    with Child("worker.py", tmp_path, "thief") as thief:
        refusal = thief.ask(what, "job")

    assert refusal["error"] == "ThreadBusyError"
    assert "alive" in refusal["message"]
    assert owner.ask("go") == {"done_by": ["first by owner", "second by owner"]}
    assert marks(tmp_path) == ["first by owner", "second by owner"]


def test_state_of_a_running_thread_can_be_read_by_others(owner, store, tmp_path):
    snapshot = build(tmp_path, "reader", store, lambda: None).get_state(CONFIG)

    assert snapshot.next == ("work",)
    assert snapshot.values == {"done_by": []}


@pytest.mark.complaint(6)
def test_process_that_is_only_stopped_is_not_robbed_before_its_lease_runs_out(owner, store, clock, tmp_path):
    graph = build(tmp_path, "thief", store, lambda: None)
    stop(owner)
    clock.ahead = LEASE // 2

    with pytest.raises(ThreadBusyError):
        graph.invoke(None, CONFIG)

    os.kill(owner.process.pid, signal.SIGCONT)
    assert owner.ask("go") == {"done_by": ["first by owner", "second by owner"]}


@pytest.mark.complaint(6)
def test_process_that_is_stopped_past_its_lease_is_replaced_and_does_nothing_when_it_goes_on(
    owner, store, clock, tmp_path
):
    graph = build(tmp_path, "heir", store, lambda: None)
    stop(owner)
    clock.ahead = LEASE + 1000

    result = graph.invoke(None, CONFIG)
    os.kill(owner.process.pid, signal.SIGCONT)
    refusal = owner.ask("go")

    assert result["done_by"] == ["first by owner", "second by heir"]
    assert refusal["error"] == "LeaseLostError"
    assert graph.get_state(CONFIG).values == result.value


def test_worker_on_another_machine_is_trusted_until_its_lease_runs_out(owner, store, clock, tmp_path):
    graph = build(tmp_path, "heir", store, lambda: None)
    pretend_that_the_owner_is_on_another_machine(tmp_path, lease_until=clock.now() + LEASE)

    with pytest.raises(ThreadBusyError):
        graph.invoke(None, CONFIG)
    clock.ahead = LEASE + 1000
    result = graph.invoke(None, CONFIG)

    assert result["done_by"] == ["first by owner", "second by heir"]


@pytest.mark.complaint(6, 38)
def test_owner_that_comes_back_after_a_takeover_is_told_and_writes_nothing(owner, store, clock, tmp_path):
    pretend_that_the_owner_is_on_another_machine(tmp_path, lease_until=clock.now() - 1)
    result = build(tmp_path, "heir", store, lambda: None).invoke(None, CONFIG)
    after_the_takeover = dump(tmp_path)

    refusal = owner.ask("go")

    assert refusal["error"] == "LeaseLostError"
    assert "Nothing was written" in refusal["message"]
    assert dump(tmp_path) == after_the_takeover
    assert build(tmp_path, "reader", store, lambda: None).get_state(CONFIG).values == result.value


def test_owner_that_comes_back_in_the_middle_of_its_heirs_run_does_not_disturb_it(owner, store, clock, tmp_path):
    pretend_that_the_owner_is_on_another_machine(tmp_path, lease_until=clock.now() - 1)
    refusals = []

    result = build(tmp_path, "heir", store, lambda: refusals.append(owner.ask("go"))).invoke(None, CONFIG)

    assert [refusal["error"] for refusal in refusals] == ["LeaseLostError"]
    assert result["done_by"] == ["first by owner", "second by heir"]


def test_run_of_a_store_that_was_closed_in_the_middle_is_free_at_once(tmp_path):
    """The process lives on, but nobody in it will finish this run."""
    url = f"sqlite:///{tmp_path / 'bide.db'}"
    left = Store.open(url)

    with pytest.raises(StoreError, match="closed"):
        build(tmp_path, "owner", left, left.close).invoke({"done_by": []}, CONFIG)
    with Store.open(url) as store:
        result = build(tmp_path, "heir", store, lambda: None).invoke(None, CONFIG)

    assert result["done_by"] == ["first by owner", "second by heir"]
