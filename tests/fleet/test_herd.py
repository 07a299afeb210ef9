"""Ten thousand threads are due in the same second: each goes on once, in bounded room, and nobody else has to wait."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import pytest

from bide.store.postgres import MOST_CONNECTIONS
from tests.faults.size import TIMES
from tests.fleet.herd import build
from tests.fleet.machines import Fleet
from tests.fleet.place import Place
from tests.fleet.telling import Teller, teller
from tests.store.waiting import holds_at_last

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 * TIMES)]

HERDS = [("postgres", 10_000 * TIMES), ("sqlite", 2_000 * TIMES)]
ANN = 50
CONCURRENCY = 8
SECONDS = 300 * TIMES
MEGABYTE = 1024
"""In the kernel's own unit."""
BESIDE_THE_POOL = 2
"""A worker's heartbeat and its doorbell have a connection each."""


class Watch:
    """Looks at a worker while it works: how much memory it has, and how many connections."""

    def __init__(self, pid: int, place: Place) -> None:
        self.pid = pid
        self.place = place
        self.memory: list[int] = []
        self.connections = 0
        self._stop = Event()
        self._thread = Thread(target=self._look, name="watch")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(SECONDS)

    def _look(self) -> None:
        with self.place.looking() as query:
            while not self._stop.wait(0.05):
                self.memory.append(self._now("VmRSS"))
                if not self.place.is_file:
                    ((count,),) = query("SELECT count(*) FROM pg_stat_activity WHERE application_name = ?", "herd")
                    self.connections = max(self.connections, count)

    def _now(self, what: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(rf"{what}:\s+(\d+) kB", status)[0])


def put_to_rest(told: Teller, names: list[str], count: Callable[[str], int]) -> None:
    """Start threads, and let them come to rest, all until the same instant."""
    for name in names:
        told.app.start("herd", {}, thread_id=name)
    with told.app.worker(concurrency=CONCURRENCY, poll=0.05):
        assert holds_at_last(lambda: count("waiting") == len(names), SECONDS), count("waiting")


@pytest.mark.parametrize(("make_place", "herd"), HERDS, indirect=["make_place"])
def test_ten_thousand_that_are_due_at_once_all_go_on_once_and_starve_nobody(make_place, herd):
    place = make_place()
    told = teller(place, build(place))
    with told.app, told.app.store, place.looking() as query, Fleet(place) as fleet:

        def count(status: str) -> int:
            ((found,),) = query("SELECT count(*) FROM runs WHERE status = ?", status)
            return int(found)

        put_to_rest(told, [f"t{number}" for number in range(herd)], count)
        told.pass_to(hours=2)
        # Half of the herd is on its feet before anybody of ann's comes, and would go first if age decided.
        while count("ready") < herd // 2:
            told.app.tend()
        for number in range(ANN):
            told.app.start("single", {}, thread_id=f"ann{number}", owner="ann")

        worker = fleet.live("tests.fleet.herd:work_at", 0, [herd_of(place), CONCURRENCY])
        with Watch(worker, place) as watch:
            assert holds_at_last(lambda: count("done") > herd // 10, SECONDS), fleet.said(0)
            early = max(watch.memory)
            assert holds_at_last(lambda: count("done") == herd + ANN, SECONDS), fleet.said(0)

        fleet.terminate(0)
        assert fleet.wait(0) == 0, fleet.said(0)
        check_each_went_on_once(query, herd)
        turns = [told.app.get(f"ann{number}").values["turn"] for number in range(ANN)]
        said = fleet.said(0)
        print(
            f"{herd} threads; the last of ann's {ANN} in turn {max(turns)}; {early // MEGABYTE} MB early, "
            f"{max(watch.memory) // MEGABYTE} MB at most; {watch.connections} connections at most"
        )
    assert f"{herd + ANN} turns" in said
    assert max(turns) <= 2 * ANN + 8 * CONCURRENCY
    assert max(watch.memory) - early < 24 * MEGABYTE
    assert watch.connections <= MOST_CONNECTIONS + BESIDE_THE_POOL


def herd_of(place: Place) -> Place:
    """The same place, as the worker says who it is."""
    return place if place.is_file else place._replace(url=f"{place.url} application_name=herd")


def check_each_went_on_once(query: Callable[..., list[Any]], herd: int) -> None:
    """All were claimed equally often, one answer each, and nobody was lost on the way."""
    ((_, crashes, status),) = query("SELECT DISTINCT epoch, crashes, status FROM runs WHERE thread_id LIKE 't%'")
    assert (crashes, status) == (0, "done")
    assert query("SELECT status, count(*) FROM waits GROUP BY status") == [("answered", herd)]
    ends = "SELECT kind, count(*) FROM events WHERE thread_id LIKE 't%' AND kind = 'run.done' GROUP BY kind"
    assert query(ends) == [("run.done", herd)]
