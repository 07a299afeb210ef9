"""What may be said about a run that is started: read once, at the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, get_args

from bide.clock import Clock, Instant
from bide.engine.given import write_given
from bide.errors import GraphError, did_you_mean
from bide.graph.accepting import STORED, write_options
from bide.runtime.registered import Registered
from bide.store.lanes import DEFAULT_QUEUE
from bide.store.needed import PLAIN
from bide.store.queue_rows import IfBusy, Start
from bide.types import Durability, OnPaused
from bide.waits.durations import Duration, milliseconds


class StartOptions(TypedDict, total=False):
    """What may be said about a run, beside its graph and its input."""

    thread_id: str | int | None
    """Which thread; without it, a new one."""
    key: str | None
    """The same key starts a run once, however often it is asked for."""
    delay: Duration | None
    at: datetime | None
    if_busy: IfBusy
    queue: str
    priority: int
    limit: tuple[str, int] | None
    """Of runs with the same name of a limit, at most so many run at once."""
    owner: str | None
    config: Mapping[str, Any] | None
    context: Any
    interrupt_before: Sequence[str] | str | None
    interrupt_after: Sequence[str] | str | None
    on_paused: OnPaused | None
    durability: Durability | None
    checkpoint: str | Mapping[str, Any] | None


def read_start(known: Registered, given: Any, said: StartOptions, clock: Clock) -> Start:
    """Put together what the store is asked to accept."""
    _check(said)
    options = {name: value for name, value in said.items() if name in STORED}
    if said.get("if_busy") in ("interrupt", "rollback"):
        options.setdefault("on_paused", "restart")
    thread_id = said.get("thread_id")
    # Without input, a thread that is there goes on where it stands.
    is_going_on = given is None and thread_id is not None
    body = None if is_going_on else write_given(known.graph.spec.codec, given)
    key = said.get("key")
    return Start(
        graph=known.name,
        input=body,
        thread_id=None if thread_id is None else str(thread_id),
        options=write_options(said.get("config"), options),
        queue=said.get("queue", DEFAULT_QUEUE),
        version=known.version,
        priority=said.get("priority", 0),
        due_at=_due_at(said, clock),
        key=key,
        digest="" if key is None else PLAIN.digest([known.name, body, thread_id]),
        if_busy=said.get("if_busy", "reject"),
        limit=said.get("limit"),
        owner=said.get("owner"),
    )


def _check(said: StartOptions) -> None:
    known = StartOptions.__annotations__
    for name in said:
        if name not in known:
            raise GraphError(
                f"start() has no option {name!r}.{did_you_mean(name, known)} There are {', '.join(known)}."
            )
    if said.get("if_busy", "reject") not in get_args(IfBusy):
        raise GraphError(f"if_busy={said['if_busy']!r} is none of {', '.join(map(repr, get_args(IfBusy)))}.")
    queue = said.get("queue", DEFAULT_QUEUE)
    if not queue or "/" in queue:
        raise GraphError(f"queue={queue!r}: give a word without '/'.")
    limit = said.get("limit")
    if limit is not None and (len(limit) != 2 or not isinstance(limit[1], int) or limit[1] < 1):
        raise GraphError(f"limit={limit!r}: give a name and how many may run at once, as ('customer-7', 2).")


def _due_at(said: StartOptions, clock: Clock) -> Instant | None:
    delay, at = said.get("delay"), said.get("at")
    if delay is not None and at is not None:
        raise GraphError("delay=… and at=… both say when the run is due. Give one of them.")
    if delay is not None:
        return clock.now() + milliseconds(delay, "delay")
    if at is None:
        return None
    if at.tzinfo is None:
        raise GraphError(f"at={at!r} has no time zone, so it could mean two dozen instants. Give an aware datetime.")
    return int(at.timestamp() * 1000)
