"""Schedules: runs that are started by the clock, each once, however many workers look at it."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, cast

from bide.clock import Instant, iso
from bide.errors import BideError, StoreBusyError, StoreUnavailableError
from bide.store.bodies import Bodies
from bide.store.correlating import owned
from bide.store.database import Row, Transaction
from bide.store.needed import PLAIN
from bide.store.notes import note_new_thread
from bide.store.passing import let_go_when_it_ends
from bide.store.places import schedule_place
from bide.store.queue_rows import Start
from bide.store.reads import noticing_damage
from bide.store.schedule_rows import NEVER, Plan, ScheduleError, ScheduleRow
from bide.store.starting import Accepting, Raced
from bide.store.writes import Writing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bide.store.store import Store

logger = logging.getLogger("bide.schedules")


class Scheduling:
    """The part of a `Store` that starts runs by the clock."""

    @property
    def _store(self) -> Store:
        return cast("Store", self)

    # ── Keeping ────────────────────────────────────────────────────────────────────────────────────────────────────

    def put_schedule(
        self, owner: str, graph: str, rule: tuple[str, str], plan: Plan, *, is_paused: bool | None = None
    ) -> ScheduleRow:
        """Make a schedule, or let the one of this name be another one; return how it stands.

        `rule` is its cron and its time zone. Said again, it goes on as it was: it stays paused unless `is_paused` says
        otherwise, and what came due meanwhile is not forgotten. Only another rule makes it due anew.
        """
        store, (cron, timezone) = self._store, rule
        key = {"schedule_id": owned(owner, plan.name)}
        body = close_plan(store.bodies, key["schedule_id"], plan)

        def put(tx: Transaction) -> ScheduleRow:
            now = store.clock.now()
            held = tx.one("hold_schedule", key)
            before = None if held is None else _row(held)
            pauses = before is not None and before.is_paused if is_paused is None else is_paused
            goes_on = before is not None and (before.cron, before.timezone) == rule and pauses == before.is_paused
            first = before.next_at if before is not None and goes_on and before.next_at < NEVER else None
            said = {"owner": owner, "graph": graph, "cron": cron, "timezone": timezone, "is_paused": int(pauses)}
            tx.run(
                "put_schedule", {**key, **said, "next_at": _next_at(rule, plan, now, first), "now": now, "body": body}
            )
            return _row(tx.all("read_schedule", key)[0])

        return store.database.write("schedule", put)

    def planned(self, owner: str) -> list[tuple[ScheduleRow, Plan]]:
        """Read all schedules of an owner, each with what it starts."""
        store, every = self._store, sys.maxsize

        def read(tx: Transaction) -> list[tuple[ScheduleRow, Plan]]:
            params = {"owner": owner, "after": "", "most": every}
            rows = map(_row, tx.all("list_schedules", params))
            return [(row, open_plan(store.bodies, tx, row)) for row in rows]

        return store.database.read(read)

    def schedule_of(self, owner: str, name: str) -> ScheduleRow | None:
        """Read a schedule."""
        key = {"schedule_id": owned(owner, name)}
        row = self._store.database.read(lambda tx: tx.one("read_schedule", key))
        return None if row is None else _row(row)

    def schedules(self, owner: str, *, after: str = "", most: int = 100) -> list[ScheduleRow]:
        """List the schedules of an owner by name; go on behind the last one that was seen."""
        params = {"owner": owner, "after": owned(owner, after), "most": most}
        return [_row(row) for row in self._store.database.read(lambda tx: tx.all("list_schedules", params))]

    def delete_schedule(self, owner: str, name: str) -> bool:
        """Delete a schedule; return whether there was one. What it has started goes on."""
        return self._change("delete_schedule", {"schedule_id": owned(owner, name)})

    def pause_schedule(self, owner: str, name: str) -> bool:
        """Let a schedule start nothing until it is resumed; return whether it was going on."""
        return self._change("pause_schedule", {"schedule_id": owned(owner, name)})

    def resume_schedule(self, owner: str, name: str) -> bool:
        """Let a paused schedule go on from now; return whether it was paused."""
        store, key = self._store, {"schedule_id": owned(owner, name)}

        def resume(tx: Transaction) -> bool:
            held = tx.one("hold_schedule", key)
            if held is None or not _row(held).is_paused:
                return False
            row = _row(held)
            plan = open_plan(store.bodies, tx, row)
            next_at = _next_at((row.cron, row.timezone), plan, store.clock.now())
            return tx.run("resume_schedule", {**key, "next_at": next_at}) > 0

        return store.database.write("schedule", resume)

    def _change(self, query: str, params: dict[str, Any]) -> bool:
        return self._store.database.write("schedule", lambda tx: tx.run(query, params)) > 0

    # ── Starting what is due ───────────────────────────────────────────────────────────────────────────────────────

    def start_due(self, versions: Mapping[str, str], most: int = 100) -> int:
        """Start the runs of schedules that are due; return how many there were.

        `versions` are those of the graphs that are known here: runs are pinned to the version of whoever starts them.
        """
        store, now = self._store, self._store.clock.now()
        due = store.database.read(lambda tx: tx.all("list_due_schedules", {"now": now, "most": most}))
        started = sum(self._start_one(schedule_id, versions) for (schedule_id,) in due)
        if started:
            store.ring()
        return started

    def _start_one(self, schedule_id: str, versions: Mapping[str, str]) -> int:
        """Start what one schedule is due for; if that cannot be, no other one is kept from it."""
        try:
            return self._fire(schedule_id, versions)
        except Raced:
            return 0  # somebody made the same thread at this moment; the next look finds it
        except (StoreBusyError, StoreUnavailableError):
            raise  # it is the database, not the schedule
        except BideError as problem:
            self._pass_over(schedule_id, problem)
        return 0

    def _fire(self, schedule_id: str, versions: Mapping[str, str]) -> int:
        """Start the runs and note when the schedule is due next, in one transaction."""
        store = self._store
        ended: list[str] = []

        def fire(tx: Transaction) -> int:
            firing = _Firing(Writing(tx, store.bodies, store.clock.now()), versions)
            started = firing.fire(schedule_id)
            ended[:] = firing.ended
            return started

        started = store.database.write("start_due", fire)
        store.after_end(ended)
        return started

    def _pass_over(self, schedule_id: str, problem: BideError) -> None:
        """Note why nothing was started, and go on to the next time: what cannot be started is not due for ever."""
        from bide.store.cron import cron_of

        store, error = self._store, f"{type(problem).__name__}: {problem}"

        def move(tx: Transaction) -> None:
            now = store.clock.now()
            row = tx.one("hold_due_schedule", {"schedule_id": schedule_id, "now": now})
            if row is None:
                return
            found = _row(row)
            key = {"schedule_id": schedule_id, "error": store.bodies.readable(error)}
            try:
                next_at = cron_of(found.cron, found.timezone).after(now)
            except ScheduleError:
                tx.send("stop_schedule", key)
            else:
                tx.send("move_schedule", {**key, "next_at": next_at, "last_at": None})

        store.database.write("pass_over", move)
        logger.warning("Schedule %r has started nothing this time: %s", schedule_id, error)


class _Firing:
    """One transaction that starts what a schedule is due for."""

    def __init__(self, writing: Writing, versions: Mapping[str, str]) -> None:
        self.writing = writing
        self.versions = versions
        self.ended: list[str] = []

    def fire(self, schedule_id: str) -> int:
        """Start all that is due, unless somebody else does; return how many runs that were."""
        from bide.store.cron import cron_of

        tx, now = self.writing.tx, self.writing.now
        held = tx.one("hold_due_schedule", {"schedule_id": schedule_id, "now": now})
        if held is None:
            return 0
        row = _row(held)
        plan = open_plan(self.writing.bodies, tx, row)
        if plan.is_of_thread and not self._has_thread(row, plan):
            tx.send("delete_schedule", {"schedule_id": schedule_id})
            return 0
        due = cron_of(row.cron, row.timezone).due(row.next_at, now, plan.missed)
        instants = [instant for instant in due.instants if not _is_over(plan, instant)]
        started = sum(self._start(row, plan, instant) for instant in instants)
        last_at = instants[-1] if instants else None
        next_at = NEVER if _is_over(plan, due.next_at) else due.next_at
        key = {"schedule_id": schedule_id, "next_at": next_at, "last_at": last_at, "error": None}
        tx.send("move_schedule", key)
        return started

    def _has_thread(self, row: ScheduleRow, plan: Plan) -> bool:
        """Whether the thread of a schedule is there, and not another one that has taken its name."""
        found = self.writing.tx.one("owner_of_thread", {"thread_id": plan.thread_id})
        return found is not None and found[0] == row.owner

    def _start(self, row: ScheduleRow, plan: Plan, instant: Instant) -> bool:
        """Start the run of one instant. Its key is the instant's: also a clock that was set back starts it once."""
        said = {"schedule": plan.name, "scheduled_at": iso(instant)}
        config = {**plan.options.get("config", {})}
        config["metadata"] = {**config.get("metadata", {}), **said}
        start = Start(
            graph=row.graph,
            input=plan.input,
            thread_id=plan.thread_id,
            options=PLAIN.encode({**plan.options, "config": config}, "options"),
            queue=plan.queue,
            version=self.versions.get(row.graph, ""),
            priority=plan.priority,
            due_at=instant + spread(row.schedule_id, instant, plan.jitter) if plan.jitter else None,
            key=f"schedule:{plan.name}:{instant}",
            digest="schedule",
            if_busy=plan.if_busy,
            limit=plan.limit,
            owner=row.owner,
            notes=plan.notes,
        )
        accepting = Accepting(self.writing, start)
        started = accepting.accept()
        self.ended += accepting.ended
        if started.is_new and plan.thread_id is None:
            self._note(row, plan, started.thread_id)
        return started.is_new

    def _note(self, row: ScheduleRow, plan: Plan, thread_id: str) -> None:
        """Note what is said about a new thread, and whether it is to be kept."""
        if plan.metadata is not None:
            note_new_thread(self.writing, row.owner, thread_id, plan.metadata)
        if plan.on_end == "delete":
            let_go_when_it_ends(self.writing.tx, thread_id)


def _is_over(plan: Plan, instant: Instant) -> bool:
    return plan.end_at is not None and instant > plan.end_at


def _next_at(rule: tuple[str, str], plan: Plan, now: Instant, first: Instant | None = None) -> Instant:
    """Return when a schedule is due next: as it was to be, or from now on."""
    from bide.store.cron import cron_of  # those without schedules need not load what reads them

    after = cron_of(*rule).after(now)
    next_at = after if first is None else first
    return NEVER if _is_over(plan, next_at) else next_at


def spread(schedule_id: str, instant: Instant, jitter: int) -> int:
    """Return by how many milliseconds a run is put off: any number up to `jitter`, and the same for whoever asks."""
    digest = PLAIN.digest([schedule_id, instant])
    return int(digest[:12], 16) % (jitter + 1)


def close_plan(bodies: Bodies, schedule_id: str, plan: Plan) -> bytes:
    """Return what is stored of what a schedule starts."""
    said = {**plan._asdict(), "limit": None if plan.limit is None else list(plan.limit)}
    return bodies.close_small(schedule_place(schedule_id), PLAIN.encode(said, "schedule"))


def open_plan(bodies: Bodies, tx: Transaction, row: ScheduleRow) -> Plan:
    """Read what a schedule starts."""
    place = schedule_place(row.schedule_id)
    opened = bodies.open(tx, place, row.body)
    with noticing_damage(place):
        said = cast("dict[str, Any]", PLAIN.decode(opened, "schedule"))
        limit = said.pop("limit")
        return Plan(**said, limit=None if limit is None else (limit[0], limit[1]))


def _row(row: Row) -> ScheduleRow:
    return ScheduleRow(*row)._replace(is_paused=bool(row[5]))
