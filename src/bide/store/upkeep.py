"""Tidying up a whole store: on demand, and in the background when it was opened with a policy."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from weakref import ref

from bide.clock import Instant
from bide.errors import RetentionError, UnknownThreadError
from bide.store.database import Row
from bide.store.pruning import Keeper
from bide.store.retention import Pruned, Retention, Rule, rule_of

if TYPE_CHECKING:
    from bide.store.store import Store

TOMBSTONES_STAY = 30 * 24 * 3600 * 1000
"""Milliseconds for which it is remembered that a thread was deleted: nobody holds on to one for longer."""
PAGE = 100
"""So many threads are looked up at once."""
SWEPT_AT_ONCE = 500
LATEST_FIRST_ROUND = 300.0
"""Seconds after which the first round begins, at the latest; at random, so that processes do not begin together."""
NEVER = 2**62

logger = logging.getLogger("bide.store")


def prune(store: Store, thread_id: object = None, *, is_patient: bool = True, **said: Any) -> Pruned:
    """Do what `Store.prune` says."""
    store.database.check_present()
    given = {name: value for name, value in said.items() if value is not None}
    if not given:
        given = _policy_of(store)
    now, horizon = store.clock.now(), given.pop("horizon", None)
    named = None if thread_id is None else str(thread_id)
    keeper = Keeper(store.database, store.bodies, is_patient)
    if isinstance(horizon, str):
        rule, named = _rule_at_checkpoint(store, rule_of(now, **given), horizon, named)
    else:
        rule = rule_of(now, **given, horizon=horizon)
    visit = Round(keeper, rule, now, store._stopped)
    if named is None:
        return visit.through_all()
    _check_known(store, named)
    return visit.through_one(named)


def _check_known(store: Store, thread_id: str) -> None:
    if store.database.read(lambda tx: tx.one("read_thread", {"thread_id": thread_id})) is None:
        raise UnknownThreadError(
            f"There is no thread {thread_id!r} to prune. Nothing was deleted. Check the thread_id, and which database "
            f"is open; a thread of LangGraph's on a BideSaver is pruned with saver.prune([{thread_id!r}])."
        )


def _policy_of(store: Store) -> dict[str, Any]:
    policy = store.retention
    if policy is None:
        raise RetentionError(
            "prune() was not told what may go, and this store has no policy. Give keep_last=50, older_than='30d', "
            "horizon=…, ttl='90d' or deliveries='30d', or open the store with retention=Retention(…). Nothing was "
            "deleted."
        )
    names = ("keep_last", "older_than", "ttl", "deliveries")
    return {name: getattr(policy, name) for name in names}


def _rule_at_checkpoint(store: Store, rule: Rule, horizon: str, named: str | None) -> tuple[Rule, str]:
    """Let go what comes before a checkpoint of a thread: in the graphs inside, what is older than it."""
    if rule.before is not None:
        raise RetentionError("older_than= and horizon= both say before when checkpoints may go. Give one of them.")
    uid, _, number = horizon.rpartition("-")
    thread_id = store.thread_of(uid)
    is_there = thread_id is not None and named in (None, thread_id) and number.isascii() and number.isdecimal()
    found = store.history(thread_id or "", "", before=int(number) + 1, most=1) if is_there else []
    if thread_id is None or not found or found[0].row.seq != int(number):
        raise RetentionError(
            f"horizon={horizon!r} is no checkpoint of {f'thread {named!r}' if named else 'any thread here'}. Take its "
            f"id from result.checkpoint_id or from a snapshot's config. Nothing was deleted."
        )
    return rule._replace(before=found[0].row.created_at, seq=int(number)), thread_id


class Round:
    """One round through the store, or through one of its threads."""

    def __init__(self, keeper: Keeper, rule: Rule, now: Instant, stopped: Event) -> None:
        self.keeper = keeper
        self.rule = rule
        self.now = now
        self.stopped = stopped
        self.done = Pruned()

    def through_all(self) -> Pruned:
        """Tidy up everything that may be."""
        if self.rule.at_rest_since is not None:
            for thread_id, uid in self._resting():
                self._delete(thread_id, uid)
        if self.rule.lets_checkpoints_go:
            for (thread_id,) in self._long():
                self._add(self.keeper.prune_thread(thread_id, self.rule))
        if self.rule.delivered_before is not None:
            self._let_facts_go(self.rule.delivered_before)
            mine = {"owner": self.keeper.bodies.owner, "before": self.rule.delivered_before}
            self._sweep("drop_requests", mine)
        self._sweep("drop_tombstones", {"until": self.now - TOMBSTONES_STAY})
        self._sweep("drop_expired_items", {"now": self.now})
        self._sweep("drop_expired_cache", {"now": self.now})
        return self.done

    def through_one(self, thread_id: str) -> Pruned:
        """Tidy up one thread."""
        if self.rule.at_rest_since is not None:
            found = self.keeper.database.read(lambda tx: tx.one("read_thread", {"thread_id": thread_id}))
            if found is None or self._delete(thread_id, found[0]):
                return self.done
        if self.rule.lets_checkpoints_go:
            self._add(self.keeper.prune_thread(thread_id, self.rule))
        return self.done

    def _delete(self, thread_id: str, uid: str) -> bool:
        assert self.rule.at_rest_since is not None
        is_gone = self.keeper.delete_resting(thread_id, uid, self.rule.at_rest_since, self.now)
        self._add(Pruned(threads=int(is_gone)))
        return is_gone

    def _add(self, more: Pruned) -> None:
        self.done = self.done.plus(more)

    def _resting(self) -> Iterator[Row]:
        return self._pages("list_resting_threads", {"since": self.rule.at_rest_since})

    def _long(self) -> Iterator[Row]:
        rule = self.rule
        before = NEVER if rule.before is None else rule.before
        return self._pages("list_long_threads", {"keep_last": rule.keep_last or 0, "before": before})

    def _pages(self, query: str, params: dict[str, int | None]) -> Iterator[Row]:
        """Find threads page by page: nothing is held between them, and new ones may come."""
        after = ""
        while not self.stopped.is_set():
            known = {**params, "owner": self.keeper.bodies.owner, "after": after, "most": PAGE}
            page = self.keeper.database.read(lambda tx, known=known: tx.all(query, known))  # type: ignore[misc]
            for row in page:
                if self.stopped.is_set():
                    return
                yield row
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def _let_facts_go(self, before: Instant) -> None:
        """Let go of facts that nobody can ask for any more, page by page."""
        place = (-1, "")
        while not self.stopped.is_set():
            page, gone = self.keeper.let_facts_go(before, place, PAGE)
            self._add(gone)
            if len(page) < PAGE:
                return
            place = page[-1]

    def _sweep(self, query: str, params: dict[str, Any]) -> None:
        """Delete what has expired, some at a time."""
        while not self.stopped.is_set():
            known = {**params, "most": SWEPT_AT_ONCE}
            count = self.keeper.database.write("sweep", lambda tx, known=known: tx.run(query, known))  # type: ignore[misc]
            self._add(Pruned(rows=count))
            if count < SWEPT_AT_ONCE:
                return


def tidy_up_from_time_to_time(store: Store, retention: Retention, stopped: Event) -> None:
    """Begin the background thread of a store. It ends when the store is closed, or when nobody has it any more."""
    Thread(
        target=_go_round, args=(ref(store), retention.seconds_between, stopped), name="bide-retention", daemon=True
    ).start()


def _go_round(find: Callable[[], Store | None], seconds: float, stopped: Event) -> None:
    pause = min(seconds, LATEST_FIRST_ROUND) * random.random()
    while not stopped.wait(pause):
        store = find()
        if store is None:
            return
        tidy_up(store, stopped)
        del store
        pause = seconds


def tidy_up(store: Store, stopped: Event) -> None:
    """Make one round, and tell the log what came of it. Whatever goes wrong is told there, too, and tried again."""
    try:
        done = prune(store, is_patient=False)
    except Exception as problem:  # noqa: BLE001 — nobody called this, so there is nobody to raise it to
        if not stopped.is_set():
            logger.warning("Retention could not go through %s, and tries again later: %s", store.database.path, problem)
        return
    for thread_id, why in done.failed:
        logger.warning("Retention leaves thread %r as it is: %s", thread_id, why)
    if any(done[:4]):
        logger.info(
            "Retention let go %d threads, %d checkpoints and %d other rows (%d bytes) of %s.",
            *done[:4],
            store.database.path,
        )
