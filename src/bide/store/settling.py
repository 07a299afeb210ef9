"""Settling waits from outside: whoever brings what a wait needs comes through here, the clock included.

All who settle do it in the same order: the rows of the threads are locked, sorted; then the waits are read again, since
they may have been settled a moment ago; then everything is written. On a database that is a network away that is three
round trips, however many waits there are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bide.errors import CodecError
from bide.store.database import Answer, Row
from bide.store.ending import end_thread
from bide.store.facts import close_wake, event_of, open_wake
from bide.store.needed import PLAIN, open_needs
from bide.store.places import answer_place
from bide.store.queue_rows import WaitView
from bide.store.rows import EventRow, Report
from bide.store.writes import Writing
from bide.types import RunStatus, WaitStatus
from bide.waits.needs import Needs
from bide.waits.tree import open_leaves, verdict
from bide.waits.wake import Wake

logger = logging.getLogger("bide.store")


class Held(NamedTuple):
    """A wait whose thread is held, as it is now."""

    wait_id: str
    thread_id: str
    run_id: str
    status: WaitStatus
    is_consumed: bool
    kind: str
    needs: Needs
    satisfied: Mapping[int, Wake]
    open: frozenset[int]
    deadline: int | None
    remind_at: int | None
    created_at: int
    head: int
    """The newest checkpoint of its thread."""

    @property
    def is_open(self) -> bool:
        """Whether it can be settled."""
        return self.status is WaitStatus.OPEN and not self.is_consumed


class Settling:
    """One transaction in which waits are settled from outside."""

    def __init__(self, writing: Writing) -> None:
        self.writing = writing
        self.tx = writing.tx
        self.now = writing.now
        self.touched: dict[str, None] = {}
        """The threads whose runs may have become ready, in order."""
        self.unreadable: list[str] = []
        self.ended: list[str] = []
        """Deliveries that tell parents of what has ended; they are matched after the commit."""

    # ── Holding ────────────────────────────────────────────────────────────────────────────────────────────────────

    def hold(self, waits: Iterable[tuple[str, str]]) -> dict[str, Held]:
        """Hold the threads of these waits (wait id, thread id), and read the waits again."""
        wanted = dict(waits)
        for thread_id in sorted(set(wanted.values())):
            self.tx.send("hold_thread", {"thread_id": thread_id})
        return self.read(wanted.items())

    def hold_those_free(self, waits: Iterable[tuple[str, str]]) -> dict[str, Held]:
        """Do the same for those whose thread nobody else holds right now: of several who look at the clock, each takes
        others."""
        wanted = dict(waits)
        asked = {
            thread_id: self.tx.ask("hold_thread_if_free", {"thread_id": thread_id})
            for thread_id in sorted(set(wanted.values()))
        }
        free = {thread_id for thread_id, answer in asked.items() if answer()}
        return self.read([(wait_id, thread_id) for wait_id, thread_id in wanted.items() if thread_id in free])

    def read(self, waits: Iterable[tuple[str, str]]) -> dict[str, Held]:
        """Read waits (wait id, thread id) as they are now."""
        asked = [
            (
                wait_id,
                self.tx.ask("find_wait", {"wait_id": wait_id}),
                self.tx.ask("read_conditions", {"wait_id": wait_id}),
                self.tx.ask("read_head", {"thread_id": thread_id, "ns": ""}),
            )
            for wait_id, thread_id in waits
        ]
        found = ((wait_id, self._readable(wait_id, row(), leaves(), head)) for wait_id, row, leaves, head in asked)
        return {wait_id: held for wait_id, held in found if held is not None}

    def _readable(self, wait_id: str, rows: Sequence[Row], leaves: Sequence[Row], head: Answer) -> Held | None:
        """Leave out a wait that cannot be read: those who share the transaction must not suffer from it."""
        try:
            return self._held(rows, leaves, head)
        except CodecError:
            logger.exception("Wait %s cannot be read; it is left as it is.", wait_id)
            self.unreadable.append(wait_id)
            return None

    def _held(self, rows: Sequence[Row], leaves: Sequence[Row], head: Answer) -> Held | None:
        if not rows:
            return None
        row, stored_needs = WaitView(*rows[0]), rows[0][18]
        bodies, wait_id = self.writing.bodies, row.wait_id
        satisfied = {
            leaf[0]: open_wake(bodies, self.tx, wait_id, leaf[0], leaf[7]) for leaf in leaves if leaf[7] is not None
        }
        return Held(
            wait_id,
            row.thread_id,
            row.run_id,
            WaitStatus(row.status),
            bool(row.is_consumed),
            row.kind,
            open_needs(bodies, self.tx, wait_id, stored_needs),
            satisfied,
            frozenset(leaf[0] for leaf in leaves if leaf[4]),
            row.deadline,
            row.remind_at,
            row.created_at,
            head()[0][0] or 0,
        )

    # ── Settling ───────────────────────────────────────────────────────────────────────────────────────────────────

    def satisfy(self, wait: Held, number: int, wake: Wake, key: str | None = None) -> Held:
        """Note that one leaf of a wait's condition is satisfied; if that is enough, the wait has its answer."""
        assert wait.needs.condition is not None, "a leaf belongs to a condition"
        came = self.now if wake.at is None else wake.at
        if wait.deadline is not None and came >= wait.deadline:
            return self.expire(wait)
        # All that may be refused is made before anything is written: other waits share this transaction.
        stored = close_wake(self.writing.bodies, wait.wait_id, number, wake)
        after = wait._replace(satisfied={**wait.satisfied, number: wake}, open=wait.open - {number})
        answer = verdict(wait.needs.condition, after.satisfied)
        body = b"" if answer is None else PLAIN.encode(answer, "answer")
        self.writing.bodies.check_size(answer_place(wait.thread_id, wait.wait_id), len(body))
        params = {"wait_id": wait.wait_id, "number": number, "delivery_id": wake.delivery}
        self.tx.send("satisfy_condition", {**params, "wake": stored})
        if answer is None:
            event = event_of("wait.satisfied", wait=wait.wait_id, leaf=number, by=wake.by, via=wake.via)
            self.log(wait, event)
            return self._close_needless(after)
        is_fact = wake.delivery is not None
        return self.answer(after, body, by=wake.by, via=wake.via or "", key=key, told=answer, is_fact=is_fact)

    def _close_needless(self, wait: Held) -> Held:
        """Close the leaves that do not matter any more, so that they take no fact from others."""
        assert wait.needs.condition is not None, "a leaf belongs to a condition"
        needed = open_leaves(wait.needs.condition, wait.satisfied)
        for number in sorted(wait.open - needed):
            self.tx.send("close_condition", {"wait_id": wait.wait_id, "number": number})
        return wait._replace(open=wait.open & needed)

    def answer(
        self,
        wait: Held,
        answer: bytes,
        *,
        by: str | None,
        via: str,
        key: str | None = None,
        told: Wake | None = None,
        is_fact: bool = False,
    ) -> Held:
        """Give a wait its answer."""
        winner = None if told is None else told.winner
        event = event_of("wait.answered", wait=wait.wait_id, by=by, via=via, winner=winner)
        if is_fact and self.writing.bodies.seal.hides:
            by = None  # who sent a mail is a part of it; the answer and the log hold it, sealed
        return self._settle(wait, WaitStatus.ANSWERED, event, answer=answer, by=by, via=via, key=key)

    def expire(self, wait: Held) -> Held:
        """Let the deadline of a wait be what settles it."""
        event = event_of("wait.expired", wait=wait.wait_id, deadline=wait.deadline)
        wait = self._settle(wait, WaitStatus.EXPIRED, event, via="deadline")
        if wait.needs.on_timeout != "resume":
            self._end(wait, wait.needs.on_timeout)
        return wait

    def cancel(self, wait: Held, *, by: str | None, reason: str) -> Held:
        """Withdraw a question: its node is told why."""
        event = event_of("wait.cancelled", wait=wait.wait_id, by=by, reason=reason)
        why = PLAIN.encode({"reason": reason, "by": by}, "reason")
        return self._settle(wait, WaitStatus.CANCELLED, event, answer=why, by=by, via="cancel")

    def _settle(
        self,
        wait: Held,
        status: WaitStatus,
        event: EventRow,
        *,
        answer: bytes | None = None,
        by: str | None = None,
        via: str = "",
        key: str | None = None,
    ) -> Held:
        thread_id, wait_id = wait.thread_id, wait.wait_id
        closed = None if answer is None else self.writing.closed(thread_id, answer_place(thread_id, wait_id), answer)
        self.tx.send(
            "settle_wait",
            {
                "wait_id": wait_id,
                "thread_id": thread_id,
                "status": status.value,
                "answer": closed,
                "by": by,
                "via": via,
                "answer_key": key,
                "now": self.now,
            },
        )
        if wait.open:
            self.tx.send("close_conditions", {"wait_id": wait_id})
        self.log(wait, event)
        self.tx.send("make_ready", {"thread_id": thread_id, "now": self.now})
        self.touched[thread_id] = None
        return wait._replace(status=status, open=frozenset())

    def _end(self, wait: Held, on_timeout: str) -> None:
        """End the run of a wait whose deadline says so, also while another branch of it is driven."""
        status = RunStatus.CANCELLED if on_timeout == "cancel" else RunStatus.FAILED
        error = f"WaitExpired: node asked in wait {wait.wait_id}, and nobody answered in time"
        key = {"thread_id": wait.thread_id, "run_id": wait.run_id}
        params = {**key, "status": status.value, "error": self.writing.bodies.readable(error), "now": self.now}
        if self.tx.run("end_waiting", params):
            if status is RunStatus.CANCELLED:
                self.tx.send("cancel_waits", {"thread_id": wait.thread_id, "prefix": "", "length": 0})
            self.log(wait, event_of(f"run.{status.value}", error=error))
            self.ended += end_thread(self.writing, wait.thread_id, wait.run_id, Report(status, error=error))

    def log(self, wait: Held, event: EventRow) -> None:
        """Add a line to the log of a wait's thread."""
        self.writing.log_events(wait.thread_id, wait.run_id, wait.head, [event])
