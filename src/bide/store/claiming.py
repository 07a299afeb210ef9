"""Claiming ready runs, and taking them from workers that are gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, cast

from bide.store.database import Row, Transaction
from bide.store.ending import end_thread
from bide.store.facts import event_of, head_of
from bide.store.lanes import read_lane
from bide.store.lease import Taken
from bide.store.locks import hold_keys
from bide.store.queue_rows import Claim
from bide.store.rows import Lease, Report
from bide.store.starting import start_place
from bide.store.workers import is_gone
from bide.store.writes import Writing
from bide.types import RunStatus

if TYPE_CHECKING:
    from bide.store.store import Store

MOST_CRASHES = 5
"""After so many workers were lost over a run, it is taken out of service until somebody releases it."""
BACK_OFF = 1_000
"""Milliseconds before a run is claimed again after its worker was lost; doubled each time."""


InTurn = Callable[[], list[str]]
"""Whose turn it is, when asked."""


class Reaped(NamedTuple):
    """What was taken from workers that are gone."""

    ready: int = 0
    dead: int = 0


class Taker(NamedTuple):
    """Somebody whose runs are ready in a lane: an owner, or a limit."""

    lane: str
    owner: str = ""
    limit: str = ""


class Turn(NamedTuple):
    """Whose turn it was last, in a lane; and in which lane, of all."""

    owner: str = ""
    limit: str = ""
    was_limited: bool = True
    lane: str = ""

    def after(self, taker: Taker) -> Turn:
        """Return the turn when this one was served."""
        if taker.limit:
            return self._replace(limit=taker.limit, was_limited=True)
        return self._replace(owner=taker.owner, was_limited=False)


LAST = ""
"""Under which the lane is kept that was served last."""


class Claiming:
    """The part of a `Store` that hands runs to workers."""

    @property
    def _store(self) -> Store:
        return cast("Store", self)

    def claim(self, lanes: Sequence[str], most: int) -> list[Claim]:
        """Claim up to so many ready runs of these lanes. Lanes, owners and limits take turns; among the runs of one,
        priority and age decide."""
        store = self._store
        if most < 1 or not lanes:
            return []

        def work(tx: Transaction, taken: Taken) -> list[Claim]:
            now = store.clock.now()
            claims = _Claiming(tx, now, taken.begin(tx, now), store.turns).claim(lanes, most)
            for claim in claims:
                taken.add(claim.lease)
            return claims

        with store.keeper.taking() as taken:
            return store.database.write("claim", lambda tx: work(tx, taken))

    def open_claim(self, claim: Claim) -> Claim:
        """Open what a claimed run was started with: not when it is claimed, so that one that is damaged harms no
        other."""
        store = self._store

        def opened(tx: Transaction, what: str, stored: bytes | None) -> bytes | None:
            place = start_place(claim.lease.thread_id, claim.lease.run_id, what)
            return None if stored is None else store.bodies.open(tx, place, stored)

        if claim.input is None and claim.options is None:
            return claim
        return store.database.read(
            lambda tx: claim._replace(
                input=opened(tx, "input", claim.input), options=opened(tx, "options", claim.options)
            )
        )

    def driven(self) -> frozenset[tuple[str, int]]:
        """Return run and epoch of all that is leased to this worker, as the database has it."""
        rows = self._store.database.read(lambda tx: tx.all("read_driven", {"worker_id": self._store.worker_id}))
        return frozenset((row[0], row[1]) for row in rows)

    def next_ready(self, lanes: Sequence[str]) -> int | None:
        """Return from when on a run of these lanes may be claimed."""

        def read(tx: Transaction) -> int | None:
            asked = [tx.ask("next_ready", {"lane": lane}) for lane in lanes]
            return min((answer()[0][0] for answer in asked if answer()[0][0] is not None), default=None)

        return self._store.database.read(read)

    def promote_due(self, most: int = 500) -> int:
        """Make runs ready whose time has come."""
        store = self._store

        def work(tx: Transaction) -> int:
            now = store.clock.now()
            threads = sorted({row[0] for row in tx.all("list_due_runs", {"now": now, "most": most})})
            for thread_id in threads:
                tx.send("hold_thread", {"thread_id": thread_id})
                tx.send("promote_next", {"thread_id": thread_id, "now": now})
            return len(threads)

        return store.database.write("promote", work)

    # ── Workers that are gone ──────────────────────────────────────────────────────────────────────────────────────

    def reap(self, most: int = 100) -> Reaped:
        """Take the runs of workers that are gone from them, and make them ready again, or put them out of service."""
        store = self._store
        # A worker that has slept itself judges nobody by a lease; then only a process that is gone counts.
        now = store.clock.now() if store.keeper.is_steady() else 0
        holders = store.database.read(lambda tx: tx.all("list_holders", {}))
        gone = [row for row in holders if row[0] != store.worker_id and _is_gone(row, now)]
        total = Reaped()
        for worker_id, *_, lease_until in gone:
            reaped = self._reap_worker(worker_id, lease_until, most)
            total = Reaped(total.ready + reaped.ready, total.dead + reaped.dead)
        if total.ready:
            store.ring()
        return total

    def _reap_worker(self, worker_id: str, lease_until: int | None, most: int) -> Reaped:
        store = self._store
        ended: list[str] = []

        def work(tx: Transaction) -> Reaped:
            ended.clear()
            # Before anything else: a worker that was heard of since we looked keeps its row, and its runs.
            seen = {"worker_id": worker_id, "lease_until": lease_until}
            if lease_until is not None and tx.run("lay_off_worker", seen) != 1:
                return Reaped()
            writing = Writing(tx, store.bodies, store.clock.now())
            held = tx.all("list_held", {"worker_id": worker_id, "most": most})
            for thread_id in sorted({row[0] for row in held}):
                tx.send("hold_thread", {"thread_id": thread_id})
            dead = sum(_reap_run(writing, worker_id, row, ended) for row in held)
            return Reaped(len(held) - dead, dead)

        reaped = store.database.write("reap", work)
        store.after_end(ended)
        return reaped

    def give_back(self) -> Reaped:
        """Make runs ready again that are leased to this worker and that nobody here drives: their end could not be
        written. It counts as a loss, so that what fails again and again is put out of service."""
        store = self._store
        worker_id = store.worker_id
        rows = store.database.read(lambda tx: tx.all("list_held", {"worker_id": worker_id, "most": 1000}))
        left = [row for row in rows if not store.keeper.drives(row[1])]
        ended: list[str] = []

        def work(tx: Transaction) -> Reaped:
            ended.clear()
            writing = Writing(tx, store.bodies, store.clock.now())
            for thread_id in sorted(row[0] for row in left):
                tx.send("hold_thread", {"thread_id": thread_id})
            dead = sum(_reap_run(writing, worker_id, row, ended) for row in left)
            return Reaped(len(left) - dead, dead)

        if not left:
            return Reaped()
        given = store.database.write("give_back", work)
        store.after_end(ended)
        return given

    def release(self, thread_id: str) -> bool:
        """Put a run that is dead or blocked back into service; return whether there was one."""
        store = self._store

        def work(tx: Transaction) -> bool:
            writing = Writing(tx, store.bodies, store.clock.now())
            tx.send("hold_thread", {"thread_id": thread_id})
            live = tx.one("read_live", {"thread_id": thread_id})
            if live is None or live[1] not in (RunStatus.DEAD.value, RunStatus.BLOCKED.value):
                return False
            tx.send("release_run", {"thread_id": thread_id, "run_id": live[0], "now": writing.now})
            event = event_of("run.released", was=live[1])
            writing.log_events(thread_id, live[0], head_of(tx, thread_id), [event])
            return True

        released = store.database.write("release", work)
        if released:
            store.ring()
        return released


def _is_gone(row: Row, now: int) -> bool:
    """Whether a worker is gone: its row is, its process, or its lease."""
    _, host, pid, started, lease_until = row
    return host is None or is_gone(host, pid, started, lease_until, now)


def _reap_run(writing: Writing, worker_id: str, row: Row, ended: list[str]) -> bool:
    """Take a run from its worker; return whether it is out of service now."""
    thread_id, run_id, epoch, before = row
    key = {"thread_id": thread_id, "run_id": run_id, "epoch": epoch}
    # Only losses in the same place count: a long run may well see several deployments.
    crashes: int = 1 if writing.tx.one("made_progress", key) else before + 1
    is_dead = crashes >= MOST_CRASHES
    status = RunStatus.DEAD if is_dead else RunStatus.READY
    error = f"{crashes} workers were lost while they drove this run, and none brought it forward" if is_dead else None
    # The first loss is most often a deployment; only what is lost again and again is made to wait.
    wait = 0 if crashes == 1 else BACK_OFF * 2 ** (crashes - 2)
    changes = {**key, "status": status.value, "due_at": writing.now + wait, "error": error, "crashes": crashes}
    if not writing.tx.run("reap_run", {**changes, "worker_id": worker_id, "now": writing.now}):
        return False
    event = event_of("run.dead" if is_dead else "run.reaped", crashes=crashes, worker=worker_id)
    writing.log_events(thread_id, run_id, head_of(writing.tx, thread_id), [event])
    if is_dead:
        ended += end_thread(writing, thread_id, run_id, Report(RunStatus.DEAD, error=error))
    return is_dead


class _Claiming:
    """One transaction that claims runs: lanes take turns, and in each of them owners, and limits, take turns."""

    def __init__(self, tx: Transaction, now: int, worker_id: str, turns: dict[str, Turn]) -> None:
        self.tx = tx
        self.now = now
        self.worker_id = worker_id
        self.turns = turns

    def claim(self, lanes: Sequence[str], most: int) -> list[Claim]:
        """Give each a share of the free slots, one after the other, until there are none left."""
        lanes = self._in_turn_of_lanes(lanes)
        asked = {lane: (self._owners(lane, most), self._limits(lane, most)) for lane in lanes}
        takers = {lane: self._takers(lane, owners(), limits()) for lane, (owners, limits) in asked.items()}
        limited = [taker.limit for line in takers.values() for taker in line if taker.limit]
        if limited:
            # Before any run is locked: what is counted under them stays true, and nobody waits with something in hand.
            hold_keys(self.tx, (f"limit:{key}" for key in limited))
        claims: list[Claim] = []
        waiting = [taker for row in zip_longest(*takers.values()) for taker in filter(None, row)]
        while waiting and len(claims) < most:
            waiting = self._round(waiting, most, claims)
        return claims

    def _round(self, waiting: list[Taker], most: int, claims: list[Claim]) -> list[Taker]:
        """Let each claim its share; return those that may have more."""
        share = max(1, (most - len(claims)) // len(waiting))
        left = []
        for taker in waiting:
            wanted = min(1 if taker.limit else share, most - len(claims))
            rows = self._claim(taker, wanted) if wanted > 0 else []
            claims += map(_claimed, rows)
            if rows:
                self.turns[taker.lane] = self._turn(taker.lane).after(taker)
                self.turns[LAST] = Turn(lane=taker.lane)
            if len(rows) == wanted > 0:
                left.append(taker)
        return left

    def _claim(self, taker: Taker, most: int) -> Sequence[Row]:
        params = {"lane": taker.lane, "now": self.now, "worker_id": self.worker_id}
        if taker.limit:
            return self.tx.all("claim_limited", {**params, "limit_key": taker.limit})
        return self.tx.all("claim_ready", {**params, "owner": taker.owner, "most": most})

    # ── Whose turn it is ───────────────────────────────────────────────────────────────────────────────────────────

    def _turn(self, lane: str) -> Turn:
        return self.turns.get(lane, Turn())

    def _in_turn_of_lanes(self, lanes: Sequence[str]) -> list[str]:
        """Begin behind the lane that was served last."""
        last = self.turns.get(LAST, Turn()).lane
        at = lanes.index(last) + 1 if last in lanes else 0
        return [*lanes[at:], *lanes[:at]]

    def _owners(self, lane: str, most: int) -> InTurn:
        """Ask for those behind whoever had the last turn, then for the others; without a name comes first of all."""
        last = self._turn(lane).owner
        nobody = self.tx.ask("first_owner", {"lane": lane})
        behind = self.tx.ask("ready_owners", {"lane": lane, "after": last, "most": most})
        others = self.tx.ask("ready_owners", {"lane": lane, "after": "", "most": most}) if last else behind

        def answer() -> list[str]:
            named = [row[0] for row in behind()], [""] if nobody() else [], [row[0] for row in others()]
            return list(dict.fromkeys(owner for part in named for owner in part))[:most]

        return answer

    def _limits(self, lane: str, most: int) -> InTurn:
        last = self._turn(lane).limit
        behind = self.tx.ask("ready_limits", {"lane": lane, "after": last, "most": most})
        others = self.tx.ask("ready_limits", {"lane": lane, "after": "", "most": most}) if last else behind
        return lambda: list(dict.fromkeys(row[0] for row in (*behind(), *others())))[:most]

    def _takers(self, lane: str, owners: list[str], limits: list[str]) -> list[Taker]:
        """Put owners and limits of a lane in line, in turns; whoever was not served last begins."""
        free, bound = [Taker(lane, owner=owner) for owner in owners], [Taker(lane, limit=limit) for limit in limits]
        pair = (free, bound) if self._turn(lane).was_limited else (bound, free)
        return [taker for row in zip_longest(*pair) for taker in row if taker is not None]


def _claimed(row: Row) -> Claim:
    thread_id, run_id, epoch, lane, crashes, given, options, limit_key = row
    return Claim(Lease(thread_id, run_id, epoch), read_lane(lane).graph, crashes, given, options, limit_key)
