"""A thread's whole life in a simulated world: one seed, one story.

Workers race for the thread, die and stall; the store refuses writes or loses replies; people answer some questions,
answer wrongly, and edit. All of it happens in one thread of one process, in an order that the seed alone decides. In
the end the thread must be where it would have come to without any of this.
"""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from typing import Any

from bide import Command
from bide.engine.edit import Change, edit
from bide.engine.flow import advance
from bide.engine.opening import Request
from bide.engine.values import PAUSED, RESULT, SAVED, TASK, VALUES, Loaded
from bide.errors import ConflictError, GraphDrained, GraphRecursionError, ResumeError, StoreError
from bide.types import RunControl, RunStatus
from tests.engine.notebook import Notebook, Run
from tests.simulation.calls import LEASE, Call, Clock, Turn, Wish, Worker
from tests.simulation.graphs import Dice, a_graph
from tests.simulation.promises import Promises
from tests.simulation.strands import Strand
from tests.simulation.world import FIRST_INPUT, World, answer_to, build, calm_end

MOST_MOVES = 10_000
EVERYTHING = frozenset({VALUES, PAUSED, TASK, RESULT, SAVED})
ORDINARY = (ConnectionError, ConflictError, GraphDrained, GraphRecursionError, ResumeError, StoreError)
"""What a caller may well be told in such a world."""
REFUSALS = (ConflictError, ResumeError, StoreError)
NO_ID = "0" * 32


class Broken(AssertionError):
    """A promise does not hold: the message tells the seed, and what led there."""


class Simulation:
    """One seed's world."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.plan = a_graph(Dice(self.random))
        self.trouble = self.random.choice([0, 2, 6, 12])
        """How much may still go wrong."""
        self.clock = Clock()
        self.notebook = Notebook()
        self.promises = Promises(self.notebook)
        self.acting: Call | None = None
        self.world = World(is_calm=False, is_stale=lambda: self.acting is None or self.acting.is_stale)
        self.spec = build(self.plan, self.world, is_async=True).spec
        self.workers = [Worker(name, self.clock) for name in "AB"]
        self.calls: list[Call] = []
        self.calls_made = 0
        self.edits: list[str] = []
        self.trace: list[str] = []

    def run(self) -> str:
        """Live through it; return the digest of all that happened."""
        try:
            while self.calls or not self.is_finished:
                self.check(len(self.trace) < MOST_MOVES, "the thread does not come to its end")
                self._move()
            self._compare_with_calm()
        except Exception as problem:
            raise Broken(self._report(problem)) from problem
        finally:
            for call in self.calls:
                call.vanish()
        return blake2b("\n".join(self.trace).encode()).hexdigest()

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do. A run that was cancelled after the last answer stays cancelled."""
        book = self.notebook
        return bool(book.places) and book.live is None and not book.checkpoints[book.head].tasks

    def _compare_with_calm(self) -> None:
        log, notes, effects = calm_end(self.plan)
        book = self.notebook
        values = book.checkpoints[book.head].values
        self.check(values["log"] == log, f"the log differs:\n  here: {values['log']}\n  calm: {log}")
        found, expected = sorted(values["notes"]), sorted([*notes, *self.edits])
        self.check(found == expected, f"the notes differ:\n  here: {found}\n  calm: {expected}")
        made = self.world.effects
        self.check(made == effects, f"the effects differ:\n  here: {made}\n  calm: {effects}")
        left = (*book.results, *book.errors, *book.steps, *(book.waits if book.status is RunStatus.DONE else ()))
        self.check(not left, f"something is left of finished steps: {left}")

    def check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Broken(otherwise)

    def _report(self, problem: Exception) -> str:
        last = "\n  ".join(self.trace[-40:])
        told = str(problem) if isinstance(problem, Broken) else f"{type(problem).__name__}: {problem}"
        return (
            f"seed {self.seed}: {told}\n\nThe last of {len(self.trace)} moves:\n  {last}\n\n"
            f"Replay it: python3 dev.py test tests/simulation --seed={self.seed}"
        )

    # ── Moves ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _move(self) -> None:
        if self.trouble and self.random.random() < 0.05:
            self.trouble -= 1
            self.random.choice(TROUBLES)(self)
            return
        strands = [(call, strand) for call in self.calls for strand in call.strands]
        ready = [pair for pair in strands if pair[1].is_ready]
        if ready:
            self._go_on(*self.random.choice(ready))
        elif strands:
            self._pass_time(1000)
        elif not self.is_finished:
            self.call()

    def _go_on(self, call: Call, strand: Strand) -> None:
        self.trace.append(f"{call.name} {strand.name}")
        if not strand.has_begun and not call.is_stale:
            wrong = self.promises.broken_by_start(strand.name)
            self.check(wrong is None, wrong or "")
        self.acting = call
        strand.go_on()
        self.acting = None
        self.check(not self.world.offences, "; ".join(self.world.offences))
        if strand.is_over:
            call.strands.remove(strand)
            if strand is call.main:
                self._ended(call, strand.error)
            elif strand.error is not None:
                raise strand.error
            elif strand.result:
                call.finished.append(strand.name)
        if not call.strands:
            self._let_go(call)

    def _ended(self, call: Call, error: BaseException | None) -> None:
        """See how a call has ended."""
        self.trace.append(f"{call.name} {'returns' if error is None else type(error).__name__}")
        if isinstance(error, Turn):
            return
        if error is not None and not isinstance(error, ORDINARY):
            raise error
        if call.wish.is_wrong:
            self.check(isinstance(error, REFUSALS), "a wrong call was not refused")
            self.check(not call.writes, "a wrong call has written something")
        if error is not None:
            call.leave(error)
        if (error is None or isinstance(error, ConnectionError)) and not call.has_seen_faults:
            self.promises.finished.update(call.finished)

    def _let_go(self, call: Call) -> None:
        self.calls.remove(call)
        if call.reason is not None:
            try:
                call.pen.abandon(call.reason)
            except StoreError:
                self.trace.append(f"{call.name} could not let go")

    def _pass_time(self, milliseconds: int, stalled: Worker | None = None) -> None:
        self.clock.instant += milliseconds
        for worker in self.workers:
            if worker is not stalled:
                worker.beat()

    # ── What decides over calls ────────────────────────────────────────────────────────────────────────────────────

    def fault(self) -> str | None:
        if not self.trouble or self.random.random() >= 0.03:
            return None
        self.trouble -= 1
        return self.random.choice(["refused", "lost"])

    def wrote(self, call: Call, name: str) -> None:
        self.trace.append(f"{call.name} {name} → {self.notebook.head} {self.notebook.status}")
        if name.startswith("Edit") and "refused" not in name:
            self.edits.append(call.wish.note or "")
        broken = next(self.promises.broken(), None)
        self.check(broken is None, broken or "")

    def is_left(self, run: Run) -> bool:
        worker = next((worker for worker in self.workers if worker.name == run.worker), None)
        if worker is None or worker.is_gone:
            return True
        return not any(call.lease is not None and call.lease.run_id == run.id for call in self.calls)

    # ── What people do ─────────────────────────────────────────────────────────────────────────────────────────────

    def call(self) -> None:
        """Say what the thread needs: its input, some answers, or just to go on."""
        if not self.notebook.places:
            self._invoke(FIRST_INPUT, lambda loaded: loaded.checkpoint is None)
            return
        asks = [wait.question for wait in self.notebook.open_waits if not wait.question.is_static]
        some = self.random.sample(asks, self.random.randint(1, len(asks))) if asks and self._chance(0.9) else []
        self._invoke(Command(resume={ask.id: answer_to(ask.value) for ask in some}) if some else None)

    def call_wrongly(self) -> None:
        """Say something that must be refused."""
        book = self.notebook
        settled = [id_ for id_ in {**book.past, **book.waits} if id_ not in {w.question.id for w in book.open_waits}]
        typed = [wait.question.id for wait in book.open_waits if wait.question.schema is not None]
        wrong: list[tuple[Any, Any]] = [
            (Command(resume={NO_ID: "?"}), _has_begun),
            (Command(resume="?"), lambda loaded: _has_begun(loaded) and not loaded.open_waits),
            (Command(resume="?"), lambda loaded: len([w for w in loaded.open_waits if not w.question.is_static]) > 1),
            (FIRST_INPUT, lambda loaded: bool(loaded.open_waits)),
        ]
        wrong += [(Command(resume={self.random.choice(settled): "?"}), _has_begun)] if settled else []
        wrong += [(Command(resume={self.random.choice(typed): 5}), _has_begun)] if typed else []
        given, guard = self.random.choice(wrong)
        self._invoke(given, guard, is_wrong=True)

    def edit(self) -> None:
        """Add a note from outside."""
        note = f"edit by call{self.calls_made + 1}"

        def flow() -> Any:
            return edit(self.spec, [Change({"notes": [note]})], None)

        self._begin(Wish(Request(None), flow, _has_begun, note=note))

    def _invoke(self, given: Any, guard: Any = lambda loaded: True, *, is_wrong: bool = False) -> None:
        request = Request(
            given,
            before=frozenset(self.plan.before),
            after=frozenset(self.plan.after),
            wants=EVERYTHING if self._chance(0.3) else frozenset(),
            recursion_limit=self.random.randint(1, 3) if self._chance(0.1) else 1000,
            control=RunControl(),
        )
        self._begin(Wish(request, lambda: advance(self.spec, request), guard, is_wrong))

    def _begin(self, wish: Wish) -> None:
        self.calls_made += 1
        call = Call(self, f"call{self.calls_made}", self.random.choice(self.workers), self.spec, wish)
        self.calls.append(call)
        self.trace.append(f"{call.name} on {call.worker}: {wish.note or wish.request.input}")

    def _chance(self, part: float) -> bool:
        return self.random.random() < part

    # ── What goes wrong ────────────────────────────────────────────────────────────────────────────────────────────

    def race(self) -> None:
        """Call while others call."""
        if len(self.calls) < 3:
            self.call()

    def crash(self) -> None:
        """Let a process die with all that it has in memory; another is started in its place."""
        worker = self.random.choice(self.workers)
        worker.is_dead = True
        self.trace.append(f"{worker.name} dies")
        for call in [call for call in self.calls if call.worker == worker.name]:
            call.vanish()
            self.calls.remove(call)
        self.workers[self.workers.index(worker)] = Worker(f"{worker.name}'", self.clock)

    def stall(self) -> None:
        """Let a process stand still until its lease is over; then it goes on as if nothing had happened."""
        worker = self.random.choice(self.workers)
        self.trace.append(f"{worker.name} stalls")
        self._pass_time(2 * LEASE, worker)
        self.race()

    def leave(self) -> None:
        """Let a caller go away in the middle."""
        present = [call for call in self.calls if call.main in call.strands]
        if present:
            call = self.random.choice(present)
            self.trace.append(f"{call.name} is left")
            call.main.vanish()
            call.strands.remove(call.main)
            call.leave(GeneratorExit())
            if not call.strands:
                self._let_go(call)

    def drain(self) -> None:
        """Ask a run to stop before its next step."""
        if self.calls:
            call = self.random.choice(self.calls)
            self.trace.append(f"{call.name} is drained")
            if call.wish.request.control is not None:
                call.wish.request.control.request_drain()


def _has_begun(loaded: Loaded) -> bool:
    return loaded.checkpoint is not None


TROUBLES = (
    Simulation.race,
    Simulation.crash,
    Simulation.stall,
    Simulation.leave,
    Simulation.drain,
    Simulation.edit,
    Simulation.call_wrongly,
)
