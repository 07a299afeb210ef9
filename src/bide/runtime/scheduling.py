"""Schedules: runs that are started after the words of cron."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack, cast, get_args

from bide.clock import Instant
from bide.errors import did_you_mean
from bide.graph.compiled import CompiledGraph
from bide.runtime.registered import Graphs
from bide.runtime.starts import StartOptions, read_start
from bide.runtime.views import moment
from bide.store import Store
from bide.store.needed import PLAIN
from bide.store.schedule_rows import NEVER, Missed, OnEnd, Plan, ScheduleError, ScheduleRow
from bide.waits.durations import Duration, milliseconds

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Schedule:
    """A rule after which runs are started."""

    name: str
    graph: str
    cron: str
    timezone: str
    explained: str
    """When that is, in words."""
    next_at: datetime | None
    """When it is due next; None while it is paused, and when it has come to its end."""
    last_at: datetime | None
    """For which instant it has started a run last."""
    is_paused: bool
    created_at: datetime
    owner: str = ""
    error: str | None = None
    """Why it has started nothing when it was last due, if it has not."""

    @property
    def id(self) -> str:
        """Its name, which is all that it takes to find it."""
        return self.name


class OwnOptions(TypedDict, total=False):
    """What may be said about a schedule itself."""

    missed: Missed
    jitter: Duration | None
    until: datetime | None
    paused: bool | None
    """Whether it begins paused; left out, it stays as it is."""
    on_end: OnEnd
    is_of_thread: bool
    """Whether it is over when its thread is gone; otherwise the next run makes that thread again."""
    metadata: Mapping[str, Any] | None
    """What is said about each new thread, for those who list threads."""
    about: Mapping[str, Any] | None
    """Kept with the schedule, for whoever made it."""


class ScheduleOptions(StartOptions, OwnOptions, total=False):
    """What may be said about a schedule, and about the runs that it starts."""


class Schedules:
    """The part of an application that starts runs by the clock."""

    store: Store
    graphs: Graphs

    def schedule(
        self,
        name: str,
        graph: str | CompiledGraph,
        cron: str,
        input: Any = None,
        *,
        timezone: str = "UTC",
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Start a run of a graph whenever `cron` says so, on a new thread, or on `thread_id` each time.

        The same name again changes the schedule, and otherwise lets it go on as it was; so call this whenever your
        program begins. `jitter="5m"` puts each run off by any time up to that. If nobody was there when it was due,
        `missed` decides: `"once"` starts one run for all such times, `"skip"` none, `"all"` one for each, up to 100.
        After `until` it starts nothing. With `on_end="delete"` the new thread of each run is deleted a minute after the
        run has ended.

        The other options are those of `start`; on a busy thread, runs are put behind the live one
        (`if_busy="enqueue"`).
        """
        known = self.graphs.get(graph if isinstance(graph, str) else graph.name)
        own, said = _parted(options)
        _check(own, said)
        # A schedule has nothing to go on with: without an input, each run begins with an empty one.
        given = {} if input is None else input
        start = read_start(known, given, {"if_busy": "enqueue", **said}, self.store.clock)
        jitter, until, metadata, about = own.get("jitter"), own.get("until"), own.get("metadata"), own.get("about")
        plan = Plan(
            name=_checked_name(name),
            input=start.input,
            options={} if start.options is None else cast("dict[str, Any]", PLAIN.decode(start.options, "options")),
            thread_id=None if start.thread_id is None else _checked_text("thread_id", start.thread_id),
            if_busy=start.if_busy,
            queue=_checked_text("queue", start.queue),
            priority=start.priority,
            limit=None if start.limit is None else (_checked_text("limit", start.limit[0]), start.limit[1]),
            jitter=0 if jitter is None else milliseconds(jitter, "jitter"),
            missed=own.get("missed", "once"),
            end_at=None if until is None else _instant(until),
            on_end=own.get("on_end", "keep"),
            is_of_thread=own.get("is_of_thread", False) and start.thread_id is not None,
            notes=start.notes,
            metadata=None if metadata is None else dict(metadata),
            about=None if about is None else dict(about),
        )
        owner = self._owner(start.owner)
        row = self.store.put_schedule(owner, known.name, (cron, timezone), plan, is_paused=own.get("paused"))
        return _shown(row)

    def schedules(self, *, owner: str | None = None, after: str | None = None, most: int = 100) -> Sequence[Schedule]:
        """List schedules by their names; `after` is the last name that was seen."""
        return [_shown(row) for row in self.store.schedules(self._owner(owner), after=after or "", most=most)]

    def find_schedule(self, name: str, *, owner: str | None = None) -> Schedule | None:
        """Return a schedule, if there is one of this name."""
        row = self.store.schedule_of(self._owner(owner), name)
        return None if row is None else _shown(row)

    def unschedule(self, name: str, *, owner: str | None = None) -> bool:
        """Delete a schedule; return whether there was one. What it has started goes on."""
        return self.store.delete_schedule(self._owner(owner), name)

    def pause_schedule(self, name: str, *, owner: str | None = None) -> Schedule:
        """Let a schedule start nothing until it is resumed, also if the program says it again meanwhile."""
        self.store.pause_schedule(self._owner(owner), name)
        return self._found(name, owner)

    def resume_schedule(self, name: str, *, owner: str | None = None) -> Schedule:
        """Let a paused schedule go on from now; what came due while it was paused is not made up for."""
        self.store.resume_schedule(self._owner(owner), name)
        return self._found(name, owner)

    def start_due(self) -> int:
        """Start what is due, as every worker does by itself; return how many runs there were.

        However many look at the same time, each run is started once. A graph need not be known here: whoever serves it
        drives its runs.
        """
        return self.store.start_due({known.name: known.version for known in self.graphs})

    def _owner(self, owner: str | None) -> str:
        return self.store.bodies.owner if owner is None else owner

    def _found(self, name: str, owner: str | None) -> Schedule:
        row = self.store.schedule_of(self._owner(owner), name)
        if row is None:
            known = [schedule.name for schedule in self.schedules(owner=owner)]
            raise ScheduleError(
                f"There is no schedule {name!r} in {self.store.database.path!r}.{did_you_mean(name, known)} "
                f"See app.schedules()."
            )
        return _shown(row)


def _shown(row: ScheduleRow) -> Schedule:
    return Schedule(
        row.schedule_id.rpartition("\n")[2],
        row.graph,
        row.cron,
        row.timezone,
        _explained(row),
        None if row.is_paused or row.next_at >= NEVER else moment(row.next_at),
        moment(row.last_at),
        row.is_paused,
        moment(row.created_at),  # type: ignore[arg-type]
        row.owner,
        row.error,
    )


def _explained(row: ScheduleRow) -> str:
    from bide.store.cron import cron_of  # those without schedules need not load what reads them

    try:
        return cron_of(row.cron, row.timezone).explained()
    except ScheduleError as problem:
        return f"({problem})"


def _instant(until: datetime) -> Instant:
    if not isinstance(until, datetime) or until.tzinfo is None:
        raise ScheduleError(f"until={until!r} could mean two dozen instants. Give an aware datetime.")
    return int(until.timestamp() * 1000)


def _parted(options: ScheduleOptions) -> tuple[OwnOptions, StartOptions]:
    own = {name: value for name, value in options.items() if name in OwnOptions.__annotations__}
    said = {name: value for name, value in options.items() if name not in own}
    return cast("OwnOptions", own), cast("StartOptions", said)


def _check(own: OwnOptions, said: StartOptions) -> None:
    for option, choices in (("missed", Missed), ("on_end", OnEnd)):
        if option in own and own.get(option) not in get_args(choices):
            raise ScheduleError(f"{option}={own.get(option)!r} is none of {', '.join(map(repr, get_args(choices)))}.")
    for name in ("key", "delay", "at"):
        if name in said:
            raise ScheduleError(f"A schedule has no {name}=…: its cron says when its runs are due, and each has a key.")


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ScheduleError(
            f"{name!r:.80} is no name for a schedule. Give one of 1 to {LONGEST_NAME} characters that can be printed."
        )
    return name


def _checked_text(what: str, text: str) -> str:
    """Refuse at once what a database could not keep when the schedule is due."""
    if not text or "\0" in text or text.encode("utf-8", "replace").decode() != text:
        raise ScheduleError(f"{what}={text!r:.80} cannot be kept: give a text that is not empty and has no NUL in it.")
    return text
