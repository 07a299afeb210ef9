"""The real runtime beside its model: every rule is done to both, and after each they must look the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import bide.store.lease
from bide.errors import IdempotencyError, ThreadBusyError, WaitExpiredError
from bide.runtime.driving import drive
from bide.store.queue_rows import Claim
from bide.testing import FakeClock
from tests.runtime.modelled.model import Model
from tests.runtime.modelled.nouns import HOUR, Busy, Run, Script, Thread
from tests.runtime.modelled.scripts import GRAPH, given
from tests.runtime.simulated.process import Process
from tests.runtime.simulated.simulation import empty_database

LANE = "default/scripts@"
NAMES = ("a", "b")
DEATHS = ("enter:written", "commit:begun", "commit:committed")

simple = st.one_of(
    st.just(["step"]),
    st.tuples(st.just("ask"), st.sampled_from([0, 1, 30])).map(list),
    st.tuples(st.just("event"), st.sampled_from(NAMES)).map(list),
    st.tuples(st.just("sleep"), st.sampled_from([1, 30])).map(list),
    st.just(["fail"]),
)
short = st.lists(simple, min_size=1, max_size=2)
spawning = st.tuples(st.just("spawn"), short, st.sampled_from(["cancel", "end", "abandon"])).map(list)
scripts = st.lists(st.one_of(simple, spawning), min_size=1, max_size=3)
numbers = st.integers(0, 5)


class Runtime(RuleBasedStateMachine):
    """Two workers, an office from which everything else is done, and the model."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.elapsed, bide.store.lease.elapsed = bide.store.lease.elapsed, lambda: self.clock.now() / 1000
        self.database = self.open()
        self.model = Model(self.clock.now())
        self.threads = [Thread(f"t{number}") for number in range(3)]
        self.office = self._process("office")
        self.workers = [self._process("w0"), self._process("w1")]
        self.claims: list[tuple[Process, Claim, Thread, Run]] = []
        self.keys: dict[str, tuple[Thread, Script, Run]] = {}
        self.dead: set[str] = set()
        self.dies_at: str | None = None
        self.born = 0

    def open(self) -> Any:
        """Open an empty database."""
        return empty_database()

    def _process(self, name: str) -> Process:
        return Process(name, self.database, self.clock, [GRAPH], lambda point: point == self.dies_at, Counter())

    def teardown(self) -> None:
        try:
            found = self.office.store.verify()
            assert found.is_sound, str(found)
        finally:
            bide.store.lease.elapsed = self.elapsed
            for process in (self.office, *self.workers):
                process.keeper.die()
            self.database.close()

    # ── Starting ───────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        number=st.integers(0, 2),
        script=scripts,
        if_busy=st.sampled_from(["reject", "enqueue", "interrupt", "rollback"]),
        delay=st.sampled_from([0, 0, 0, 2]),
    )
    def start(self, number: int, script: Script, if_busy: Any, delay: int) -> None:
        if delay and if_busy in ("interrupt", "rollback"):
            return  # that cannot be meant, and is refused
        thread = self.threads[number]
        try:
            run = self.model.start(thread, script, if_busy, delay * HOUR)
        except Busy:
            run = None
        try:
            started = self._start(thread, script, if_busy=if_busy, **({"delay": f"{delay}h"} if delay else {}))
        except ThreadBusyError:
            assert run is None, "a start was refused"
        else:
            assert run is not None, "a start was not refused"
            run.id = started.run_id

    def _start(self, thread: Thread, script: Script, **options: Any) -> Any:
        return self.office.app.start("scripts", given(script), thread_id=thread.id, on_paused="restart", **options)

    @rule(number=st.integers(0, 2), script=short, key=st.sampled_from(["k1", "k2"]))
    def start_with_a_key(self, number: int, script: Script, key: str) -> None:
        thread = self.threads[number]
        known = self.keys.get(key)
        if known is None:
            if thread.live is not None:
                return
            run = self.model.start(thread, script)
            run.id = self._start(thread, script, key=key).run_id
            self.keys[key] = (thread, script, run)
            return
        try:
            started = self._start(thread, script, key=key)
        except IdempotencyError:
            assert (thread, script) != known[:2], "the same start was refused"
        else:
            assert (thread, script) == known[:2], "a key was taken for two things"
            assert (started.run_id, started.is_new) == (known[2].id, False)

    @rule(number=st.integers(0, 2))
    def go_on(self, number: int) -> None:
        """Retry what failed or was cancelled, or go on where somebody has forked."""
        thread = self.threads[number]
        begun = [run for run in thread.runs if run.status != "queued"]
        if not begun or thread.live is not None or (begun[-1].script is None and not thread.is_unfinished):
            return
        if begun[-1].status == "done":
            run = self.model.start(thread, None)
            run.id = self.office.app.start("scripts", None, thread_id=thread.id).run_id
        else:
            run = self.model.retry(thread)
            run.id = self.office.app.retry(thread.id).run_id

    # ── Working ────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(worker=st.integers(0, 1), most=st.integers(1, 3))
    def claim(self, worker: int, most: int) -> None:
        process = self.workers[worker]
        ready = self.model.ready()
        claims = process.store.claim([LANE], most)
        assert len(claims) == min(most, len(ready)), f"{len(claims)} of {len(ready)} were claimed"
        by_id = {run.id: (thread, run) for thread, run in ready}
        for claim in claims:
            thread, run = by_id.pop(claim.lease.run_id)
            self.model.claim(run, process.name)
            self.claims.append((process, claim, thread, run))

    @rule(worker=st.integers(0, 1), dies_at=st.sampled_from([None, None, None, *DEATHS]))
    def work(self, worker: int, dies_at: str | None) -> None:
        """Claim a run and drive it at once; under several names, since Hypothesis takes each rule equally often."""
        before = len(self.claims)
        self.claim(worker, 1)
        if len(self.claims) > before:
            self.drive(before, dies_at)

    @rule(worker=st.integers(0, 1))
    def work_on(self, worker: int) -> None:
        self.work(worker, None)

    @rule(worker=st.integers(0, 1))
    def work_for_long(self, worker: int) -> None:
        for _ in range(4):
            self.work(worker, None)

    @precondition(lambda self: self.claims)
    @rule(which=numbers, dies_at=st.sampled_from([None, None, None, *DEATHS]))
    def drive(self, which: int, dies_at: str | None) -> None:
        process, claim, thread, run = self.claims.pop(which % len(self.claims))
        self.dies_at = dies_at
        driven = drive(process.store, process.app.graphs, claim)
        self.dies_at = None
        if run.status != "running" or run.worker != process.name:
            assert driven.outcome == "lost", f"a run that was taken away is {driven.outcome}"
            is_ours = False
        else:
            is_ours = True
            self.model.drive(thread, run, dies_at if process.is_dead else None)
        self._meet_children()
        if process.is_dead:
            self._bury(process)
        elif is_ours:
            outcome = {"ready": "waiting"}.get(run.status, run.status)
            assert driven.outcome == outcome, f"{driven.outcome} ({driven.error}), not {outcome}"

    def _meet_children(self) -> None:
        """Learn the names of children that were born."""
        for thread in self.model.threads:
            if not thread.id:
                assert thread.parent is not None
                known = {other.id for other in self.model.threads}
                (thread.id,) = (id_ for id_, _ in self.office.store.children(thread.parent.id) if id_ not in known)
                thread.runs[0].id = self.office.store.runs(thread.id)[0].run_id

    @rule(what=st.sampled_from(["kill", "release", "cancel_thread", "cancel_run", "prune"]), which=numbers)
    def intervene(self, what: str, which: int) -> None:
        getattr(self, f"_{what}")(which)

    def _kill(self, which: int) -> None:
        worker = self.workers[which % 2]
        worker.database.die()
        self._bury(worker)

    def _bury(self, process: Process) -> None:
        worker_id = process.store.worker_id
        process.keeper.die()
        self.database.write("leave", lambda tx: tx.run("delete_worker", {"worker_id": worker_id}))
        self.dead.add(process.name)
        self.claims = [claim for claim in self.claims if claim[0] is not process]
        self.born += 1
        self.workers[self.workers.index(process)] = self._process(f"w{self.born + 1}")

    @rule()
    def tend(self) -> None:
        self.office.app.tend()
        self.model.tend(self.dead)

    @rule(hours=st.sampled_from([0, 0, 1, 3, 25]), seconds=st.integers(1, 20))
    def let_time_pass(self, hours: int, seconds: int) -> None:
        self.clock.advance(hours * 3600 + seconds)
        self.model.now = self.clock.now()
        for worker in self.workers:
            worker.keeper.beat()

    def _release(self, which: int) -> None:
        if not self.model.threads:
            return
        thread = self.model.threads[which % len(self.model.threads)]
        assert self.office.app.release(thread.id) == self.model.release(thread)

    # ── What comes from outside ────────────────────────────────────────────────────────────────────────────────────

    @rule(name=st.sampled_from(NAMES))
    def deliver(self, name: str) -> None:
        number = self.model.deliver(name)
        delivered = self.office.app.deliver(name, number, source="world", external_id=str(number))
        again = self.office.app.deliver(name, number, source="world", external_id=str(number))
        assert (delivered.is_new, again.is_new, again.threads) == (True, False, ())

    @precondition(lambda self: self.model.open_waits("ask"))
    @rule(which=numbers)
    def answer(self, which: int) -> None:
        waiting = self.model.open_waits("ask")
        thread = waiting[which % len(waiting)]
        is_heard = self.model.answer(thread, f"answer {which}")
        try:
            self.office.app.resume(thread.id, f"answer {which}")
        except WaitExpiredError:
            assert not is_heard, "an answer was refused"
        else:
            assert is_heard, "an answer was taken after the deadline"

    @precondition(lambda self: self.model.open_waits())
    @rule(which=numbers)
    def withdraw(self, which: int) -> None:
        waiting = self.model.open_waits()
        thread = waiting[which % len(waiting)]
        self.model.settle(thread, "withdrawn")
        (wait,) = self.office.app.waits(thread_id=thread.id)
        assert self.office.app.cancel(wait_id=wait.id)

    def _cancel_thread(self, which: int) -> None:
        if not self.model.threads:
            return
        thread = self.model.threads[which % len(self.model.threads)]
        assert self.office.app.cancel(thread.id) == self.model.cancel_thread(thread)
        self.model.close_children()

    def _cancel_run(self, which: int) -> None:
        runs = [(thread, run) for thread in self.model.threads for run in thread.runs]
        if not runs:
            return
        thread, run = runs[which % len(runs)]
        is_alive = not run.is_over
        assert self.office.app.cancel(thread.id, run_id=run.id) == is_alive
        if is_alive:
            self.model.cancel_run(thread, run)
        self.model.close_children()

    @rule(number=st.integers(0, 2), which=numbers)
    def fork(self, number: int, which: int) -> None:
        thread = self.threads[number]
        if not thread.history or not all(run.is_over for run in thread.runs):
            return
        index = which % len(thread.history)
        graph = self.office.app.graphs.get("scripts").graph
        history = list(graph.get_state_history({"configurable": {"thread_id": thread.id}}))
        if len(history) != len(thread.history):
            return  # some of it was let go
        graph.fork(history[len(history) - 1 - index].config)
        self.model.fork(thread, index)

    def _prune(self, which: int) -> None:
        self.office.store.prune(keep_last=1 + which % 3)

    # ── Refinement ─────────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def they_look_the_same(self) -> None:
        store = self.office.store
        graph = self.office.app.graphs.get("scripts").graph
        for thread in self.model.threads:
            runs = {row.run_id: row.status.value for row in store.runs(thread.id)}
            expected = {run.id: run.status for run in thread.runs if run.id in runs or not run.is_over}
            assert runs == expected, f"the runs of {thread.id}"
            waits = [row for row in store.waits_of(thread.id) if row.status == "open" and not row.is_consumed]
            is_waiting = thread.wait is not None and thread.wait.is_open
            assert len(waits) == is_waiting, f"{thread.id} has {len(waits)} open waits"
            values = graph.get_state({"configurable": {"thread_id": thread.id}}).values
            script, at, done = thread.state
            state = {"script": script, "at": at, "done": done} if thread.history else {}
            assert {"done": [], **values} == {"done": [], **state}, f"the state of {thread.id}"
            assert {child.id for child in thread.children} == {id_ for id_, _ in store.children(thread.id)}
