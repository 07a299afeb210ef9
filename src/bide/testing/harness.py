"""`Harness`: an application whose runs are driven in the test's own thread, one after the other, on a fake clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from bide.clock import Instant
from bide.errors import BideError
from bide.graph.compiled import CompiledGraph
from bide.graph.session import open_cache
from bide.runtime import Bide
from bide.runtime.driving import Driven
from bide.runtime.registered import Given, named_graphs
from bide.runtime.tending import Remind
from bide.runtime.views import Delivery, Run, Woken
from bide.store import Store
from bide.store.lanes import DEFAULT_QUEUE
from bide.testing.clock import FakeClock
from bide.testing.crashing import Crashed, MortalDatabase
from bide.testing.expectations import Expectations, ThreadLike, id_of
from bide.waits.durations import Duration, milliseconds

MOST_DRIVES = 10_000
"""After so many drives without coming to rest, something goes round in circles."""


class Harness(Expectations):
    """An application for tests. Nothing happens by itself: `run_until_idle` drives what is ready, `advance` moves the
    clock, `crash_at` lets the process die.

    `graphs` are compiled graphs; they are used as copies, so that one which has a store of its own leaves it alone.
    `store` is a URL, or a store that was opened with a `FakeClock`.
    """

    def __init__(
        self,
        graphs: Given,
        *,
        store: Store | str = ":memory:",
        clock: FakeClock | None = None,
        versions: Mapping[str, str] | None = None,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
        on_remind: Remind | None = None,
    ) -> None:
        self._owns_store = isinstance(store, str)
        opened = Store.open(store, clock=clock or FakeClock()) if isinstance(store, str) else store
        self.clock = _fake(opened, clock)
        self.queues = tuple(queues)
        self._given = graphs
        self._options: dict[str, Any] = {"versions": versions, "on_remind": on_remind}
        self._stores = [opened]
        self._database = MortalDatabase(opened.database)
        opened.database = self._database
        self.app = self._application(opened)

    @property
    def store(self) -> Store:
        """The store of the process that lives now."""
        return self._stores[-1]

    def _application(self, store: Store) -> Bide:
        return Bide(store, [_bound(graph, store) for _, graph in named_graphs(self._given)], **self._options)

    # ── What comes from outside ────────────────────────────────────────────────────────────────────────────────────

    def start(self, graph: str | CompiledGraph, input: Any = None, **options: Any) -> Run:
        """Start a run, as `app.start` does; it is driven by `run_until_idle`."""
        return self.app.start(graph, input, **options)

    def answer(self, thread: ThreadLike, value: Any = None, *, by: str | None = None, key: str | None = None) -> Woken:
        """Answer the only open question of a thread; `app.wake(wait_id, …)` chooses one of several."""
        return self.app.resume(id_of(thread), value, by=by, key=key)

    def deliver(self, name: str, payload: Any = None, **options: Any) -> Delivery:
        """Bring a fact, as `app.deliver` does: an event, or with `kind=` a webhook's call or a mail."""
        return self.app.deliver(name, payload, **options)

    def cancel(self, thread: ThreadLike, **options: Any) -> bool:
        """Cancel a thread, as `app.cancel` does."""
        return self.app.cancel(id_of(thread), **options)

    # ── Time and work ──────────────────────────────────────────────────────────────────────────────────────────────

    def run_until_idle(self, *, most: int = MOST_DRIVES) -> list[Driven]:
        """Drive everything that is ready at this instant, one run after the other, until nothing is left to do.

        What is due now counts as ready. Returns how each run was left, in order. A back-off between two attempts of a
        node takes the clock along.
        """
        driven: list[Driven] = []
        with self.clock.skipping():
            while True:
                tended = self.app.tend()
                ran = self.app.run_ready(most=1, queues=self.queues)
                self._database.check_alive()
                driven += ran
                if not ran and not tended.is_something:
                    return driven
                if len(driven) >= most:
                    raise AssertionError(self._restless(driven))

    def advance(self, duration: Duration) -> list[Driven]:
        """Let time pass: stop at each moment at which something is due, in order, and run until idle there."""
        until = self.clock.now() + milliseconds(duration, "advance")
        driven = self.run_until_idle()
        while (due := self._next_due()) is not None and due <= until:
            self.clock.move_to(due)
            driven += self.run_until_idle()
        self.clock.move_to(max(until, self.clock.now()))
        return driven + self.run_until_idle()

    def _next_due(self) -> Instant | None:
        """Return when there will be something to do that cannot be done now."""
        lanes = self.app.graphs.lanes(self.queues)
        moments = (self.store.next_due(), self.store.next_ready(lanes))
        return min((moment for moment in moments if moment is not None and moment > self.clock.now()), default=None)

    @staticmethod
    def _restless(driven: Sequence[Driven]) -> str:
        last = "\n".join(f"  {one.claim.graph} {one.claim.lease.thread_id}: {one.outcome}" for one in driven[-5:])
        return (
            f"After {len(driven)} drives something is still ready: a graph goes round in circles, or something new is "
            f"started for ever. The last ones were:\n{last}"
        )

    # ── Crashes ────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def crash_at(self, point: str, *, visit: int = 1) -> Iterator[None]:
        """Let the process die in the block, when it comes to a place in the store as "commit:written".

        Places are named after what is written (`start`, `claim`, `enter`, `journal`, `commit`, `wake`, `deliver`, …)
        and when: `:begun`, `:written` (and then lost), `:committed`, or after any query of it. `visit=3` means the
        third time. After the block another process has taken its place: the same database, and nothing of the memory
        of the first. A place that is never reached is an error that lists those which were.
        """
        database = self._database
        database.aim(point, visit)
        try:
            yield
        except Crashed:
            pass
        finally:
            database.spare()
            is_dead = database.is_dead
            if is_dead:
                self.restart()
        if not is_dead:
            raise AssertionError(f"The process did not come to {point!r}{_times(visit)}. {_known(database.passed)}")

    def crash(self) -> None:
        """Let the process die here and now; another takes its place."""
        self._database.die()
        self.restart()

    def restart(self, graphs: Given | None = None, *, versions: Mapping[str, str] | None = None) -> None:
        """Let another process take over, perhaps with newer code of the graphs."""
        before, inner = self.store, self._database.inner
        self._database.die()
        _bury(before, inner)
        self._given = self._given if graphs is None else graphs
        self._options["versions"] = versions or self._options["versions"]
        bodies = before.bodies
        successor = Store(
            inner,
            self.clock,
            encryption=bodies.seal,
            owner=bodies.owner,
            largest_value=bodies.largest,
            lease=before.keeper.seconds,
        )
        self._database = successor.database = MortalDatabase(inner)
        self._stores.append(successor)
        self.app = self._application(successor)

    # ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Let go of the store, if the harness has opened it."""
        first, *others = self._stores
        for store in others:
            _bury(store, self._database.inner)
        self._stores = [first]
        if self._owns_store:
            first.close()
        else:
            first.database = self._database.inner

    def __enter__(self) -> Harness:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _fake(store: Store, clock: FakeClock | None) -> FakeClock:
    """Return the fake clock of a store; one that follows the real time could not be moved."""
    found = store.clock
    if not isinstance(found, FakeClock) or (clock is not None and clock is not found):
        raise BideError(
            "A harness moves the clock of its store, and this one has another. Open it so: "
            "Store.open(url, clock=FakeClock()); or give the harness the URL."
        )
    return found


def _bound(graph: CompiledGraph, store: Store) -> CompiledGraph:
    """Return a graph as one process of this application has it."""
    bound = copy(graph)
    bound.checkpointer = store
    bound.cache = open_cache(graph.build.cache, store, graph.spec)
    return bound


def _bury(store: Store, database: Any) -> None:
    """Let everybody see that a process is gone: its heart has stopped, and its runs are free to be taken over."""
    worker_id = store.worker_id
    store.keeper.leave()
    if "doorbell" in store.__dict__:
        store.doorbell.close()
    database.write("leave", lambda tx: tx.run("delete_worker", {"worker_id": worker_id}))


def _times(visit: int) -> str:
    return "" if visit == 1 else f" {visit} times"


def _known(passed: Sequence[str]) -> str:
    if not passed:
        return "It wrote nothing: call run_until_idle(), or what shall be interrupted, inside the block."
    return f"It came to: {', '.join(dict.fromkeys(passed))}."
