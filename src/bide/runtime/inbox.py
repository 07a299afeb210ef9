"""The inbox of an application: who waits for what, answers, and facts from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from bide.clock import uuid7
from bide.errors import (
    AmbiguousResumeError,
    DeliveryError,
    GraphError,
    NotWaitingError,
    UnknownInterruptError,
)
from bide.runtime.answers import check_answer, leaf_for_people, plain_of
from bide.runtime.explaining import Explanation, explain_fact, explain_wait
from bide.runtime.open_waits import WaitFilter, WaitPage, is_open, list_waits
from bide.runtime.reading import delivery_of, wait_of
from bide.runtime.registered import Graphs
from bide.runtime.threads import read_thread
from bide.runtime.views import Delivery, Wait, Woken, moment
from bide.store import Store
from bide.store.queue_rows import Answering, Outcome, WaitView
from bide.types import WaitStatus
from bide.waits.asked import names
from bide.waits.durations import Duration, milliseconds
from bide.waits.facts import Fact, check_fact


class Inbox:
    """The part of an application that takes answers and facts in."""

    store: Store
    graphs: Graphs

    # ── Who waits ──────────────────────────────────────────────────────────────────────────────────────────────────

    def waits(self, *, most: int = 50, **wanted: Unpack[WaitFilter]) -> Sequence[Wait]:
        """List who waits, longest first or by deadline: those of an owner, a thread, an assignee, a graph, a kind."""
        return list(list_waits(self.store, self.graphs, wanted, after=None, most=most).waits)

    def inbox(self, *, after: str | None = None, most: int = 50, **wanted: Unpack[WaitFilter]) -> WaitPage:
        """List the same page after page: each says what to give as `after` for the next."""
        return list_waits(self.store, self.graphs, wanted, after=after, most=most)

    def wait(self, wait_id: str) -> Wait:
        """Return a wait, open or settled."""
        return wait_of(self.graphs, self._row(wait_id), self.store.satisfied(wait_id)[1])

    def _row(self, wait_id: str) -> WaitView:
        row = self.store.wait(wait_id)
        if row is None:
            raise UnknownInterruptError(
                f"There is no wait {wait_id!r} in {self.store.database.path!r}. See app.waits() for those open.",
                interrupt_ids=(wait_id,),
            )
        return row

    # ── Answers ────────────────────────────────────────────────────────────────────────────────────────────────────

    def wake(
        self,
        wait_id: str,
        value: Any = None,
        *,
        by: str | None = None,
        via: str = "wake",
        key: str | None = None,
        leaf: str | None = None,
        expected: str | None = None,
        comment: str | None = None,
    ) -> Woken:
        """Answer a wait: its thread goes on, once. The first answer stands; whoever comes later is told who was first.

        The answer is checked against what the wait asks for before it counts. The same `key` may be sent again and
        again. Where a wait needs several decisions, `leaf` names the one that this is. `expected` is the version of the
        wait that the answer was made for: if it has changed since, nothing is written. `comment` is said beside it: it
        is in the log, and with a decision the node hears it as `reply.comment`.
        """
        row, value = self._row(wait_id), plain_of(value)
        chosen = None if row.needs.condition is None else leaf_for_people(row, leaf)
        if is_open(row):
            check_answer(row, chosen, value)
        number = None if chosen is None else chosen.number
        kind = "approval" if chosen is None else chosen.kind
        outcome = self.store.wake(wait_id, Answering(value, by, via, key, number, kind, expected, comment))
        return _woken(outcome)

    def resume(
        self, thread_id: str | int, value: Any = None, *, by: str | None = None, key: str | None = None
    ) -> Woken:
        """Answer the only open question of a thread."""
        waiting = self.waits(thread_id=thread_id, most=2)
        if not waiting:
            status = read_thread(self.store, self.graphs, str(thread_id)).status
            raise NotWaitingError(
                f"Thread {str(thread_id)!r} is {status or 'new'}, so it waits for no answer. Nothing was written."
            )
        if len(waiting) > 1:
            raise AmbiguousResumeError(
                f"Thread {str(thread_id)!r} has several open questions. Say which: app.wake(wait_id, …). "
                f"Open: {', '.join(f'{wait.id} ({wait.waiting_for})' for wait in waiting)}."
            )
        return self.wake(waiting[0].id, value, by=by, via="resume", key=key)

    def extend(
        self, wait_id: str, timeout: Duration | None = None, *, by: str | None = None, expected: str | None = None
    ) -> bool:
        """Give a wait so much time from now on, or no deadline at all; return whether it was still open."""
        deadline = None if timeout is None else self.store.clock.now() + milliseconds(timeout, "timeout")
        return self.store.extend_wait(wait_id, deadline, by=by, expected=expected)

    def reassign(
        self, wait_id: str, assignees: Sequence[str], *, by: str | None = None, expected: str | None = None
    ) -> bool:
        """Let others be asked; return whether the wait was still open."""
        return self.store.reassign_wait(wait_id, names("assignees", assignees), by=by, expected=expected)

    def snooze(
        self, wait_id: str, duration: Duration | None = None, *, by: str | None = None, expected: str | None = None
    ) -> bool:
        """Keep a wait out of the inbox for so long, and its reminders quiet; None shows it again at once.

        Return whether it was still open. Its deadline stays.
        """
        now = self.store.clock.now()
        until = now if duration is None else now + milliseconds(duration, "duration")
        return self.store.snooze_wait(wait_id, until, by=by, expected=expected)

    # ── Facts ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def deliver(
        self,
        name: str,
        payload: Any = None,
        *,
        kind: str = "event",
        source: str | None = None,
        external_id: str | None = None,
        owner: str | None = None,
    ) -> Delivery:
        """Bring a fact: an event, a webhook's call, or a mail (`name` is its mailbox). Whoever waits for it goes on.

        It is stored before it is matched, and once for each `external_id` of a `source`: the same fact again changes
        nothing, and tells what came of the first. One that nobody waits for stays, and is found by whoever waits later.
        It wakes threads of the same owner only: the store's own, unless another is named.
        """
        fact = self._fact(name, payload, kind, source, external_id)
        delivered = self.store.deliver(fact, owner)
        found = self.store.delivery(delivered.delivery_id)
        if found is None:
            raise GraphError(f"Delivery {delivered.delivery_id} was let go by the store's retention.")
        return delivery_of(*found, is_new=delivered.is_new, threads=delivered.threads)

    def _fact(self, name: str, payload: Any, kind: str, source: str | None, external_id: str | None) -> Fact:
        now = self.store.clock.now()
        if kind == "child":
            raise DeliveryError("How a child ended is told by the child itself. Bring an event, a webhook or an email.")
        if external_id is None and kind == "email" and isinstance(payload, dict):
            external_id = payload.get("message_id")
        given = source or f"{kind}:{name}"
        return check_fact(Fact(kind, name, payload, given, external_id or uuid7(now), now))

    def deliveries(
        self, *, unmatched: bool = False, owner: str | None = None, most: int = 100, before: str = "~"
    ) -> Sequence[Delivery]:
        """List facts, newest first, behind the id `before`; `unmatched` those that woke nobody."""
        rows = self.store.deliveries(before=before, most=most, unmatched=unmatched, owner=owner)
        return [delivery_of(row, fact) for row, fact in rows]

    def explain(
        self,
        what: str,
        payload: Any = None,
        *,
        kind: str = "event",
        source: str | None = None,
        owner: str | None = None,
    ) -> Explanation:
        """Say why a fact did or did not wake somebody, or what a wait still needs.

        `what` is the id of a delivery or of a wait; or the name of a fact that has not come yet (`payload`, `kind`), as
        for a dry run of `deliver`.
        """
        if self.store.wait(what) is not None:
            return explain_wait(self.store, self.graphs, what)
        found = self.store.delivery(what)
        if found is not None:
            row, fact = found
            return explain_fact(self.store, fact, row.delivery_id, row.owner)
        return self.foresee(what, payload, kind=kind, source=source, owner=owner)

    def foresee(
        self,
        name: str,
        payload: Any = None,
        *,
        kind: str = "event",
        source: str | None = None,
        owner: str | None = None,
    ) -> Explanation:
        """Say whom a fact would wake that has not come yet, and why not the others; nothing is stored."""
        return explain_fact(self.store, self._fact(name, payload, kind, source, None), None, owner)


def _woken(outcome: Outcome) -> Woken:
    if outcome.status is WaitStatus.OPEN:
        said = "counted" if outcome.is_new else "already_counted"
    elif outcome.is_new:
        said = "resumed"
    else:
        said = "already_answered" if outcome.status is WaitStatus.ANSWERED else outcome.status.value
    return Woken(
        said,
        outcome.wait_id,
        outcome.thread_id,
        outcome.by,
        moment(outcome.at),
        outcome.via,
    )
