"""Schedules with several processes that look at the same clock, and with one that dies at any write of a start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier, Thread

import pytest

from bide import Bide, Store
from bide.store.database import Transaction
from tests.runtime.test_schedules import DAY, MINUTE, NINE, at, report
from tests.runtime.world import StillClock, graph
from tests.stores import SCHEMA

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "firing.py"
SCHEDULES = 12


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"sqlite:///{tmp_path / 'bide.db'}"
    return str(request.getfixturevalue("postgres_url"))


def opened(url: str, clock: StillClock) -> Store:
    return Store.open(url, clock=clock) if url.startswith("sqlite") else Store.open(url, schema=SCHEMA, clock=clock)


def make_all(store: Store) -> Bide:
    app = Bide(store, [graph(report, "report")])
    for number in range(SCHEDULES):
        app.schedule(f"daily-{number}", "report", "0 9 * * *", {"given": number})
    return app


@pytest.fixture
def app(url: str) -> Iterator[Bide]:
    """An application with schedules that are all due at nine."""
    with opened(url, StillClock(NINE - MINUTE)) as store:
        yield make_all(store)


def firing(url: str, **environment: str) -> subprocess.Popen[str]:
    """Start a process that waits for a line, and then starts what is due at nine."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), url, str(NINE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def check_each_has_started_once(app: Bide) -> None:
    threads = app.list(most=1000)
    assert len(threads) == SCHEDULES
    assert all(len(app.runs(thread.thread_id)) == 1 for thread in threads)
    assert {(one.last_at, one.next_at, one.error) for one in app.schedules()} == {(at(NINE), at(NINE + DAY), None)}


def test_four_processes_that_look_at_once_start_each_run_once(app: Bide, url: str) -> None:
    with ExitStack() as ends:
        processes = [ends.enter_context(firing(url)) for _ in range(4)]
        for process in processes:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline()) == "ready"

        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        started = [int(process.communicate()[0]) for process in processes]

    assert sum(started) == SCHEDULES
    check_each_has_started_once(app)


def test_four_threads_that_look_at_once_start_each_run_once(app: Bide, url: str) -> None:
    started: list[int] = []
    together = Barrier(4)

    def look() -> None:
        with opened(url, StillClock(NINE)) as store:
            elsewhere = Bide(store)
            together.wait(30)
            started.append(elsewhere.start_due())

    lookers = [Thread(target=look) for _ in range(4)]
    for looker in lookers:
        looker.start()
    for looker in lookers:
        looker.join()

    assert sum(started) == SCHEDULES
    check_each_has_started_once(app)


def test_schedule_that_another_process_is_starting_is_neither_started_nor_waited_for(postgres_url: str) -> None:
    with opened(postgres_url, StillClock(NINE - MINUTE)) as store, opened(postgres_url, StillClock(NINE)) as other:
        make_all(store)

        def while_held(tx: Transaction) -> int:
            assert tx.one("hold_due_schedule", {"schedule_id": "daily-3", "now": NINE}) is not None
            return Bide(other).start_due()

        assert store.database.write("hold", while_held) == SCHEDULES - 1
        assert Bide(other).start_due() == 1


def died_at(url: str, point: str) -> bool:
    """Let a process start what is due, and die at this point; return whether it did."""
    with firing(url, BIDE_FAILPOINT=point) as process:
        process.communicate("\n")
    return process.returncode == -signal.SIGKILL


def points_of_a_start(url: str, tmp_path: Path) -> list[str]:
    """The points that a process passes from when it finds the first schedule until it has started its run."""
    trace = tmp_path / "trace.txt"
    with firing(url, BIDE_FAILPOINT_TRACE=str(trace)) as process:
        process.communicate("\n")
    passed = trace.read_text(encoding="utf-8").splitlines()
    return [point for point in passed if point.startswith("start_due:") and point.endswith(("@1", "@2"))]


def test_death_at_any_write_of_a_start_loses_nothing_and_starts_nothing_twice(
    url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    def schedules(name: str) -> tuple[str, Store]:
        if url.startswith("sqlite"):
            place = f"sqlite:///{tmp_path / name}.db"
            return place, opened(place, StillClock(NINE - MINUTE))
        request.getfixturevalue("shared_postgres")[1]()
        return url, opened(url, StillClock(NINE - MINUTE))

    place, store = schedules("peace")
    with store:
        make_all(store)
        points = points_of_a_start(place, tmp_path)
    assert {point.partition("@")[0] for point in points} >= {
        "start_due:hold_due_schedule",
        "start_due:insert_start",
        "start_due:move_schedule",
        "start_due:written",
        "start_due:committed",
    }

    for number, point in enumerate(points):
        place, store = schedules(str(number))
        with store:
            make_all(store)

            assert died_at(place, point), point

            with opened(place, StillClock(NINE)) as other:
                Bide(other).start_due()
                check_each_has_started_once(Bide(other))
