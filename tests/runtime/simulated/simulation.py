"""A fleet's whole life, decided by one seed: workers, people and facts interleave at every transaction.

Workers die at any write, stall past their lease and wake as if nothing had happened, and miss heartbeats; facts come
before, after and while somebody waits for them, and come twice; people answer twice; callers die before they hear that
they were heard, and try again. In the end everything that was accepted must have happened, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from random import Random
from typing import Any

from bide import Store
from bide.errors import ConflictError, ResumeError
from bide.store.sqlite import SqliteDatabase
from bide.testing import FakeClock
from bide.testing.crashing import Crashed
from tests.runtime.simulated.audit import Broken, audit
from tests.runtime.simulated.orders import GRAPHS, KINDS, LEDGER, TABLE
from tests.runtime.simulated.process import LEASE_SECONDS, Process
from tests.runtime.simulated.stage import Actor, Stage, breathe

MOST_MOVES = 40_000
WORKERS = 2
DRIVERS = 2
STALL = int(2.5 * LEASE_SECONDS * 1000)
BEAT = int(LEASE_SECONDS * 333)
BEGINNING = 1_800_000_000_000

Errand = tuple[str, Callable[[], Any]]
"""Something that must be brought from outside, by its name."""


class Simulation:
    """One seed's world."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.clock = FakeClock(BEGINNING)
        self.trace: list[str] = []
        self.seen: Counter[str] = Counter()
        self.digest = ""
        self.ledger = LEDGER
        LEDGER.begin_anew()
        self.trouble = self.random.choice([0, 2, 4, 8])
        """How much may still go wrong."""
        self.answers = self.random.choice([("question", "any_of"), ("question", "any_of"), ("question",)])
        """What people answer; if they do not approve, a fact does, or the deadline passes."""
        self.moves = 0
        self.stage = Stage()
        self.actors: dict[Actor, Process] = {}
        self.plans = self._plans()
        self.cancelled: set[str] = set()
        """What somebody wanted to cancel; it may have been too late."""
        self.waiting: list[tuple[int, str, Callable[[], Any]]] = []
        """Errands that nobody has begun yet, and from which move on somebody may."""
        self.beaten_at = BEGINNING
        self.looks = 0

    def _plans(self) -> dict[str, list[str]]:
        names = [f"o{number}" for number in range(self.random.randint(1, 3))]
        return {name: [self.random.choice(KINDS) for _ in range(self.random.randint(1, 3))] for name in names}

    def run(self) -> str:
        """Live through it; return the digest of all that happened."""
        self.database = empty_database()
        try:
            self._prepare()
            self.stage.play(self._direct)
            audit(self)
        except Exception as problem:
            raise Broken(self._report(problem)) from problem
        finally:
            self._end()
        return blake2b("\n".join(self.trace).encode()).hexdigest()

    def _report(self, problem: Exception) -> str:
        last = "\n  ".join(self.trace[-60:])
        told = str(problem) if isinstance(problem, Broken) else f"{type(problem).__name__}: {problem}"
        return (
            f"seed {self.seed}: {told}\n\nplans: {self.plans}\nThe last of {len(self.trace)} moves:\n  {last}\n\n"
            f"Replay it: python3 dev.py test tests/runtime/simulated --seed={self.seed}"
        )

    # ── The cast ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _prepare(self) -> None:
        self.office = self._process("office")
        self.workers = [self._worker(f"w{number}") for number in range(WORKERS)]
        for errand in self._errands():
            self._send(errand)
        self._act("person", self.office, self._keep_answering)

    def _process(self, name: str) -> Process:
        return Process(name, self.database, self.clock, GRAPHS, lambda point: self._dies(name, point), self.seen)

    def _worker(self, name: str) -> Process:
        process = self._process(name)
        self._act(f"{name} tends", process, process.keep_tending)
        for number in range(DRIVERS):
            self._act(f"{name} drives {number}", process, process.keep_driving)
        return process

    def _act(self, name: str, process: Process, story: Callable[[], Any]) -> None:
        self.actors[Actor(name, story, process.check_alive)] = process

    def _dies(self, name: str, point: str) -> bool:
        # Those who look for work do so all the time, and to die then is not worth much.
        if not self.trouble or self.random.random() >= (0.001 if point.startswith("claim") else 0.03):
            return False
        self.trouble -= 1
        self.trace.append(f"{name} dies at {point}")
        self.seen[f"dies at {point}"] += 1
        return True

    # ── What comes from outside ────────────────────────────────────────────────────────────────────────────────────

    def _errands(self) -> list[Errand]:
        """Everything that must be brought, and some of it twice; in any order, since each is an actor of its own."""
        found: list[Errand] = []
        for name, plan in self.plans.items():
            given = {"name": name, "plan": plan, "log": []}
            found.append((f"start {name}", lambda name=name, given=given: self._start(name, given)))
            for at, kind in enumerate(plan):
                found += self._facts_for(kind, f"{name}.{at}")
            found += [(f"cancel {name}", lambda name=name: self._cancel(name))] if self._chance(0.05) else []
        slots = sum(plan.count("slot") for plan in self.plans.values())
        found += [self._fact("slot", {"number": number}, str(number)) for number in range(slots)]
        found += [errand for errand in found if not errand[0].startswith("cancel") and self._chance(0.3)]
        return found

    def _facts_for(self, kind: str, place: str) -> list[Errand]:
        if kind == "pay":
            return [self._fact("paid", {"order": place, "amount": 5}, place)]
        if kind == "vote":
            return [self._fact("vote", {"order": place, "by": who}, f"{place}{who}") for who in "abc"]
        if kind == "approve" and self._chance(0.5):
            return [self._fact("approved", {"order": place}, place)]
        return []

    def _chance(self, part: float) -> bool:
        return self.random.random() < part

    def _fact(self, name: str, payload: Any, id_: str) -> Errand:
        return f"{name} {id_}", lambda: self.office.app.deliver(
            name, payload, source="world", external_id=f"{name}{id_}"
        )

    def _start(self, name: str, given: Any) -> Any:
        return self.office.app.start("order", given, thread_id=name, key=f"start {name}")

    def _cancel(self, name: str) -> None:
        if self.office.store.thread(name) is not None:
            self.cancelled.add(name)
            self.office.app.cancel(name)

    def _send(self, errand: Errand) -> None:
        """Let somebody do an errand, after a while, and again if it was not heard whether it was done."""
        name, do = errand
        self.waiting.append((self.moves + self.random.randint(0, 600), name, do))
        self.waiting.sort(key=lambda one: one[0])

    def _keep_answering(self) -> None:
        """Answer whatever is asked, now and then twice."""
        app = self.office.app
        while True:
            asked = [wait for wait in app.waits() if wait.kind in self.answers]
            if asked and self._chance(0.5):
                wait = self.random.choice(asked)
                value = 7 if wait.kind == "question" else "approve"
                for who in self.random.choice(["a", "ab", "aa"]):
                    self._answer(wait.id, value, who)
                breathe()
            else:
                breathe(is_idle=True)

    def _answer(self, wait_id: str, value: Any, who: str) -> None:
        try:
            woken = self.office.app.wake(wait_id, value, by=who, key=f"{wait_id} {who}")
            self.seen[f"answer {woken.status}"] += 1
        except (ConflictError, ResumeError) as refused:
            self.seen[f"answer {type(refused).__name__}"] += 1

    # ── Moves ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _direct(self, actor: Actor | None) -> Actor | None:
        """Decide who goes on: whoever has just breathed, or another one; None when everything is over."""
        self.moves += 1
        if self.moves > MOST_MOVES:
            raise Broken("the fleet does not come to its end")
        if actor is not None and actor.is_over:
            self._leave(actor)
        elif actor is not None and not actor.is_idle:
            self._perhaps_stall(actor)
            if self.actors[actor].stalled_until < self.moves and self._chance(0.65):
                return actor
        self._pass_time()
        while True:
            present = [one for one, process in self.actors.items() if process.stalled_until < self.moves]
            busy = [one for one in present if not one.is_idle]
            if busy:
                chosen = self.random.choice(busy)
                chosen.is_idle = False
                return chosen
            if self._is_over():
                return None
            self._wait()

    def _pass_time(self) -> None:
        self.clock.move_to(self.clock.now() + self.random.randint(0, 3))
        self._beat()
        while self.waiting and self.waiting[0][0] <= self.moves:
            _, name, do = self.waiting.pop(0)
            self._act(name, self.office, do)

    def _leave(self, actor: Actor) -> None:
        """See how a story has ended."""
        process = self.actors.pop(actor)
        if actor.error is None:
            self.trace.append(f"{actor.name} is done")
        elif not isinstance(actor.error, Crashed):
            raise actor.error
        else:
            self._bury(process)
            if process.name == "office" and actor.name != "person":
                # Whoever did not hear whether it was done comes again.
                self._send((actor.name, actor.story))

    def _bury(self, process: Process) -> None:
        """Let another process take the place of one that has died."""
        if process is self.office:
            self.office = self._process("office")
            self._act("person", self.office, self._keep_answering)
        elif process in self.workers:
            self.workers[self.workers.index(process)] = self._worker(f"{process.name}'")
        for other, whose in self.actors.items():
            if whose is process:
                other.is_idle = False

    def _perhaps_stall(self, actor: Actor) -> None:
        """Let a process stand still in the middle of its work, while its lease runs out, and for a while after."""
        process = self.actors[actor]
        is_at_work = "drives" in actor.name and process.keeper.drives_something
        if not self.trouble or not self._chance(0.02 if is_at_work else 0.0005) or process is self.office:
            return
        self.trouble -= 1
        process.stalled_until = self.moves + self.random.randint(10, 120)
        self.trace.append(f"{process.name} stalls")
        self.seen["stalls"] += 1
        for _ in range(5 if self._chance(0.7) else 0):
            self.clock.move_to(self.clock.now() + STALL // 5)
            self._beat()

    def _beat(self) -> None:
        """Let the hearts of those who live beat, three times in a lease; now and then one misses a beat."""
        if self.clock.now() < self.beaten_at + BEAT:
            return
        self.beaten_at = self.clock.now()
        for process in self.workers:
            if process.stalled_until < self.moves and not process.is_dead and not self._chance(0.02):
                process.keeper.beat()

    # ── Quiet ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_over(self) -> bool:
        if self.waiting or any(not actor.name.startswith(("w", "person")) for actor in self.actors):
            return False
        rows = self.database.read(lambda tx: tx.all("list_threads", {"most": 1000}))
        self.looks += all(row[3] in ("done", "cancelled") for row in rows)
        return self.looks > 2

    def _wait(self) -> None:
        """When nobody has anything to do: let some look again, or time pass until something is due."""
        self.moves += 1
        if self.moves > MOST_MOVES:
            raise Broken("the fleet does not come to its end")
        if self._chance(0.5):
            self._skip()
        for actor, process in self.actors.items():
            if process.stalled_until < self.moves and self._chance(0.5):
                actor.is_idle = False

    def _skip(self) -> None:
        """Skip to where something is due, or somebody comes; each time not past the next beat."""
        now = self.clock.now()
        due = [instant for instant in self._due() if instant is not None and instant > now]
        if self.waiting:
            self.moves = max(self.moves, self.waiting[0][0])
        elif due and min(due) < now + BEAT:
            self.clock.move_to(min(due))
        elif due:
            self.beaten_at = 0
            for process in self.workers:
                process.stalled_until = min(process.stalled_until, self.moves)
            self.clock.move_to(min(due))
            self._beat()
        else:
            self.clock.move_to(now + BEAT)
        for thread_id, status in self._threads():
            if status == "dead":
                self.seen["dead"] += 1
                self.office.store.database.inner.write("release", lambda tx, dead=thread_id: _release(tx, dead, now))

    def _due(self) -> list[int | None]:
        lanes = [self.database.read(lambda tx, lane=lane: tx.one("next_ready", {"lane": lane})) for lane in LANES]
        return [row[0] for row in (self.database.read(lambda tx: tx.one("next_due", {})), *lanes) if row]

    def _threads(self) -> list[tuple[str, str]]:
        return [(row[0], row[3]) for row in self.database.read(lambda tx: tx.all("list_threads", {"most": 1000}))]

    def _end(self) -> None:
        """Let all stories come to an end, so that no thread is left behind."""
        for process in {*self.actors.values()}:
            process.database.die()
        left = [actor for actor in self.actors if actor.has_begun]
        self.stage.play(lambda _: next((actor for actor in left if not actor.is_over), None))
        self.database.close()


@cache
def _template() -> SqliteDatabase:
    database = SqliteDatabase(":memory:")
    Store(database)
    database.write_alone("make", lambda tx: tx.connection.execute(TABLE))
    return database


def empty_database() -> SqliteDatabase:
    """A database with our tables: copied, since to make them takes longer than many a life."""
    database = SqliteDatabase(":memory:")
    _template()._writer.backup(database._writer)
    return database


LANES = ("default/order@", "default/helper@")


def _release(tx: Any, thread_id: str, now: int) -> None:
    run_id = tx.one("read_live", {"thread_id": thread_id})[0]
    tx.run("release_run", {"thread_id": thread_id, "run_id": run_id, "now": now})
