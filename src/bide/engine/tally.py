"""How many tasks still run in threads: a thread cannot be stopped, so what it works on must not be let go before."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class Tally:
    """Counts tasks in threads, and calls back when the last one has ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._then: Callable[[], None] | None = None

    def begin(self, count: int = 1) -> None:
        """Count tasks in."""
        with self._lock:
            self._running += count

    def share(self) -> Callable[[], None]:
        """Count one task in; return what counts it out, once, however often it is called."""
        self.begin()
        left = [self.end]

        def end() -> None:
            try:
                left.pop()()
            except IndexError:
                return  # counted out before: nobody waits for it any more

        return end

    def end(self) -> None:
        """Count one out; the last one does what was left to do."""
        with self._lock:
            self._running -= 1
            then = self._then if not self._running else None
        if then is not None:
            then()

    def when_idle(self, then: Callable[[], None]) -> None:
        """Do this when nothing runs any more: now, or at the end of the last task."""
        with self._lock:
            if self._running:
                self._then = then
                return
        then()
