"""Who drives the simulated thread: workers with leases, and the calls that they make."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

from bide.engine.opening import Request
from bide.engine.run_context import RunContext, Surroundings
from bide.engine.spec import GraphSpec
from bide.engine.values import Load, Loaded
from bide.errors import StoreUnavailableError
from tests.engine.notebook import Grip, Notebook, Pen, Run
from tests.simulation.strands import Hands, Moves, Strand, drive

T = TypeVar("T")

LEASE = 30_000
"""Milliseconds for which a worker counts as alive after it was last heard of."""


class Clock:
    """Time that passes when the simulation says so."""

    def __init__(self) -> None:
        self.instant = 1_000_000

    def now(self) -> int:
        return self.instant


class Worker:
    """One life of one process."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.is_dead = False
        self.beat()

    def beat(self) -> None:
        self.lease_until = self.clock.now() + LEASE

    @property
    def is_gone(self) -> bool:
        return self.is_dead or self.lease_until < self.clock.now()


class Turn(Exception):
    """The caller found the thread otherwise than it thought, and goes away without a word."""


class Wish(NamedTuple):
    """What somebody wants of the thread."""

    request: Request
    flow: Callable[[], Generator[Any, Any, Any]]
    guard: Callable[[Loaded], bool] = lambda loaded: True
    """Whether the thread is as the caller thinks."""
    is_wrong: bool = False
    """Whether it must be refused, with nothing written."""
    note: str | None = None
    """What an edit adds."""


class Fate(Protocol):
    """What decides over a call."""

    notebook: Notebook
    random: Random
    clock: Clock

    def fault(self) -> str | None:
        """Say what goes wrong with the next write: it is `refused`, its reply is `lost`, or nothing does."""
        ...

    def wrote(self, call: Call, name: str) -> None:
        """Hear of a write."""
        ...

    def is_left(self, run: Run) -> bool:
        """Say whether nobody drives a run that is marked as running."""
        ...


class Call(Grip):
    """One call on the thread, by one worker: its strands, and its lease."""

    def __init__(self, fate: Fate, name: str, worker: Worker, spec: GraphSpec, wish: Wish) -> None:
        super().__init__(fate.notebook, worker.name)
        self.fate = fate
        self.name = name
        self.wish = wish
        self.writes = 0
        self.has_seen_faults = False
        self.finished: list[str] = []
        """The tasks that have come to their end in this call."""
        self.reason: BaseException | None = None
        """Why its caller has left: tasks in the middle end by themselves, and then the run is let go."""
        self.pen = _Quill(self, spec)
        around = Surroundings(config={"configurable": {}}, clock=fate.clock)
        context = RunContext(spec, wish.request, around, thread_id="thread", journal=self.pen)
        self.hands = Hands(spec, context, self._begin, fate.random)
        self.strands: list[Strand] = []
        self.main = self._begin("call", drive(wish.flow(), self.hands))

    def _begin(self, name: str, moves: Moves) -> Strand:
        strand = Strand(name, moves)
        self.strands.append(strand)
        return strand

    def leave(self, reason: BaseException) -> None:
        """The caller is gone: no further task begins."""
        self.reason = reason
        self.hands.close()

    def vanish(self) -> None:
        """Be gone, as if the power had failed."""
        for strand in self.strands:
            strand.vanish()
        self.strands = []

    def is_orphan(self, run: Run) -> bool:
        return self.fate.is_left(run)

    @property
    def is_stale(self) -> bool:
        """Whether the run of this call is another's by now, or over."""
        return self.lease is None or self.notebook.runs[self.lease.run_id].epoch != self.lease.epoch

    def transaction(self, name: str, write: Callable[[], T]) -> T:
        """Write; sometimes the store refuses, and sometimes only its reply is lost."""
        fault = self.fate.fault()
        self.has_seen_faults = self.has_seen_faults or fault is not None
        if fault == "refused":
            self.fate.wrote(self, f"{name} (refused)")
            raise StoreUnavailableError("the store is away")
        value = write()
        self.writes += 1
        self.fate.wrote(self, name if fault is None else f"{name} (reply lost)")
        if fault == "lost":
            raise StoreUnavailableError("the store went away")
        return value


class _Quill(Pen):
    """A pen whose owner may turn back after reading."""

    def _load(self, load: Load) -> Loaded:
        loaded = super()._load(load)
        if isinstance(self.grip, Call) and not self.grip.wish.guard(loaded):
            raise Turn
        return loaded
