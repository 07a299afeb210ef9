"""How a wait is asked for in code becomes what it needs, checked where the mistake was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from bide.errors import InterruptError, did_you_mean
from bide.waits.needs import Needs, OnTimeout

if TYPE_CHECKING:
    from bide.waits.conditions import Condition
    from bide.waits.durations import Duration


class WaitOptions(TypedDict, total=False):
    """What may be said about a wait, beside its question."""

    wake: Condition | None
    """What brings the answer, beside people: see `bide.waits`."""
    timeout: Duration | None
    default: Any
    """What is returned when the time is over; without it, `WaitExpired` is raised."""
    on_timeout: OnTimeout
    title: str
    assignees: Sequence[str]
    tags: Sequence[str]
    remind_every: Duration | None
    escalate_after: Duration | None
    escalate_to: Sequence[str]


def read_needs_of(options: WaitOptions, schema: Mapping[str, Any] | None = None) -> Needs | None:
    """Return what a wait needs, or None when nothing but the question was said."""
    if not options:
        return None if schema is None else Needs(schema=schema)
    _check(options)
    wake = options.get("wake")
    if wake is not None and schema is not None:
        raise InterruptError(
            "wake=… and a schema say two things about the answer: what satisfies a condition comes as a Wake, which "
            "fits no schema. Give people a form: wait_for(any_of(event('paid'), approval('…', form=Form)))."
        )
    condition = None if wake is None else _plain(wake)
    assignees = dict.fromkeys((*names("assignees", options.get("assignees", ())), *_asked_of(condition)))
    return Needs(
        condition=condition,
        timeout=_length("timeout", options.get("timeout")),
        on_timeout=options.get("on_timeout", "resume"),
        title=options.get("title", ""),
        assignees=tuple(assignees),
        tags=names("tags", options.get("tags", ())),
        remind_every=_length("remind_every", options.get("remind_every")),
        escalate_after=_length("escalate_after", options.get("escalate_after")),
        escalate_to=names("escalate_to", options.get("escalate_to", ())),
        schema=schema,
    )


SEVERAL = "several"
"""In the schema of a question: it is about several decisions, so no single answer can settle it."""


def schema_by_hand(needs: Needs | None) -> dict[str, Any] | None:
    """Return what an answer must look like that is given by hand, past what the wait waits for: a decision, if there is
    one to be made. What needs several parts cannot be settled with one answer."""
    if needs is None or needs.condition is None:
        return None
    if needs.condition.get("kind") in ("all_of", "quorum"):
        return {SEVERAL: [label for label, _ in needs.condition["of"]]}
    parts = [part for _, part in needs.condition.get("of") or ()] or [needs.condition]
    decisions = [part for part in parts if part.get("kind") == "approval"]
    if len(decisions) != 1:
        return None
    from bide.waits.answers import answer_schema  # only those who ask people pay for it

    return answer_schema(decisions[0])


def _length(name: str, given: Duration | None) -> int | None:
    if given is None:
        return None
    from bide.waits.durations import milliseconds  # only those who say how long pay for it

    length = milliseconds(given, name)
    if length < 1 and name == "remind_every":
        raise InterruptError(f"{name}={given!r} would tell people without a pause. Give a length of time, as '4h'.")
    return length


def _plain(wake: Any) -> dict[str, Any]:
    from bide.waits.conditions import Condition  # only those who wait for more than an answer pay for it
    from bide.waits.stored import to_plain

    if not isinstance(wake, Condition):
        raise InterruptError(
            f"wake={wake!r} is no condition. Take one of bide.waits: after('2h'), event('paid'), email(from_='…'), "
            f"approval('…'), any_of(…)."
        )
    return to_plain(wake)


_TIMEOUT = "give timeout='48h'"


def _check(options: WaitOptions) -> None:
    known = WaitOptions.__annotations__
    for name in options:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InterruptError(f"A wait has no option {name!r}.{hint} There are: {', '.join(known)}.")
    on_timeout, has_timeout = options.get("on_timeout", "resume"), options.get("timeout") is not None
    if on_timeout not in get_args(OnTimeout):
        raise InterruptError(f"on_timeout={on_timeout!r} is none of {', '.join(map(repr, get_args(OnTimeout)))}.")
    if not has_timeout and "default" in options:
        raise InterruptError(f"default=… is what is returned after a deadline, and there is none: {_TIMEOUT}.")
    if not has_timeout and on_timeout != "resume":
        raise InterruptError(f"on_timeout={on_timeout!r} says what comes of a deadline, and there is none: {_TIMEOUT}.")
    if "default" in options and on_timeout != "resume":
        raise InterruptError(f"default=… and on_timeout={on_timeout!r} say two things of one deadline. Give one.")
    if options.get("escalate_after") is not None and not options.get("escalate_to"):
        raise InterruptError("escalate_after=… needs somebody to go to: escalate_to=['boss@example.org'].")


def _asked_of(condition: Mapping[str, Any] | None) -> Iterator[str]:
    """Name everybody who may decide a part of a condition."""
    if condition is not None:
        yield from condition.get("assignees") or ()
        for _, part in condition.get("of") or ():
            yield from _asked_of(part)


def names(what: str, given: Sequence[str]) -> tuple[str, ...]:
    """Refuse what is no list of names."""
    if isinstance(given, str) or not all(isinstance(name, str) and name for name in given):
        raise InterruptError(f"{what}={given!r} must be a list of names.")
    return tuple(given)
