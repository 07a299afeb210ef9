"""Starting runs that a worker will claim: accepted means that it is in the database."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from bide.clock import uuid7
from bide.errors import (
    AlreadyAnsweredError,
    ConflictError,
    GraphError,
    IdempotencyError,
    NotWaitingError,
    ThreadBusyError,
    UnknownInterruptError,
    UnknownThreadError,
)
from bide.store.answering import answer_one
from bide.store.database import Row, Transaction
from bide.store.ending import end_thread
from bide.store.facts import event_of, head_of, read_run_row
from bide.store.lanes import lane_of, read_lane
from bide.store.needed import PLAIN
from bide.store.queue_rows import Answering, RunView, Start, Started
from bide.store.rows import JournalRow, Lease, Report, checkpoint_id
from bide.store.seal import place_of
from bide.store.settling import Settling
from bide.store.writes import Writing
from bide.types import RunStatus

if TYPE_CHECKING:
    from bide.store.store import Store

BASE = "@base"
"""Among the options of a run: the checkpoint that it begins at, when that is not the head."""


class Starting:
    """The part of a `Store` that takes in what is to be run, and ends what is not to run any more."""

    @property
    def _store(self) -> Store:
        return cast("Store", self)

    def start(self, start: Start) -> Started:
        """Accept a run. When this returns, it is durable, and a worker will claim it, now or when it is due."""
        store = self._store
        ended: list[str] = []

        def accept(tx: Transaction) -> Started:
            writing = Writing(tx, store.bodies, store.clock.now())
            starting = Accepting(writing, start)
            started = starting.accept()
            ended[:] = starting.ended
            return started

        try:
            started = store.database.write("start", accept)
        except Raced:
            started = store.database.write("start", accept)
        except AnsweredBefore as late:
            store.tell_again(late.wait_id, late.answering)  # which raises, with who was first
            raise
        store.after_end(ended)
        if started.is_new:
            store.ring()
        return started

    def request_of(self, owner: str, key: str) -> str | None:
        """Return the thread that somebody has asked for under a key of their own, if they have."""
        row = self._store.database.read(lambda tx: tx.one("read_request", {"owner": owner, "key": key}))
        return None if row is None else str(row[1])

    def retry(self, thread_id: str) -> Started:
        """Start a run like the last one of a thread, which failed or was cancelled: it goes on where that one stood."""
        store = self._store

        def read(tx: Transaction) -> Start | None:
            row = tx.one("read_start", {"thread_id": thread_id})
            if row is None:
                return None
            run_id, graph, lane, owner, rank, limit_key, limit_most, given, options, status = row
            if status == RunStatus.DONE.value:
                raise NotWaitingError(
                    f"Thread {thread_id!r} is done: there is nothing to try again. Nothing was started."
                )
            opened = (
                None if body is None else store.bodies.open(tx, start_place(thread_id, run_id, what), body)
                for what, body in (("input", given), ("options", options))
            )
            queue, _, version = read_lane(lane)
            limit = None if limit_key is None else (limit_key, limit_most)
            said = {"queue": queue, "version": version, "priority": -rank, "limit": limit, "owner": owner}
            return Start(graph, next(opened), thread_id, next(opened), **said)

        start = store.database.read(read)
        if start is None:
            raise UnknownThreadError(
                f"Thread {thread_id!r} has no run that could be tried again in {store.database.path!r}. Check the id, "
                f"and which database is open."
            )
        return self.start(start)

    def spawn(self, lease: Lease, line: JournalRow, start: Start) -> None:
        """Start a child thread, and keep that it was in the journal of the task that did: both, or neither."""
        store = self._store

        def save(tx: Transaction) -> None:
            writing = Writing(tx, store.bodies, store.clock.now())
            Accepting(writing, start).spawn()
            writing.hold_lease(lease)
            writing.write_journal(lease, line)

        store.database.write("spawn", save)
        store.ring()

    # ── Ending ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def cancel_thread(self, thread_id: str, *, reason: str = "cancelled", by: str | None = None) -> tuple[str, ...]:
        """Cancel every live and queued run of a thread, and its open questions; return the runs.

        Whoever drives it writes nothing any more. Its children follow, as they were told when they were spawned.
        """
        return self._cancel(thread_id, None, reason, by)

    def cancel_run(self, thread_id: str, run_id: str, *, reason: str = "cancelled", by: str | None = None) -> bool:
        """Cancel one run; return whether it was still alive."""
        return bool(self._cancel(thread_id, run_id, reason, by))

    def _cancel(self, thread_id: str, run_id: str | None, reason: str, by: str | None) -> tuple[str, ...]:
        store = self._store
        ended: list[str] = []

        def cancel(tx: Transaction) -> tuple[str, ...]:
            writing = Writing(tx, store.bodies, store.clock.now())
            tx.send("hold_thread", {"thread_id": thread_id})
            runs = [row for row in tx.all("list_runs", {"thread_id": thread_id, "most": 10_000}) if _is_alive(row)]
            chosen = [row for row in runs if run_id is None or row[0] == run_id]
            ended.clear()
            for row in chosen:  # the newest first: what is queued must not come forward when the live one ends
                ended.extend(cancel_one(writing, thread_id, row[0], RunStatus(row[1]), Cancelling(reason, by)))
            return tuple(row[0] for row in chosen)

        cancelled = store.database.write("cancel", cancel)
        store.after_end(ended)
        return cancelled

    def close_children(self, most: int = 100) -> int:
        """Cancel threads whose parent was closed; return how many there were."""
        store = self._store
        rows = store.database.read(lambda tx: tx.all("list_closing", {"most": most}))
        for (thread_id,) in rows:
            self.cancel_thread(thread_id, reason="its parent was closed")
            store.database.write("child_closed", partial(_is_seen_to, thread_id))
        return len(rows)

    def after_end(self, ended: list[str]) -> None:
        """Match what tells parents of an end, now that it is committed. If this is not reached, any worker does it
        later."""
        for delivery_id in ended:
            self._store.match_delivery(delivery_id)

    # ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def knows_request(self, owner: str | None, key: str) -> bool:
        """Whether something was started under this key before."""
        params = {"owner": self._store.bodies.owner if owner is None else owner, "key": key}
        return self._store.database.read(lambda tx: tx.one("read_request", params)) is not None

    def run(self, thread_id: str, run_id: str) -> RunView | None:
        """Read a run."""
        row = self._store.database.read(lambda tx: tx.one("read_run", {"thread_id": thread_id, "run_id": run_id}))
        return None if row is None else read_run_row(row)

    def runs(self, thread_id: str, *, most: int = 100) -> list[RunView]:
        """List the runs of a thread, newest first."""
        params = {"thread_id": thread_id, "most": most}
        return [read_run_row(row) for row in self._store.database.read(lambda tx: tx.all("list_runs", params))]

    def children(self, thread_id: str) -> list[tuple[str, str]]:
        """List the threads that a thread has spawned: id and graph."""
        rows = self._store.database.read(lambda tx: tx.all("list_children", {"thread_id": thread_id}))
        return [(row[0], row[1]) for row in rows]


class Cancelling(NamedTuple):
    """Why a run is cancelled, and by whom."""

    reason: str
    by: str | None = None
    is_replaced: bool = False
    """Whether another run takes its place, before those that were queued behind it."""


def cancel_one(writing: Writing, thread_id: str, run_id: str, status: RunStatus, cancelling: Cancelling) -> list[str]:
    """Cancel a run of a thread that is held; return the deliveries to match when it is committed."""
    tx, now = writing.tx, writing.now
    reason = cancelling.reason
    error = writing.bodies.readable(f"cancelled: {reason}")
    params = {"thread_id": thread_id, "run_id": run_id, "error": error, "now": now}
    tx.send("cancel_run", params)
    if status is not RunStatus.QUEUED:
        tx.send("cancel_waits", {"thread_id": thread_id, "prefix": "", "length": 0})
    event = event_of("run.cancelled", reason=reason, by=cancelling.by)
    writing.log_events(thread_id, run_id, head_of(tx, thread_id), [event])
    if status is RunStatus.QUEUED:
        return []
    report = Report(RunStatus.CANCELLED, error=reason)
    return end_thread(writing, thread_id, run_id, report, is_replaced=cancelling.is_replaced)


class Accepting:
    """One transaction that takes in a run."""

    def __init__(self, writing: Writing, start: Start) -> None:
        self.writing = writing
        self.tx = writing.tx
        self.start = start
        self.now = writing.now
        self.owner = writing.bodies.owner if start.owner is None else start.owner
        self.thread_id = start.thread_id or uuid7(self.now)
        self.run_id = uuid7(self.now)
        self.ended: list[str] = []
        self.is_new = True
        """Whether the thread begins with it."""

    def accept(self) -> Started:
        """Take it in, unless it was before."""
        known = self._known()
        if known is not None:
            return known
        thread = self.tx.one("hold_thread", {"thread_id": self.thread_id})
        is_thread = thread is not None
        self.is_new = not is_thread
        if not is_thread:
            self._check_input()
            self._insert_thread()
        is_later = self.start.due_at is not None and self.start.due_at > self.now
        # One that is due later finds out then whether the thread is free.
        is_asking = is_thread and not is_later
        live = self.tx.one("read_live", {"thread_id": self.thread_id}) if is_asking else None
        if thread is not None and thread[1] == "":
            # It was made before anybody knew what for.
            self.tx.send("name_graph", {"thread_id": self.thread_id, "graph": self.start.graph})
        elif thread is not None and thread[1] != self.start.graph:
            raise GraphError(
                f"Thread {self.thread_id!r} is one of graph {thread[1]!r}, and {self.start.graph!r} was to be started "
                f"on it. Nothing was started. Use another thread_id."
            )
        self._answer()
        if live is not None and self.start.takes_over and live[1] == RunStatus.WAITING.value:
            self._take_over(live[0])
            live = None
        if thread is not None and live is not None:
            self._make_room(thread[0], live)
        is_behind = live is not None and self.start.if_busy == "enqueue"
        status = RunStatus.QUEUED if is_later or is_behind else RunStatus.READY
        self._insert_run(status)
        return Started(self.thread_id, self.run_id, status, True)

    def spawn(self) -> None:
        """Take in the run of a child thread, once."""
        start = self.start
        params = {"thread_id": self.thread_id, "uid": new_uid(self.now), "owner": self.owner, "graph": start.graph}
        made = {**params, "now": self.now, "parent": start.parent, "on_close": start.on_close}
        self.tx.expect("spawn_thread", made, lambda _: _exists(self.thread_id))
        self._insert_run(RunStatus.READY)

    def _known(self) -> Started | None:
        """Find what was started under the same key."""
        start = self.start
        if start.key is None:
            return None
        row = self.tx.one("read_request", {"owner": self.owner, "key": start.key})
        if row is None:
            params = {"owner": self.owner, "key": start.key, "digest": start.digest, "now": self.now}
            made = {**params, "thread_id": self.thread_id, "run_id": self.run_id}
            self.tx.expect("insert_request", made, lambda _: Raced())
            return None
        if row[0] != start.digest:
            raise IdempotencyError(
                f"The key {start.key!r} was used before, for another start (thread {row[1]!r}). Nothing was started. "
                f"Use a key for one thing alone."
            )
        found = self.tx.one("read_run", {"thread_id": row[1], "run_id": row[2]})
        return Started(row[1], row[2], RunStatus(found[1]) if found else RunStatus.DONE, False)

    def _check_input(self) -> None:
        if self.start.input is None:
            raise UnknownThreadError(
                f"There is no thread {self.thread_id!r} to go on with, and no input to begin one with. Nothing was "
                f"started. Check the thread_id, or give an input."
            )

    def _insert_thread(self) -> None:
        params = {"thread_id": self.thread_id, "uid": new_uid(self.now), "owner": self.owner}
        made = {**params, "graph": self.start.graph, "now": self.now}
        self.tx.expect("insert_thread", made, lambda _: Raced())

    def _answer(self) -> None:
        """Record what comes with it, before anything else is done: if somebody else was first, nothing is."""
        settling = Settling(self.writing)
        held = settling.read([(wait_id, self.thread_id) for wait_id, _ in self.start.answers])
        for wait_id, answering in self.start.answers:
            wait = held.get(wait_id)
            if wait is None or wait.thread_id != self.thread_id:
                raise UnknownInterruptError(
                    f"Thread {self.thread_id!r} has no wait {wait_id!r}. Nothing was started.", interrupt_ids=(wait_id,)
                )
            if not answer_one(settling, wait, answering).is_new:
                raise AnsweredBefore(wait_id, answering)

    def _take_over(self, run_id: str) -> None:
        """Go on in place of a run that waits: it ends, nobody is told, and what is still open is the new one's."""
        replaced = {"thread_id": self.thread_id, "run_id": run_id, "now": self.now}
        self.tx.send("hand_over", replaced)
        self.tx.send("hand_over_waits", {"thread_id": self.thread_id, "run_id": run_id, "new": self.run_id})
        event = event_of("run.continued", by=self.run_id)
        self.writing.log_events(self.thread_id, run_id, head_of(self.tx, self.thread_id), [event])

    def _make_room(self, uid: str, live: Row) -> None:
        """Do with the live run what was asked for."""
        run_id, status = live[0], RunStatus(live[1])
        if self.start.if_busy == "enqueue":
            return
        if self.start.if_busy == "reject":
            raise ThreadBusyError(
                f"Thread {self.thread_id!r} has a live run ({run_id}), which is {status}. Nothing was started. Wait "
                f"for its end, answer what it asks, or say what shall happen: if_busy='enqueue', for one."
            )
        ending = Cancelling(f"a new run took its place ({self.start.if_busy})", is_replaced=True)
        self.ended += cancel_one(self.writing, self.thread_id, run_id, status, ending)
        promised = self._promised_base(run_id)
        if promised is not None:
            # That one was to roll another back, and has not begun: whoever takes its place does it.
            self._begin_at(promised)
        elif self.start.if_busy == "rollback":
            self._begin_at(checkpoint_id(uid, self._base_of(run_id)))

    def _base_of(self, run_id: str) -> int:
        key = {"thread_id": self.thread_id, "run_id": run_id}
        # One that has written nothing yet stands where the thread does.
        row = self.tx.one("base_of_run", key) or self.tx.one("read_head", {**key, "ns": ""})
        return int((row and row[0]) or 0)

    def _promised_base(self, run_id: str) -> str | None:
        """Return the checkpoint at which a run was to begin that has not begun yet."""
        row = self.tx.one("options_of_unbegun", {"thread_id": self.thread_id, "run_id": run_id})
        if row is None:
            return None
        body = self.writing.bodies.open(self.tx, start_place(self.thread_id, run_id, "options"), row[0])
        options: Any = PLAIN.decode(body, "options")
        return cast("str | None", options.get(BASE))

    def _begin_at(self, base: str) -> None:
        """Let the run begin at an older checkpoint."""
        options: Any = {} if self.start.options is None else PLAIN.decode(self.start.options, "options")
        self.start = self.start._replace(options=PLAIN.encode({**options, BASE: base}, "options"))

    def _insert_run(self, status: RunStatus) -> None:
        start, key = self.start, {"thread_id": self.thread_id, "run_id": self.run_id}
        limit_key, limit_most = start.limit or (None, None)
        due_at = self.now if status is RunStatus.READY else start.due_at
        self.tx.send(
            "insert_start",
            {
                **key,
                "status": status.value,
                "now": self.now,
                "lane": lane_of(start.graph, start.queue, start.version),
                "owner": self.owner,
                "rank": -start.priority,
                "due_at": due_at,
                "limit_key": limit_key,
                "limit_most": limit_most,
                "input": self._closed("input", start.input),
                "options": self._closed("options", start.options),
            },
        )
        if start.notes is not None:
            self.tx.send("insert_run_notes", {**key, "body": self._closed("notes", start.notes)})
        event = event_of(f"run.{status.value}", graph=start.graph, due_at=start.due_at)
        head = 0 if self.is_new else head_of(self.tx, self.thread_id)
        self.writing.log_events(self.thread_id, self.run_id, head, [event])

    def _closed(self, what: str, body: bytes | None) -> bytes | None:
        if body is None:
            return None
        return self.writing.closed(self.thread_id, start_place(self.thread_id, self.run_id, what), body)


def start_place(thread_id: str, run_id: str, what: str) -> str:
    """Return the place of what a run was started with."""
    return place_of("runs", thread_id, run_id, what)


def new_uid(now: int) -> str:
    """Name a new life of a thread."""
    return uuid7(now).replace("-", "")[-20:]


class AnsweredBefore(AlreadyAnsweredError):
    """An answer that comes with a start was not the first."""

    def __init__(self, wait_id: str, answering: Answering) -> None:
        super().__init__(f"Wait {wait_id} has an answer under this key already. Nothing was started.")
        self.wait_id = wait_id
        self.answering = answering


class Raced(ConflictError):
    """Somebody made the same thread, or used the same key, at the same moment."""


def _exists(thread_id: str) -> ConflictError:
    return ConflictError(
        f"There is a thread {thread_id!r} already, which no task of this thread has spawned. Choose another key."
    )


def _is_seen_to(thread_id: str, tx: Transaction) -> int:
    return tx.run("child_closed", {"thread_id": thread_id})


def _is_alive(row: Row) -> bool:
    return RunStatus(row[1]) not in (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED)
