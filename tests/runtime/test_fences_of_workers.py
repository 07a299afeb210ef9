"""What keeps a worker from harming another's runs: fences, claims that pass each other, and leases that are looked at
twice. Each of these is a line or two of SQL; tests/mutants takes them away, one by one, and these tests must fail."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest

import bide.store.lease
from bide import END, START, CompiledGraph, Done, NotDone, StateGraph, Store, interrupt, step
from bide.runtime.driving import drive
from bide.store.database import Database
from bide.store.lanes import lane_of
from bide.store.queue_rows import Start
from bide.testing import FakeClock, Harness
from bide.testing.crashing import MortalDatabase
from tests.runtime.simulated.process import LEASE_SECONDS, Process
from tests.runtime.simulated.simulation import empty_database
from tests.stores import SCHEMA

PATIENCE = 5
LANE = lane_of("letters")


class Letter(TypedDict, total=False):
    lines: Annotated[list[str], operator.add]


def write(state: Letter) -> Letter:
    return {"lines": [step(str.upper, "dear")]}


def sign(state: Letter) -> Letter:
    return {"lines": [interrupt("who?")]}


GRAPH = StateGraph(Letter).add_sequence([write, sign]).add_edge(START, "write").add_edge("sign", END)
LETTERS = GRAPH.compile(name="letters")


# ── Fences ───────────────────────────────────────────────────────────────────────────────────────────────────────────


FENCED: dict[str, dict[str, Any]] = {
    "hold_lease": {},
    "write_checkpoint": {"ns": "", "seq": 1, "parent": None, "step": 0, "source": "input", "now": 1, "body": b"x"},
    "end_run": {"status": "done", "error": None, "now": 1, "is_waiting": 0},
}


@pytest.mark.parametrize("query", FENCED)
def test_every_write_of_a_run_is_refused_in_an_older_epoch(query: str, store: Store) -> None:
    # given a run that was claimed, taken away, and claimed again
    store.start(Start("letters", b"input", "t"))
    (claim,) = store.claim([LANE], 1)
    taken = {"worker_id": store.worker_id, "crashes": 1, "due_at": 0, "error": None, "status": "ready", "now": 1}
    store.database.write("reap", lambda tx: tx.run("reap_run", {**claim.lease._asdict(), **taken}))
    (again,) = store.claim([LANE], 1)

    # when its first worker writes, and then its second
    def rows(epoch: int) -> int:
        params = {**claim.lease._asdict(), "epoch": epoch, **FENCED[query]}
        if query == "hold_lease":
            return store.database.write("test", lambda tx: len(tx.all(query, params)))
        return store.database.write("test", lambda tx: tx.run(query, params))

    # then only the second one does
    assert rows(claim.lease.epoch) == 0
    assert rows(again.lease.epoch) == 1


class Fleet:
    """Two workers over one database in memory, and time that passes when it is told to."""

    def __init__(self, graph: CompiledGraph) -> None:
        self.clock = FakeClock()
        self.database: Database = empty_database()
        self.at: dict[str, Callable[[], None]] = {}
        """What happens when somebody comes to a place in the store."""
        self.one, self.other = (
            Process(name, self.database, self.clock, [graph], self._visit, Counter()) for name in "ab"
        )

    def _visit(self, point: str) -> bool:
        self.at.get(point, lambda: None)()
        return False

    def claim(self) -> Any:
        (claim,) = self.one.store.claim([LANE], 1)
        return claim

    def outlive_the_lease(self) -> None:
        self.clock.advance(LEASE_SECONDS + 1)


MakeFleet = Callable[..., Fleet]


@pytest.fixture
def make_fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeFleet]:
    """Make a fleet for a graph of one node, or for that of letters."""
    made: list[Fleet] = []

    def make(node: Callable[[Letter], Letter] | None = None) -> Fleet:
        builder = StateGraph(Letter)
        graph = (
            LETTERS if node is None else builder.add_node("node", node).add_edge(START, "node").compile(name="letters")
        )
        made.append(fleet := Fleet(graph))
        monkeypatch.setattr(bide.store.lease, "elapsed", lambda: fleet.clock.now() / 1000)
        return fleet

    yield make
    for fleet in made:
        fleet.database.close()


@pytest.fixture
def fleet(make_fleet: MakeFleet) -> Fleet:
    return make_fleet()


def test_worker_whose_run_was_taken_over_writes_nothing(fleet: Fleet) -> None:
    # given a worker that stood still past its lease, while another one took its run over and paused it
    run = fleet.one.app.start("letters", {"lines": ["in"]})
    claim = fleet.claim()
    fleet.outlive_the_lease()
    fleet.other.app.tend()
    fleet.other.app.run_ready()

    # when it goes on
    driven = drive(fleet.one.store, fleet.one.app.graphs, claim)

    # then it comes to nothing, which is nobody's failure, and the thread is as its successor left it
    assert driven.outcome == "lost"
    thread = fleet.other.app.get(run.thread_id)
    assert thread.status == "waiting"
    assert thread.values == {"lines": ["in", "DEAR"]}


def test_worker_that_is_heard_of_while_it_is_being_judged_keeps_its_runs(fleet: Fleet) -> None:
    run = fleet.one.app.start("letters", {"lines": []})
    fleet.claim()
    fleet.outlive_the_lease()
    fleet.at["reap:begun"] = fleet.one.keeper.beat

    reaped = fleet.other.store.reap()

    assert reaped.ready == 0
    assert fleet.one.store.driven() == {(run.run_id, 1)}


def test_worker_that_was_taken_for_dead_can_be_told_from_its_successor(fleet: Fleet) -> None:
    run = fleet.one.app.start("letters", {"lines": []})
    fleet.claim()
    fleet.outlive_the_lease()

    reaped = fleet.other.store.reap()

    found = fleet.other.store.run(run.thread_id, run.run_id)
    assert reaped.ready == 1
    assert found is not None
    assert (found.status, found.epoch) == ("ready", 2)


def test_worker_that_lost_its_lease_while_it_wrote_an_intent_leaves_the_effect_to_its_successor(
    make_fleet: MakeFleet,
) -> None:
    # given a worker that stands still for longer than its lease, just after it wrote that it is about to charge
    charged: list[str] = []

    def was_charged(key: str) -> Done | NotDone:
        return Done() if charged else NotDone()

    def charge(state: Letter) -> Letter:
        step(charged.append, "5", effect="once", verify=was_charged)
        return {"lines": ["charged"]}

    fleet = make_fleet(charge)

    def take_over() -> None:
        fleet.at.clear()
        fleet.outlive_the_lease()
        fleet.other.app.tend()
        fleet.other.app.run_ready()

    fleet.at["journal:committed"] = take_over
    run = fleet.one.app.start("letters", {"lines": []})

    # when its successor has charged, and it goes on
    fleet.one.app.run_ready()

    # then it charges nothing
    assert charged == ["5"]
    assert fleet.other.app.get(run.thread_id).values == {"lines": ["charged"]}


def test_node_that_swallows_the_loss_of_its_lease_writes_nothing_all_the_same(make_fleet: MakeFleet) -> None:
    def stubborn(state: Letter) -> Letter:
        try:
            step(str.upper, "dear")
        except Exception:  # noqa: BLE001 — as people write it
            return {"lines": ["it did not work"]}
        return {"lines": ["it worked"]}

    # given a worker that was laid off, though nobody has taken its run yet
    fleet = make_fleet(stubborn)
    run = fleet.one.app.start("letters", {"lines": []})
    claim = fleet.claim()
    worker = {"worker_id": fleet.one.store.worker_id}
    fleet.database.write("lay off", lambda tx: tx.run("delete_worker", worker))
    fleet.one.keeper.beat()

    # when it goes on, and its node makes the best of it
    drive(fleet.one.store, fleet.one.app.graphs, claim)
    fleet.other.app.tend()
    fleet.other.app.run_ready()

    # then only what its successor did has happened
    assert fleet.other.app.get(run.thread_id).values == {"lines": ["it worked"]}


# ── Claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_is_claimed_once(store: Store) -> None:
    for number in range(5):
        store.start(Start("letters", b"input", f"t{number}"))

    claimed = [claim.lease.thread_id for _ in range(4) for claim in store.claim([LANE], 2)]

    assert sorted(claimed) == [f"t{number}" for number in range(5)]


class Stopping(MortalDatabase):
    """Stops in the middle of a claim, until it may go on."""

    def __init__(self, inner: Database) -> None:
        super().__init__(inner)
        self.aim("claim:written")
        self.is_there, self.may_go_on = Event(), Event()

    def visit(self, point: str) -> None:
        if point == "claim:written":
            self.is_there.set()
            assert self.may_go_on.wait(60), "nobody lets it go on"


def test_claim_passes_over_runs_that_another_worker_is_claiming(postgres_url: str) -> None:
    with (
        Store.open(postgres_url, schema=SCHEMA) as one,
        Store.open(postgres_url, schema=SCHEMA) as other,
        ThreadPoolExecutor(2) as threads,
    ):
        for number in range(3):
            one.start(Start("letters", b"input", f"t{number}"))
        one.database = stopping = Stopping(one.database)

        # given a worker in the middle of a claim
        first = threads.submit(one.claim, [LANE], 2)
        assert stopping.is_there.wait(PATIENCE)
        try:
            # when another one claims, it neither waits nor gets the same
            second = threads.submit(other.claim, [LANE], 2).result(PATIENCE)
        finally:
            stopping.may_go_on.set()
        claimed = [claim.lease.thread_id for claim in (*first.result(PATIENCE), *second)]
        one.database = stopping.inner

    assert sorted(claimed) == ["t0", "t1", "t2"]


# ── Waits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("change", ["status = 'answered'", "consumed = 1"])
def test_wait_that_is_settled_or_over_is_not_settled_again(change: str) -> None:
    with Harness([LETTERS]) as harness:
        run = harness.start("letters", {"lines": []})
        harness.run_until_idle()
        wait = harness.wait(run)
        params = {"wait_id": wait.id, "thread_id": run.thread_id, "status": "cancelled", "answer": None, "by": "late"}
        params |= {"via": "test", "answer_key": None, "now": harness.clock.now(), "before": harness.clock.now()}
        at_once = f"UPDATE waits SET {change}, answer = x'00', answered_at = 1"

        def settle(tx: Any) -> int:
            tx.connection.execute(at_once)
            return tx.run("settle_wait", params)

        assert harness.store.database.write("test", settle) == 0


def test_thread_that_paused_can_be_answered_though_its_worker_died_right_after() -> None:
    with Harness([LETTERS]) as harness:
        run = harness.start("letters", {"lines": []})

        with harness.crash_at("commit:committed", visit=2):
            harness.run_until_idle()
        harness.run_until_idle()
        harness.answer(run, "Ada")
        harness.run_until_idle()

        harness.assert_done(run, lines=["DEAR", "Ada"])


# ── Inputs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("point", ["enter:written", "enter:committed", "commit:begun"])
def test_input_is_applied_once_wherever_the_worker_dies(point: str) -> None:
    with Harness([LETTERS]) as harness:
        run = harness.start("letters", {"lines": ["in"]})

        with harness.crash_at(point):
            harness.run_until_idle()
        harness.run_until_idle()

        assert harness.state(run) == {"lines": ["in", "DEAR"]}
