"""`Bide`: the application object. Server, command line and triggers come through this one door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from bide.errors import GraphError
from bide.graph.compiled import CompiledGraph
from bide.runtime.driving import Driven, drive
from bide.runtime.following import Until, follow
from bide.runtime.inbox import Inbox
from bide.runtime.reading import run_of
from bide.runtime.registered import Given, Graphs
from bide.runtime.scheduling import Schedules
from bide.runtime.starts import StartOptions, read_start
from bide.runtime.taking_over import Answers, Said, answers_of, takes_over
from bide.runtime.tending import Remind, Tended, Tender
from bide.runtime.threads import check_known, list_threads, read_thread
from bide.runtime.views import Event, Run, Thread, moment
from bide.runtime.worker import CONCURRENCY, GRACE_SECONDS, POLL_SECONDS, Worker
from bide.store import Store
from bide.store.lanes import DEFAULT_QUEUE
from bide.types import RunStatus
from bide.waits.wake import ChildResult


class Bide(Inbox, Schedules):
    """An application: one store, and the graphs whose threads live in it.

    `store` is a `Store` or a URL. Runs are started here and driven by workers, in this process (`with app.worker():`)
    or in any other over the same database.
    """

    def __init__(
        self,
        store: Store | str,
        graphs: Given = (),
        *,
        versions: Mapping[str, str] | None = None,
        on_remind: Remind | None = None,
    ) -> None:
        self._owns_store = not isinstance(store, Store)
        self.store = Store.open(store) if not isinstance(store, Store) else store
        self.graphs = Graphs(self.store, graphs, versions or {})
        self.tender = Tender(self.store, self.start_due, on_remind)

    # ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, graph: str | CompiledGraph, input: Any = None, **options: Unpack[StartOptions]) -> Run:
        """Accept a run, durably, and return at once; a worker drives it.

        On a thread that waits, `Command(resume=…)` answers: the answer is recorded with the start, first wins, and the
        new run takes the place of the one that waited; with `if_waiting="take_over"`, any other input does that, too.
        The same `key` starts it once, however often this is called. `delay` or `at` put it off. On a thread with a live
        run, `if_busy` decides: `"reject"`, `"enqueue"` behind it, `"interrupt"` it and go on from where it stands, or
        `"rollback"` to where it began. Of runs with the same `limit=("name", 3)`, at most so many run at once.
        """
        known = self.graphs.get(graph if isinstance(graph, str) else graph.name)
        answers = self._answers(input, options)
        started = self.store.start(read_start(known, input, options, self.store.clock, answers))
        row = self.store.run(started.thread_id, started.run_id)
        if row is None:
            check_known(self.store, started.thread_id)
            # It ended long ago, and retention has let its row go.
            then: Any = moment(self.store.clock.now())
            return Run(started.run_id, started.thread_id, known.name, started.status, then, then, is_new=False)
        return replace(run_of(started.thread_id, row), is_new=started.is_new)

    def _answers(self, given: Any, options: StartOptions) -> Answers | None:
        """Return what a start answers on a thread that waits; None when it is not for such a thread."""
        thread_id, key = options.get("thread_id"), options.get("key")
        is_later = options.get("delay") is not None or options.get("at") is not None
        if thread_id is None or is_later or not takes_over(given, options):
            return None
        if self.store.thread(str(thread_id)) is None:
            return None
        if key is not None and self.store.knows_request(options.get("owner"), key):
            return ()  # it was answered when this was first asked for
        said, comments = Said(options.get("by"), "start", key), options.get("comments") or {}
        return answers_of(self.store, str(thread_id), given, said, comments)

    def retry(self, thread_id: str | int) -> Run:
        """Go on with a thread whose last run failed or was cancelled: only what did not finish runs again."""
        started = self.store.retry(str(thread_id))
        row = self.store.run(started.thread_id, started.run_id)
        assert row is not None, "it was started a moment ago"
        return run_of(started.thread_id, row)

    def release(self, thread_id: str | int) -> bool:
        """Put a thread back into service whose run is dead or blocked; return whether it was."""
        check_known(self.store, str(thread_id))
        return self.store.release(str(thread_id))

    def cancel(
        self,
        thread_id: str | int | None = None,
        *,
        run_id: str | None = None,
        wait_id: str | None = None,
        reason: str = "cancelled",
        by: str | None = None,
    ) -> bool:
        """Cancel a thread (its runs, its questions, its children), one run of it, or one wait; return whether that was
        still possible. The node behind a cancelled wait gets a `WaitCancelled`."""
        if wait_id is not None:
            return self.store.cancel_wait(wait_id, by=by, reason=reason).is_new
        if thread_id is None:
            raise GraphError("Say what to cancel: cancel(thread_id), cancel(thread_id, run_id=…) or cancel(wait_id=…).")
        check_known(self.store, str(thread_id))
        if run_id is not None:
            cancelled = self.store.cancel_run(str(thread_id), run_id, reason=reason, by=by)
        else:
            cancelled = bool(self.store.cancel_thread(str(thread_id), reason=reason, by=by))
        while self.store.close_children():
            pass
        return cancelled

    # ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, thread_id: str | int) -> Thread:
        """Return a thread as it stands: status, state, what it waits for."""
        return read_thread(self.store, self.graphs, str(thread_id))

    def list(
        self,
        *,
        status: RunStatus | str | None = None,
        graph: str | None = None,
        owner: str | None = None,
        parent: str | None = None,
        after: Thread | str | None = None,
        most: int = 100,
    ) -> Sequence[Thread]:
        """List threads, newest first: those with this status, graph, owner or parent; `after` is the last one seen."""
        return list_threads(self.store, status=status, graph=graph, owner=owner, parent=parent, after=after, most=most)

    def runs(self, thread_id: str | int, *, most: int = 100) -> Sequence[Run]:
        """List the runs of a thread, newest first."""
        check_known(self.store, str(thread_id))
        return [run_of(str(thread_id), row) for row in self.store.runs(str(thread_id), most=most)]

    def run(self, thread_id: str | int, run_id: str) -> Run | None:
        """Return a run of a thread, if there is one."""
        row = self.store.run(str(thread_id), run_id)
        return None if row is None else run_of(str(thread_id), row)

    def children(self, thread_id: str | int) -> Sequence[str]:
        """List the threads that a thread has spawned."""
        check_known(self.store, str(thread_id))
        return [child for child, _ in self.store.children(str(thread_id))]

    def output(self, of: str | int | ChildResult) -> Any:
        """Return the whole state that a thread has ended with: of a child's result, as it was when that was told."""
        thread_id = of.thread_id if isinstance(of, ChildResult) else str(of)
        graph = self.graphs.get(self.get(thread_id).graph).graph
        place = {"thread_id": thread_id}
        if isinstance(of, ChildResult) and of.checkpoint_id is not None:
            place["checkpoint_id"] = of.checkpoint_id
        return graph.get_state({"configurable": place}).values

    def follow(self, thread_id: str | int, *, after: str | None = None, until: Until = "end") -> Iterator[Event]:
        """Yield what happens in a thread, from any process, while it happens; `after` is the id of the last event seen.

        It ends when the thread does (`until="end"`), also when it waits (`"rest"`), or never (None).
        """
        return follow(self.store, self.graphs, str(thread_id), after=after, until=until)

    # ── Working ────────────────────────────────────────────────────────────────────────────────────────────────────

    def worker(
        self,
        *,
        concurrency: int = CONCURRENCY,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
        poll: float = POLL_SECONDS,
        grace: float = GRACE_SECONDS,
    ) -> Worker:
        """Return a worker for all graphs of this application: `.run()` it, or use it in a `with` block."""
        return Worker(
            self.store, self.graphs, self.tender, concurrency=concurrency, queues=queues, poll=poll, grace=grace
        )

    def tend(self) -> Tended:
        """Do once what a worker does beside driving: see to what is due, lost, or broken off."""
        return self.tender.tend()

    def run_ready(self, *, most: int = 1, queues: Sequence[str] = (DEFAULT_QUEUE,)) -> Sequence[Driven]:
        """Claim ready runs and drive them here and now, one after the other; return how each was left."""
        claims = self.store.claim(self.graphs.lanes(queues), most)
        try:
            return [drive(self.store, self.graphs, claim) for claim in claims]
        except BaseException:
            for claim in claims:
                self.store.let_go(claim.lease)  # whoever stops here drives none of the others either
            raise

    def close(self) -> None:
        """Let go of the store, if this application has opened it."""
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Bide:
        """Use the application in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
