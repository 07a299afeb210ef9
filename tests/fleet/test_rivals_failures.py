"""What others have failed at, and Bide does not: one test for each row of `docs/rivals-failures.md`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest

from bide import Bide, Store
from bide.errors import AlreadyAnsweredError, LeaseLostError
from bide.store.postgres import PostgresDatabase
from bide.store.queue_rows import Start
from bide.store.rows import JournalRow, Transition
from bide.types import RunStatus
from tests.faults.server import Cluster, cluster
from tests.faults.size import TIMES
from tests.fleet.errands import ABOUT_TO_WAIT, build, run_both
from tests.fleet.machines import Fleet
from tests.fleet.place import Place
from tests.fleet.scene import PEER, WORKS, ZOMBIE, Scene, check_that_the_zombie_wrote_nothing_and_works_again
from tests.fleet.telling import teller
from tests.store.waiting import holds_at_last

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300 * TIMES)]

ERRANDS = "tests.fleet.errands:build"
TALES = "tests.fleet.errands:run_both"
DELIVERERS = 4


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    return make_place()


@pytest.fixture
def fleet(place: Place) -> Iterator[Fleet]:
    with Fleet(place, ERRANDS) as fleet:
        yield fleet


@pytest.fixture
def app(place: Place) -> Iterator[Bide]:
    with Bide(place.open(), build(place)) as app, app.store:
        yield app


def points_of(fleet: Fleet, place: Place, *operations: str) -> list[str]:
    """Run the errands in peace in a place of their own; return the points that these operations pass."""
    trace = Path(place.folder) / "trace.txt"
    fleet.live(TALES, 0, [beside(place, "peace")], trace=str(trace))
    assert fleet.wait(0) == 0, fleet.said(0)
    points = trace.read_text(encoding="utf-8").splitlines()
    return [point for point in points if point.partition(":")[0] in operations]


def beside(place: Place, name: str) -> Place:
    """Another place of the same kind; on a server it is the same database, emptied of the thread."""
    folder = Path(place.folder) / name
    folder.mkdir()
    if place.is_file:
        return place._replace(url=f"sqlite:///{folder / 'bide.db'}", folder=str(folder)).prepare()
    with place.open() as store:
        store.delete_thread("t")
    with place.looking() as query:
        query("DELETE FROM requests")
    return place._replace(folder=str(folder))


def die_at(fleet: Fleet, point: str, place: Place) -> bool:
    """Let the errands be run until death at a point; return whether that was passed."""
    fleet.live(TALES, 0, [place], point=point)
    return fleet.wait(0) == -signal.SIGKILL


def test_finished_node_is_not_run_again_after_a_kill_between_any_two_statements_of_its_commit(place, fleet):
    """LangGraph #8039: a crash between two writes of one step ran a finished node again."""
    points = points_of(fleet, place, "commit", "journal")
    deaths = 0
    for number, point in enumerate(points):
        where = beside(place, str(number))
        deaths += die_at(fleet, point, where)
        with where.looking() as query:
            finished = {name for (name,) in query("SELECT name FROM journal WHERE kind = 'result'")}
            ((steps,),) = query("SELECT count(*) FROM checkpoints")

        run_both(where)

        again = {effect.what for effect in where.ledger.effects if effect.key == str(os.getpid())}
        assert not again & finished, point
        assert not again & ({"left", "right"} if steps > 1 else set()), point
        assert not again & ({"after"} if steps > 2 else set()), point
    assert deaths > 0.8 * len(points) > 15


def test_accepted_run_survives_a_kill_before_its_first_checkpoint(place, fleet):
    """LangGraph #8764: an accepted run was gone when its process died before the first checkpoint."""
    points = points_of(fleet, place, "start", "claim", "enter")
    accepted = points[points.index("start:committed@1") : points.index("enter:committed@1") + 1]
    for number, point in enumerate(accepted):
        where = beside(place, str(number))
        assert die_at(fleet, point, where), point
        # Nobody says again what was asked for: it is in the database.
        told = teller(where, build(where))
        with told.app, told.app.store:
            told.settle()
            assert told.app.get("t").status is RunStatus.DONE, point
            assert sorted(told.app.get("t").values["told"]) == ["after", "left", "right"], point
    assert {point.partition("@")[0] for point in accepted} >= {"claim:committed", "enter:committed"}


def test_every_checkpoint_that_pruning_keeps_can_be_read_and_the_paused_thread_goes_on(app):
    """LangGraph #8531: its PostgreSQL saver has no prune, and keeping the latest breaks channels stored as changes."""
    for turn in range(30):
        app.start("both", {"name": f"turn {turn}"}, thread_id="t")
        app.run_ready()
    app.start("hears", {"name": "t"}, thread_id="paused")
    app.run_ready()
    graph, config = app.graphs.get("both").graph, {"configurable": {"thread_id": "t"}}
    before = {one.config["configurable"]["checkpoint_id"]: one.values for one in graph.get_state_history(config)}

    pruned = app.store.prune(keep_last=7)

    after = {one.config["configurable"]["checkpoint_id"]: one.values for one in graph.get_state_history(config)}
    assert after == {known: before[known] for known in after}
    assert (len(before), len(after)) == (90, 7)
    assert pruned.checkpoints > 80
    assert len(app.get("t").values["told"]) == 90
    app.deliver("news", {"for": "t"})
    app.run_ready()
    assert app.get("paused").values["told"] == ["heard t"]


def test_of_a_thousand_who_resume_at_once_one_wins_and_the_node_goes_on_once(app, place):
    """Mastra #20443, n8n #10014: two resumes at the same moment both went on."""
    app.start("hears", {"name": "t"}, thread_id="t")
    app.run_ready()
    (wait,) = app.waits()

    def resume(number: int) -> str | None:
        name = f"caller {number}"
        with suppress(AlreadyAnsweredError):
            return name if apps[number % 2].wake(wait.id, {"for": name}, by=name).is_new else None
        return None

    with Bide(place.open(), build(place)) as other, other.store, ThreadPoolExecutor(16) as pool:
        apps = (app, other)
        won = [winner for winner in pool.map(resume, range(1000)) if winner]

    outcomes = [driven.outcome for driven in (*app.run_ready(most=10), *app.run_ready(most=10))]
    (winner,) = won
    assert app.get("t").values["told"] == [f"heard {winner}"]
    assert app.wait(wait.id).answered_by == winner
    assert outcomes == ["done"]


@pytest.fixture
def server() -> Iterator[Cluster]:
    with cluster() as server:
        yield server


class RestartedWhileReaping(PostgresDatabase):
    """Its server is killed and started again in the middle of the first transactions that reap."""

    server: Cluster
    times = 3

    def write(self, name: str, work: Callable[[Any], Any]) -> Any:
        def and_die(tx: Any) -> Any:
            result = work(tx)
            if self.server.deaths < self.times:
                self.server.kill()
                self.server.start()
            return result

        return super().write(name, and_die if name == "reap" else work)


def test_restart_of_the_server_while_runs_are_taken_over_strands_none(server, tmp_path):
    """DBOS #716: a restart of PostgreSQL during recovery left workflows pending for ever."""
    place = Place(server.dsn, str(tmp_path)).prepare()
    with Bide(place.open(), build(place)) as app, app.store:
        for number in range(20):
            app.start("plain", {"name": f"t{number}"}, thread_id=f"t{number}")
        with Fleet(place, ERRANDS) as fleet:
            fleet.start(0, options={"concurrency": 20}, point="enter:begun@1")
            assert fleet.wait(0) == -signal.SIGKILL
        database = RestartedWhileReaping(server.dsn, schema="bide")
        database.server = server
        with Store(database) as store:
            survivor = Bide(store, build(place))
            assert holds_at_last(lambda: survivor.tend() and not survivor.run_ready(most=20)), survivor.list()

        assert server.deaths == RestartedWhileReaping.times
        assert {app.get(f"t{number}").status for number in range(20)} == {RunStatus.DONE}
        assert {effect.order for effect in place.ledger.effects} == {f"t{number}" for number in range(20)}


def test_worker_that_drains_claims_nothing_more_and_a_peer_adopts_what_it_gives_back(scene: Scene):
    """DBOS #804, #453: a draining executor claimed its work again, and no peer ever adopted it."""
    scene.hold_a_worker("first")

    scene.fleet.terminate(ZOMBIE)
    assert holds_at_last(lambda: "Stopping" in scene.fleet.said(ZOMBIE)), scene.fleet.said(ZOMBIE)
    for number in range(5):
        scene.app.start("helper", {"parcel": f"new {number}"}, thread_id=f"new {number}")
    scene.gate.open()
    assert scene.fleet.wait(ZOMBIE) == 0

    # It was the only worker: whatever is claimed now, it has claimed.
    with scene.place.looking() as query:
        assert query("SELECT DISTINCT status, epoch FROM runs WHERE thread_id LIKE 'new%'") == [("ready", 0)]
        assert query("SELECT status, crashes FROM runs WHERE thread_id = 'p'") == [("ready", 0)]
    scene.let_the_peer_finish()
    assert all(scene.is_done(f"new {number}") for number in range(5))
    assert scene.once() == {"p charge": 1, "p/help help": 1, **{f"new {number} help": 1 for number in range(5)}}


def test_fact_that_comes_while_its_wait_is_being_registered_is_never_lost(app, place):
    """absurd 0.0.7 #61: an event that came at the moment of the wait woke nobody."""
    names = [f"t{number}" for number in range(400 * TIMES)]
    while not ABOUT_TO_WAIT.empty():
        ABOUT_TO_WAIT.get()
    with ExitStack() as stack:
        query = stack.enter_context(place.looking())
        other = stack.enter_context(Bide(place.open(), build(place)))
        stack.enter_context(other.store)
        pool = stack.enter_context(ThreadPoolExecutor(DELIVERERS))
        stack.enter_context(app.worker(concurrency=8, poll=0.05))
        told = [pool.submit(deliver_at_that_moment, other, Random(number)) for number in range(DELIVERERS)]
        for name in names:
            app.start("hears", {"name": name}, thread_id=name)
        waiting = "SELECT thread_id FROM runs WHERE status <> 'done'"
        are_all_done = holds_at_last(lambda: not query(waiting))
        for _ in told:
            ABOUT_TO_WAIT.put(None)
        assert are_all_done, f"nobody told {query(waiting)}"
        assert query("SELECT DISTINCT wakes, is_pending FROM deliveries") == [(1, 0)]
        assert query("SELECT count(*) FROM waits") == [(len(names),)]
    assert {name: app.get(name).values["told"] for name in names} == {name: [f"heard {name}"] for name in names}


def deliver_at_that_moment(app: Bide, dice: Random) -> None:
    """Bring what a thread is about to wait for, while it is being registered, or a little earlier or later."""
    while (name := ABOUT_TO_WAIT.get()) is not None:
        until = monotonic() + dice.uniform(0, 0.004)
        while monotonic() < until:
            pass
        app.deliver("news", {"for": name}, external_id=name)


def test_node_that_blocks_its_whole_process_past_its_lease_has_its_effect_once(scene: Scene):
    """Hatchet #322: a worker whose loop was blocked was declared dead, and its work was done twice."""
    scene.hold_a_worker("in once, all threads")

    # Nothing beats: whoever holds the interpreter's lock does not give it back.

    check_that_the_zombie_wrote_nothing_and_works_again(scene)


def test_zombie_can_neither_finish_nor_fail_nor_retry_what_another_worker_has_taken_over(app, place):
    """procrastinate 3.10: whoever knows a job may finish it, also a worker that lost it long ago."""
    app.start("plain", {"name": "t"}, thread_id="t")
    with place.open() as zombie:
        (claim,) = zombie.claim(app.graphs.lanes(), 1)
        with place.looking() as query:
            query("UPDATE workers SET host = 'another machine', lease_until = 1")
        assert app.tend().reaped == 1
        (taken,) = app.store.claim(app.graphs.lanes(), 1)
        line = JournalRow("task", "key", "step", "done", "name", "digest", b"")
        child = Start(graph="plain", input=None, thread_id="t/child", parent="t")
        late: list[Callable[[], Any]] = [
            *(
                lambda status=status: zombie.commit(claim.lease, Transition(0, status=status, error="late"))
                for status in (
                    RunStatus.DONE,
                    RunStatus.FAILED,
                    RunStatus.READY,
                    RunStatus.WAITING,
                    RunStatus.CANCELLED,
                )
            ),
            lambda: zombie.keep(claim.lease, line),
            lambda: zombie.spawn(claim.lease, line, child),
            lambda: zombie.transact(claim.lease, "task", "key", lambda connection: line),
        ]
        for write in late:
            with pytest.raises(LeaseLostError):
                write()

    assert [(run.status, run.crashes) for run in app.runs("t")] == [(RunStatus.RUNNING, 1)]
    assert taken.lease.epoch > claim.lease.epoch
    assert app.store.thread("t/child") is None
    assert not app.store.journal("t")


def test_worker_that_boots_among_stale_leases_adopts_their_runs_and_nobody_is_blocked(scene: Scene):
    """deer-flow #1087: after a crash, runs that nobody drove were "running", and blocked the queue."""
    scene.hold_a_worker("first")
    scene.fleet.kill(ZOMBIE)
    assert scene.app.get("p").status is RunStatus.RUNNING
    scene.app.start("gated", {"parcel": "p2"}, thread_id="p", if_busy="enqueue")

    scene.fleet.start(PEER, options=WORKS, machine="peer")

    def are_both_done() -> bool:
        scene.answer("p")
        return [run.status for run in scene.app.runs("p")] == [RunStatus.DONE] * 2

    assert holds_at_last(are_both_done), (scene.app.runs("p"), scene.fleet.said_by_all())
    assert scene.once() == {"p charge": 1, "p/help help": 1, "p2 charge": 1, "p2/help help": 1}
