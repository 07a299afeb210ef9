"""Waking: answers from outside, deadlines, instants that have come, reminders. Whoever is first settles a wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from bide.clock import Instant
from bide.errors import AlreadyAnsweredError, UnknownInterruptError, WaitChangedError, WaitExpiredError
from bide.store.answering import answer_one, is_over, outcome_of
from bide.store.database import Transaction
from bide.store.facts import event_of, read_wait_row
from bide.store.needed import close_needs
from bide.store.queue_rows import Answering, Chosen, Outcome, WaitView, version_of
from bide.store.settling import Held, Settling
from bide.store.starting import Cancelling, cancel_one
from bide.store.writes import Writing
from bide.types import RunStatus, WaitStatus
from bide.waits.wake import Wake

if TYPE_CHECKING:
    from bide.store.store import Store

T = TypeVar("T")

PAGE = 500
"""How many due waits are settled in one transaction."""


_DEADLINE = -1
"""Stands for a deadline among the leaves of a wait: of what comes at the same instant, it is first."""


class Swept(NamedTuple):
    """What a look at the clock has brought."""

    woken: int = 0
    """Waits whose instant has come."""
    expired: int = 0
    reminded: tuple[tuple[str, str, bool], ...] = ()
    """Wait, thread, and whether it went one step higher."""
    is_full: bool = False
    """Whether there is more to do at once."""


class Waking:
    """The part of a `Store` that settles waits from outside."""

    @property
    def _store(self) -> Store:
        return cast("Store", self)

    # ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────

    def wait(self, wait_id: str) -> WaitView | None:
        """Read a wait, open or not."""
        store = self._store

        def read(tx: Transaction) -> WaitView | None:
            row = tx.one("find_wait", {"wait_id": wait_id})
            return None if row is None else read_wait_row(store.bodies, tx, row)

        return store.database.read(read)

    def waits(
        self, *, since: Instant = -1, after: str = "", most: int = 50, chosen: Chosen | None = None
    ) -> list[WaitView]:
        """List who waits, longest first, or by deadline; go on behind (created_at or deadline, wait_id) of the last."""
        store, chosen = self._store, chosen or Chosen()
        name = "list_due_inbox" if chosen.order == "deadline" else "list_inbox"
        params: dict[str, Any] = {"since": since, "after": after, "most": most, "awake_at": chosen.awake_at}
        if chosen.order == "deadline":
            params["due_before"] = chosen.due_before
        else:
            params["only_timeless"] = int(chosen.order == "timeless")
        if chosen.owner is not None:
            name, params = f"{name}_of_owner", {**params, "owner": chosen.owner}
        return store.database.read(
            lambda tx: [read_wait_row(store.bodies, tx, row, is_lenient=True) for row in tx.all(name, params)]
        )

    def waits_of(self, thread_id: str) -> list[WaitView]:
        """List whatever a thread has asked, oldest first."""
        store, params = self._store, {"thread_id": thread_id}
        return store.database.read(
            lambda tx: [read_wait_row(store.bodies, tx, row) for row in tx.all("list_waits_of_thread", params)]
        )

    def wait_and_parts(self, wait_id: str) -> tuple[WaitView, frozenset[int], dict[int, Wake]] | None:
        """Read a wait, which of its leaves are open, and what satisfied the others: all as of the same moment."""
        store = self._store

        def look(tx: Transaction) -> tuple[WaitView, frozenset[int], dict[int, Wake]] | None:
            row, held = tx.one("find_wait", {"wait_id": wait_id}), self._held(tx, wait_id)
            if row is None or held is None:
                return None
            return read_wait_row(store.bodies, tx, row), held.open, dict(held.satisfied)

        return store.database.read(look)

    def satisfied(self, wait_id: str) -> tuple[frozenset[int], dict[int, Wake]]:
        """Read which leaves of a wait's condition are open, and what satisfied the others."""

        def look(tx: Transaction) -> tuple[frozenset[int], dict[int, Wake]]:
            wait = self._held(tx, wait_id)
            return (frozenset(), {}) if wait is None else (wait.open, dict(wait.satisfied))

        return self._store.database.read(look)

    # ── Settling ───────────────────────────────────────────────────────────────────────────────────────────────────

    def wake(self, wait_id: str, answering: Answering) -> Outcome:
        """Answer a wait, or one leaf of what it needs, and make its run ready. The first answer stands.

        The same answer given again, under the same key, is told how the first one went. Any other is refused, and told
        who was first.
        """

        def settle(settling: Settling, wait: Held) -> Outcome:
            return answer_one(settling, wait, answering)

        outcome = self._settle("wake", wait_id, settle, answering.expected)
        if outcome.is_new or outcome.status is WaitStatus.OPEN:
            return outcome
        return self.tell_again(wait_id, answering)

    def tell_again(self, wait_id: str, answering: Answering) -> Outcome:
        """Say how a wait was settled: calmly to whoever asks again, with an error to whoever wanted something else."""
        view = self.wait(wait_id)
        assert view is not None, "it was there a moment ago"
        outcome = Outcome(
            view.status, False, wait_id, view.thread_id, view.answered_by, view.answered_at, view.answered_via
        )
        if answering.key is not None and answering.key == view.answer_key:
            return outcome
        who = f" by {view.answered_by}" if view.answered_by else ""
        if view.status is WaitStatus.EXPIRED:
            raise WaitExpiredError(
                f"Wait {wait_id} of thread {view.thread_id!r} ran out before this answer came. Nothing was written. "
                f"Look at the thread to see how it went on.",
                outcome=outcome,
            )
        if view.status is WaitStatus.CANCELLED:
            raise AlreadyAnsweredError(
                f"Wait {wait_id} of thread {view.thread_id!r} was withdrawn{who} before this answer came. Nothing was "
                f"written. Look at the thread to see how it stands.",
                outcome=outcome,
            )
        raise AlreadyAnsweredError(
            f"Wait {wait_id} of thread {view.thread_id!r} was {view.status}{who} through {view.answered_via!r} before. "
            f"An answer stands; nothing was written. To answer differently, fork the thread.",
            outcome=outcome,
        )

    def cancel_wait(
        self, wait_id: str, *, by: str | None = None, reason: str = "cancelled", expected: str | None = None
    ) -> Outcome:
        """Withdraw a question: the node that asked gets a `WaitCancelled`, which it may catch.

        Where no node asks, at a static pause or after a node that returned its question, the run is cancelled.
        """

        def settle(settling: Settling, wait: Held) -> Outcome:
            if not wait.is_open:
                return outcome_of(wait, is_new=False)
            if wait.kind != "call":
                # No node waits in the middle of its code: the graph was told to stop here, and it does not go on.
                status, ending = RunStatus.WAITING, Cancelling(reason, by)
                settling.ended += cancel_one(settling.writing, wait.thread_id, wait.run_id, status, ending)
                return outcome_of(wait._replace(status=WaitStatus.CANCELLED), is_new=True)
            settling.cancel(wait, by=by, reason=reason)
            return outcome_of(wait._replace(status=WaitStatus.CANCELLED), is_new=True)

        return self._settle("cancel_wait", wait_id, settle, expected)

    def extend_wait(
        self, wait_id: str, deadline: Instant | None, *, by: str | None = None, expected: str | None = None
    ) -> bool:
        """Give a wait another deadline; return whether it was still open."""

        def change(settling: Settling, wait: Held) -> bool:
            if not wait.is_open:
                return False
            settling.tx.send("extend_wait", {"wait_id": wait_id, "deadline": deadline})
            settling.log(wait, event_of("wait.extended", wait=wait_id, deadline=deadline, by=by))
            return True

        return self._settle("extend_wait", wait_id, change, expected)

    def reassign_wait(
        self, wait_id: str, assignees: tuple[str, ...], *, by: str | None = None, expected: str | None = None
    ) -> bool:
        """Let others be asked; return whether the wait was still open."""

        def change(settling: Settling, wait: Held) -> bool:
            if not wait.is_open:
                return False
            needs = wait.needs._replace(assignees=assignees)
            self._change_needs(settling, wait._replace(needs=needs), wait.remind_at)
            settling.log(wait, event_of("wait.reassigned", wait=wait_id, assignees=list(assignees), by=by))
            return True

        return self._settle("reassign_wait", wait_id, change, expected)

    def snooze_wait(self, wait_id: str, until: Instant, *, by: str | None = None, expected: str | None = None) -> bool:
        """Keep a wait out of the inbox until then, when it is told of again; return whether it was still open.

        Reminders and escalations wait that long, too; the deadline does not. An instant that has passed wakes it up.
        """

        def change(settling: Settling, wait: Held) -> bool:
            if not wait.is_open:
                return False
            is_over = until <= settling.now
            remind_at = wait.needs.remind_at(wait.created_at, settling.now) if is_over else until
            params = {"wait_id": wait_id, "until": None if is_over else until, "remind_at": remind_at}
            settling.tx.send("snooze_wait", params)
            settling.log(wait, event_of("wait.snoozed", wait=wait_id, until=until, by=by))
            return True

        return self._settle("snooze_wait", wait_id, change, expected)

    def _settle(self, name: str, wait_id: str, change: Callable[[Settling, Held], T], expected: str | None = None) -> T:
        store = self._store
        row = store.database.read(lambda tx: tx.one("find_wait", {"wait_id": wait_id}))
        if row is None:
            raise UnknownInterruptError(
                f"There is no wait {wait_id!r} in {store.database.path!r}. List those that are open, and check which "
                f"database this is.",
                interrupt_ids=(wait_id,),
            )
        ended: list[str] = []

        def work(tx: Transaction) -> T:
            settling = Settling(Writing(tx, store.bodies, store.clock.now()))
            held = settling.hold([(wait_id, row[1])])
            if wait_id not in held:
                raise UnknownInterruptError(f"Wait {wait_id!r} is gone: its thread was deleted.")
            _check_version(held[wait_id], expected)
            result = change(settling, held[wait_id])
            ended[:] = settling.ended
            return result

        result = store.database.write(name, work)
        store.after_end(ended)
        store.ring()
        return result

    def _held(self, tx: Transaction, wait_id: str) -> Held | None:
        store = self._store
        row = tx.one("find_wait", {"wait_id": wait_id})
        settling = Settling(Writing(tx, store.bodies, store.clock.now()))
        return None if row is None else settling.read([(wait_id, row[1])]).get(wait_id)

    # ── The clock ──────────────────────────────────────────────────────────────────────────────────────────────────

    def sweep(self, most: int = PAGE) -> Swept:
        """Settle what is due: instants that have come, deadlines that have passed, reminders. A batch of each."""
        store = self._store
        ended: list[str] = []

        def work(tx: Transaction) -> Swept:
            now = store.clock.now()
            settling = Settling(Writing(tx, store.bodies, now))
            due = {"now": now, "most": most}
            leaves, waits, reminders = (
                tx.ask(query, due) for query in ("list_due_conditions", "list_due_waits", "list_due_reminders")
            )
            at, late, told = leaves(), waits(), reminders()
            wanted = {row[0]: row[2] for row in at} | {row[0]: row[1] for row in (*late, *told)}
            if not wanted:
                return Swept()
            held = settling.hold_those_free(wanted.items())
            came = [(instant, wait_id, number) for wait_id, number, _, instant in at]
            woken, expired = self._in_order(
                settling, held, [*came, *((deadline, wait_id, _DEADLINE) for wait_id, _, deadline in late)]
            )
            reminded = [self._remind(settling, held, row[0]) for row in told]
            self._put_off(settling)
            ended[:] = settling.ended
            is_full = max(len(at), len(late), len(told)) >= most
            return Swept(woken, expired, tuple(filter(None, reminded)), is_full)

        swept = store.database.write("sweep", work)
        store.after_end(ended)
        if swept.woken or swept.expired:
            store.ring()
        return swept

    def settle_due(self, thread_id: str) -> None:
        """Settle what is due on one thread, for a caller that goes on with it and may have no worker."""
        store = self._store
        now = store.clock.now()
        due = store.database.read(lambda tx: tx.all("list_due_of_thread", {"thread_id": thread_id, "now": now}))
        if not due:
            return
        ended: list[str] = []

        def work(tx: Transaction) -> None:
            settling = Settling(Writing(tx, store.bodies, now))
            held = settling.hold((row[0], thread_id) for row in due)
            came = [(at, wait_id, number) for wait_id, number, _, at in due if at is not None]
            late = [(deadline, wait_id, _DEADLINE) for wait_id, _, deadline, _ in due if deadline is not None]
            self._in_order(settling, held, [*came, *late])
            ended[:] = settling.ended

        store.database.write("sweep", work)
        store.after_end(ended)

    def _in_order(
        self, settling: Settling, held: dict[str, Held], due: list[tuple[Instant, str, int]]
    ) -> tuple[int, int]:
        """Settle in the order in which it came, however late somebody looks: an instant before the deadline wins."""
        woken = expired = 0
        for at, wait_id, number in sorted(set(due)):
            if number == _DEADLINE:
                expired += self._run_out(settling, held, wait_id)
            else:
                woken += self._come(settling, held, wait_id, number, at)
        return woken, expired

    @staticmethod
    def _put_off(settling: Settling) -> None:
        """Leave what cannot be read alone for an hour, so that it does not stand in the way of what can."""
        for wait_id in settling.unreadable:
            until = {"wait_id": wait_id, "now": settling.now, "until": settling.now + 3_600_000}
            settling.tx.send("put_off_wait", until)
            settling.tx.send("put_off_conditions", until)

    @staticmethod
    def _come(settling: Settling, held: dict[str, Held], wait_id: str, number: int, due: Instant) -> bool:
        """Let an instant that has come satisfy the leaf that waited for it."""
        wait = held.get(wait_id)
        if wait is None:
            return False
        if not wait.is_open:
            settling.tx.send("close_conditions", {"wait_id": wait_id})
            return False
        if number not in wait.open:
            # Another instant of the same round has made it needless; the wait goes on, and its other leaves with it.
            settling.tx.send("close_condition", {"wait_id": wait_id, "number": number})
            return False
        held[wait_id] = settling.satisfy(wait, number, Wake(None, kind="time", at=due, via="clock"))
        return True

    @staticmethod
    def _run_out(settling: Settling, held: dict[str, Held], wait_id: str) -> bool:
        wait = held.get(wait_id)
        if wait is None or not wait.is_open or not is_over(wait, settling.now):
            return False
        held[wait_id] = settling.expire(wait)
        return True

    def _remind(self, settling: Settling, held: dict[str, Held], wait_id: str) -> tuple[str, str, bool] | None:
        """Tell again that somebody waits, or tell it to others, and note when that is due next."""
        wait, now = held.get(wait_id), settling.now
        if wait is None or not wait.is_open or wait.remind_at is None or wait.remind_at > now:
            return None
        needs = wait.needs
        is_higher = needs.escalate_after is not None and now >= wait.created_at + needs.escalate_after
        if is_higher:
            everybody = (*needs.assignees, *(one for one in needs.escalate_to if one not in needs.assignees))
            needs = needs._replace(assignees=everybody, escalate_after=None, escalate_to=())
        self._change_needs(settling, wait._replace(needs=needs), needs.remind_at(wait.created_at, now))
        kind = "wait.escalated" if is_higher else "wait.reminded"
        settling.log(wait, event_of(kind, wait=wait_id, assignees=list(needs.assignees)))
        return wait_id, wait.thread_id, is_higher

    def _change_needs(self, settling: Settling, wait: Held, remind_at: Instant | None) -> None:
        stored = close_needs(self._store.bodies, wait.wait_id, wait.needs)
        settling.tx.send("change_needs", {"wait_id": wait.wait_id, "needs": stored, "remind_at": remind_at})

    def next_due(self) -> Instant | None:
        """Return when something is due next, whatever it is."""
        row = self._store.database.read(lambda tx: tx.one("next_due", {}))
        return None if row is None else row[0]


def _check_version(wait: Held, expected: str | None) -> None:
    """Refuse whoever has seen the wait as it was before; one that is settled says so itself."""
    found = version_of(wait.status, wait.deadline, wait.needs.assignees, wait.satisfied)
    if expected is not None and wait.is_open and found != expected:
        raise WaitChangedError(
            f"Wait {wait.wait_id} of thread {wait.thread_id!r} has changed since it was read: it is {found!r} now. "
            f"Nothing was written. Read it again, and decide then."
        )
