"""Telling a story in one process, from its beginning; whoever tells it again after a death changes nothing by that."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

from bide import Bide, CompiledGraph
from bide.types import RunStatus
from tests.fleet.place import Place

NOON = 1_800_000_000_000
HOUR = 3_600_000


class KeptClock:
    """A clock that stands until a story moves it, and which the next who tells the story finds as it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._now = int(path.read_text(encoding="utf-8")) if path.exists() else NOON

    def now(self) -> int:
        return self._now

    def sleep(self, seconds: float, stopped: Event) -> None:
        raise AssertionError("nobody sleeps here")

    async def asleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")

    def reach(self, instant: int) -> None:
        """Go on to an instant, unless it has come already."""
        self._now = max(self._now, instant)
        self._path.write_text(str(self._now), encoding="utf-8")


class Teller:
    """One application and its worker, driven step by step."""

    def __init__(self, app: Bide, clock: KeptClock, place: Place) -> None:
        self.app = app
        self.clock = clock
        self.place = place

    def settle(self) -> None:
        """Tend and drive until there is nothing left to do, whatever has happened before."""
        for _ in range(200):
            tended = self.app.tend()
            driven = self.app.run_ready(most=4)
            if not driven and not tended.is_something:
                later = self.app.store.next_ready(self.app.graphs.lanes())
                if later is None:
                    return
                # A run that was lost before is put off for a while.
                self.clock.reach(later)
        raise AssertionError("it never comes to rest")

    def start(self, graph: str, thread_id: str, given: Any, **options: Any) -> None:
        """Start a run, once."""
        options.setdefault("key", f"start {thread_id}")
        self.app.start(graph, given, thread_id=thread_id, **options)

    def answer(self, thread_id: str, value: Any) -> None:
        """Answer whatever a thread asks of people now."""
        for wait in self.app.waits(thread_id=thread_id):
            if wait.kind == "approval":
                self.app.wake(wait.id, value, by="clerk", key=f"answer {wait.id}")

    def lose_a_worker(self) -> None:
        """Let another worker claim what is ready, and leave without a word about it."""
        with self.place.open(clock=self.clock) as other:
            other.claim(self.app.graphs.lanes(), 1)

    def release_the_dead(self) -> None:
        """Put whatever is out of service back into it."""
        for thread in self.app.list(status=RunStatus.DEAD):
            self.app.release(thread.thread_id)

    def pass_to(self, hours: float) -> None:
        """Let it be so many hours after the beginning."""
        self.clock.reach(NOON + int(hours * HOUR))


def teller(place: Place, graphs: list[CompiledGraph]) -> Teller:
    """Open the application of a story."""
    clock = KeptClock(Path(place.folder) / "clock.txt")
    return Teller(Bide(place.open(clock=clock), graphs), clock, place)
