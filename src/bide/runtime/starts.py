"""What may be said about a run that is started: read once, at the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from bide.clock import Clock, Instant
from bide.engine.given import write_given
from bide.engine.opening import read_input
from bide.errors import GraphError, did_you_mean
from bide.graph.accepting import GO_ON, STORED, write_options
from bide.graph.door import check_choice, read_config, read_reference
from bide.graph.session import check_pauses
from bide.runtime.registered import Registered
from bide.runtime.taking_over import Answers, without_answers
from bide.store.lanes import DEFAULT_QUEUE
from bide.store.needed import PLAIN
from bide.store.queue_rows import IfBusy, Start
from bide.store.starting import BASE
from bide.types import Command, Durability, OnPaused
from bide.waits.durations import Duration, milliseconds

MOST_URGENT = 1_000_000_000
IfWaiting = Literal["busy", "take_over"]


class StartOptions(TypedDict, total=False):
    """What may be said about a run, beside its graph and its input."""

    thread_id: str | int | None
    """Which thread; without it, a new one."""
    key: str | None
    """The same key starts a run once, however often it is asked for."""
    delay: Duration | None
    at: datetime | None
    if_busy: IfBusy
    if_waiting: IfWaiting
    """Whether a live run that waits counts as busy, as it does by itself, or is taken over. An answer takes over."""
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
    """Where an edit is merged, and the run goes on."""
    begin_at: str | None
    """The checkpoint over whose state the input begins anew; without input, where the run goes on from."""
    tell: Sequence[str] | None
    """What is written to the thread's log while it runs, for whoever streams it: stream modes, and "subgraphs"."""
    by: str | None
    """Who asks: written down with the answers that the start brings."""
    comments: Mapping[str, str] | None
    """What is said beside those answers, by the ids of the waits."""
    notes: Mapping[str, Any] | None
    """Anything that is to be found again with the run."""


def read_start(
    known: Registered, given: Any, said: StartOptions, clock: Clock, answers: Answers | None = None
) -> Start:
    """Put together what the store is asked to accept; with answers, it goes on with a thread that waits."""
    _check(said)
    # Whatever the worker would refuse is refused here, where whoever is wrong can hear it.
    read_config(said.get("config"))
    read_reference(said.get("checkpoint"))
    read_reference(said.get("begin_at"))
    check_pauses(known.graph.spec, said)
    if given is not None and not isinstance(given, Command):
        read_input(known.graph.spec, given)
    options = {name: value for name, value in said.items() if name in STORED}
    if said.get("begin_at") is not None:
        options[BASE] = said["begin_at"]
    if said.get("if_busy") in ("interrupt", "rollback"):
        options.setdefault("on_paused", "restart")
    thread_id = said.get("thread_id")
    # Without input, a thread that is there goes on where it stands.
    asked = None if given is None else write_given(known.graph.spec.codec, given)
    left = without_answers(given) if answers else given
    if left is None and BASE in options:
        left = GO_ON
    body = asked if left is given else None if left is None else write_given(known.graph.spec.codec, left)
    key, notes = said.get("key"), said.get("notes")
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
        digest="" if key is None else PLAIN.digest([known.name, asked, None if thread_id is None else str(thread_id)]),
        if_busy=said.get("if_busy", "reject"),
        limit=said.get("limit"),
        owner=said.get("owner"),
        takes_over=answers is not None,
        answers=answers or (),
        notes=None if notes is None else PLAIN.encode(dict(notes), "notes"),
    )


def _check(said: StartOptions) -> None:
    known = StartOptions.__annotations__
    for name in said:
        if name not in known:
            hint = did_you_mean(name, known)
            raise GraphError(f"start() has no option {name!r}.{hint} There are {', '.join(known)}.")
    for name, choices in (
        ("if_busy", IfBusy),
        ("if_waiting", IfWaiting),
        ("on_paused", OnPaused),
        ("durability", Durability),
    ):
        check_choice(name, said.get(name), choices)
    for name in ("key", "owner", "queue", "by"):
        _check_text(name, said.get(name))
    if said.get("queue") == "" or "/" in said.get("queue", ""):
        raise GraphError(f"queue={said['queue']!r}: give a word without '/'.")
    priority, limit = said.get("priority", 0), said.get("limit")
    if type(priority) is not int or abs(priority) > MOST_URGENT:
        raise GraphError(f"priority={priority!r} must be a whole number up to {MOST_URGENT:,}; higher ones come first.")
    if limit is not None and not _is_limit(limit):
        raise GraphError(f"limit={limit!r}: give a name and how many may run at once, as ('customer-7', 2).")
    if said.get("if_busy") in ("interrupt", "rollback") and (said.get("delay") or said.get("at")):
        raise GraphError(
            f"if_busy={said['if_busy']!r} takes the place of a run now, and delay or at say later. Give one of them."
        )
    _check_text("thread_id", None if said.get("thread_id") is None else str(said["thread_id"]))


def _is_limit(limit: Any) -> bool:
    is_pair = isinstance(limit, (tuple, list)) and len(limit) == 2
    return is_pair and isinstance(limit[0], str) and type(limit[1]) is int and limit[1] > 0


def _check_text(name: str, given: Any) -> None:
    if given is None:
        return
    if not isinstance(given, str) or "\0" in given or (not given.isprintable() and _has_half_a_character(given)):
        raise GraphError(f"{name}={given!r} must be a text that every database can keep.")


def _has_half_a_character(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _due_at(said: StartOptions, clock: Clock) -> Instant | None:
    delay, at = said.get("delay"), said.get("at")
    if delay is not None and at is not None:
        raise GraphError("delay=… and at=… both say when the run is due. Give one of them.")
    if delay is not None:
        return clock.now() + milliseconds(delay, "delay")
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise GraphError(f"at={at!r} is no datetime. Give an aware datetime, or delay='2h'.")
    if at.tzinfo is None:
        raise GraphError(f"at={at!r} has no time zone, so it could mean two dozen instants. Give an aware datetime.")
    return int(at.timestamp() * 1000)
