"""The inbox of an application: who waits for what, answers, and facts from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.clock import uuid7
from bide.errors import (
    AmbiguousResumeError,
    DeliveryError,
    GraphError,
    InvalidAnswerError,
    NotWaitingError,
    UnknownInterruptError,
)
from bide.runtime.explaining import Explanation, explain_fact, explain_wait
from bide.runtime.reading import delivery_of, wait_of
from bide.runtime.registered import Graphs
from bide.runtime.threads import read_thread
from bide.runtime.views import Delivery, Wait, Woken, moment
from bide.shape import problems
from bide.shape.plain import NotPlainError, to_plain
from bide.store import Store
from bide.store.queue_rows import Answering, Outcome, WaitView
from bide.types import WaitStatus
from bide.waits.answers import answer_schema
from bide.waits.asked import names
from bide.waits.durations import Duration, milliseconds
from bide.waits.facts import Fact, check_fact
from bide.waits.leaves import Leaf, leaves


class Inbox:
    """The part of an application that takes answers and facts in."""

    store: Store
    graphs: Graphs

    # ── Who waits ──────────────────────────────────────────────────────────────────────────────────────────────────

    def waits(
        self,
        *,
        thread_id: str | int | None = None,
        assignee: str | None = None,
        kind: str | None = None,
        graph: str | None = None,
        tag: str | None = None,
        most: int = 50,
    ) -> Sequence[Wait]:
        """List who waits, longest first."""
        found: list[Wait] = []
        since, after = -1, ""
        is_filtered = any(one is not None for one in (assignee, kind, graph, tag))
        size = _PAGE if is_filtered else min(most, _PAGE)
        while len(found) < most:
            page = self._page(thread_id, since, after, size)
            for row in page:
                wait = wait_of(self.graphs, row)
                if _is_wanted(wait, assignee, kind, graph, tag):
                    found.append(wait)
            if thread_id is not None or len(page) < size:
                break
            since, after = page[-1].created_at, page[-1].wait_id
        return found[:most]

    def _page(self, thread_id: str | int | None, since: int, after: str, size: int) -> list[WaitView]:
        if thread_id is None:
            return self.store.waits(since=since, after=after, most=size)
        return [row for row in self.store.waits_of(str(thread_id)) if _is_open(row)]

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
    ) -> Woken:
        """Answer a wait: its thread goes on, once. The first answer stands; whoever comes later is told who was first.

        The answer is checked against what the wait asks for before it counts. The same `key` may be sent again and
        again. Where a wait needs several decisions, `leaf` names the one that this is.
        """
        row, value = self._row(wait_id), plain_of(value)
        chosen = None if row.needs.condition is None else _leaf_for_people(row, leaf)
        if _is_open(row):
            _check_answer(row, chosen, value)
        number = None if chosen is None else chosen.number
        kind = "approval" if chosen is None else chosen.kind
        outcome = self.store.wake(wait_id, Answering(value, by, via, key, number, kind))
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

    def extend(self, wait_id: str, timeout: Duration | None = None, *, by: str | None = None) -> bool:
        """Give a wait so much time from now on, or no deadline at all; return whether it was still open."""
        deadline = None if timeout is None else self.store.clock.now() + milliseconds(timeout, "timeout")
        return self.store.extend_wait(wait_id, deadline, by=by)

    def reassign(self, wait_id: str, assignees: Sequence[str], *, by: str | None = None) -> bool:
        """Let others be asked; return whether the wait was still open."""
        return self.store.reassign_wait(wait_id, names("assignees", assignees), by=by)

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

    def deliveries(self, *, unmatched: bool = False, most: int = 100, before: str = "~") -> Sequence[Delivery]:
        """List facts, newest first; `unmatched` those that woke nobody."""
        rows = self.store.deliveries(before=before, most=most, unmatched=unmatched)
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
        return explain_fact(self.store, self._fact(what, payload, kind, source, None), None, owner)


_PAGE = 500


def plain_of(value: Any) -> Any:
    """Return an answer as whoever has only the database can read it; the node makes its own types of it again."""
    try:
        return to_plain(value)
    except NotPlainError:
        return value  # the codec will say what is wrong with it


def _is_open(row: WaitView) -> bool:
    return row.status is WaitStatus.OPEN and not row.is_consumed


def _is_wanted(wait: Wait, assignee: str | None, kind: str | None, graph: str | None, tag: str | None) -> bool:
    return (
        (assignee is None or assignee in wait.assignees)
        and (kind is None or wait.kind == kind)
        and (graph is None or wait.graph == graph)
        and (tag is None or tag in wait.tags)
    )


def _leaf_for_people(row: WaitView, label: str | None) -> Leaf | None:
    """Find the decision that an answer is for; None when it is for the wait as a whole, whatever that waits for."""
    assert row.needs.condition is not None
    every = leaves(row.needs.condition, row.created_at)
    if label is not None:
        found = next((leaf for leaf in every if leaf.label == label), None)
        if found is None:
            raise UnknownInterruptError(
                f"Wait {row.wait_id} has no part {label!r}. It has: {', '.join(leaf.label for leaf in every)}."
            )
        return found
    decisions = [leaf for leaf in every if leaf.kind == "approval"]
    if len(decisions) > 1:
        raise AmbiguousResumeError(
            f"Wait {row.wait_id} needs several decisions: {', '.join(leaf.label for leaf in decisions)}. Say which one "
            f"this is: leaf='{decisions[0].label}'."
        )
    if not decisions and row.needs.condition.get("kind") in ("all_of", "quorum"):
        raise AmbiguousResumeError(
            f"Wait {row.wait_id} needs several parts, and one answer cannot stand for all of them. Say which part this "
            f"is: leaf='{every[0].label}'. It has: {', '.join(leaf.label for leaf in every)}."
        )
    return decisions[0] if decisions else None


def _check_answer(row: WaitView, leaf: Leaf | None, value: Any) -> None:
    schema = row.needs.schema if leaf is None else answer_schema(leaf.plain) if leaf.kind == "approval" else None
    found = problems(value, dict(schema)) if schema is not None else []
    if found:
        listed = "\n".join(f"  - {problem}" for problem in found)
        raise InvalidAnswerError(
            f"The answer to wait {row.wait_id} (node {row.node!r}) does not fit:\n{listed}\n"
            f"Nothing was written; it is still open."
        )


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
