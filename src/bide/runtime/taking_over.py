"""A start that goes on with a thread which waits: what it answers, read and checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bide.engine.answers import is_id_map
from bide.errors import AmbiguousResumeError, NotWaitingError, UnknownInterruptError
from bide.runtime.answers import check_answer, leaf_for_people, plain_of
from bide.store import Store
from bide.store.listing import read_shown
from bide.store.queue_rows import Answering, WaitView
from bide.types import UNSET, Command, WaitStatus

Answers = tuple[tuple[str, Answering], ...]


class Said(NamedTuple):
    """By whom answers are given, and through what."""

    by: str | None = None
    via: str = "start"
    key: str | None = None


def takes_over(given: Any, options: Mapping[str, Any]) -> bool:
    """Whether a start means to go on with a thread that waits, and not to find it busy: an answer always does."""
    is_answer = isinstance(given, Command) and given.resume is not UNSET
    return is_answer or options.get("if_waiting") == "take_over"


def without_answers(given: Any) -> Any:
    """Return what is left of a Command when its answers were recorded; None when nothing is."""
    if not isinstance(given, Command) or given.resume is UNSET:
        return given
    if given.update is None and not given.targets:
        return None
    return Command(update=given.update, goto=given.goto)


def answers_of(store: Store, thread_id: str, given: Any, said: Said, comments: Mapping[str, str]) -> Answers:
    """Return the answers that a start brings, each for a question of the thread; pauses at nodes are passed.

    `comments` are what was said beside them, by the ids of the questions.
    """
    if isinstance(given, Command) and given.resume is UNSET:
        return ()
    every = store.waits_of(thread_id)
    rows = [row for row in every if row.status is WaitStatus.OPEN and not row.is_consumed]
    static = [row for row in rows if row.kind in ("before", "after")]
    passed = tuple((row.wait_id, Answering(None, *said)) for row in static)
    if not isinstance(given, Command):
        return passed
    known = {row.wait_id: row for row in every}
    if is_id_map(given.resume, known):
        chosen = _by_id(thread_id, known, given.resume)
    elif not rows:
        raise _not_waiting(store, thread_id)
    else:
        chosen = _the_only_one(thread_id, [row for row in rows if row not in static], given.resume)
    answers = [(row.wait_id, _answering(row, value, said)) for row, value in chosen]
    return (*passed, *((key, answer._replace(comment=comments.get(key))) for key, answer in answers))


def _not_waiting(store: Store, thread_id: str) -> NotWaitingError:
    """Refuse an answer that no question waits for: it was answered, or never asked."""
    thread = read_shown(store, thread_id)
    status = None if thread is None or thread.run is None else thread.run.status
    return NotWaitingError(
        f"Thread {thread_id!r} is {status or 'new'}, so it waits for no answer. Nothing was started."
    )


def _by_id(thread_id: str, known: Mapping[str, WaitView], resume: Mapping[str, Any]) -> list[tuple[WaitView, Any]]:
    """Say which wait each answer is for; of one that was settled before, the store knows by whom."""
    unknown = tuple(key for key in resume if key not in known)
    if unknown:
        raise UnknownInterruptError(
            f"Thread {thread_id!r} has no question {unknown[0]!r}. Known: {', '.join(known)}. Nothing was started.",
            interrupt_ids=unknown,
        )
    return [(known[key], value) for key, value in resume.items()]


def _the_only_one(thread_id: str, asked: Sequence[WaitView], resume: Any) -> list[tuple[WaitView, Any]]:
    if len(asked) > 1:
        raise AmbiguousResumeError(
            f"Thread {thread_id!r} has {len(asked)} open questions, and one answer cannot be for all of them. Say "
            f"which: Command(resume={{id: answer, …}}). Open: {', '.join(row.wait_id for row in asked)}."
        )
    return [(row, resume) for row in asked]


def _answering(row: WaitView, value: Any, said: Said) -> Answering:
    answering = Answering(plain_of(value), *said)
    if row.status is not WaitStatus.OPEN:
        return answering
    leaf = None if row.needs.condition is None else leaf_for_people(row, None)
    check_answer(row, leaf, answering.value)
    return answering if leaf is None else answering._replace(number=leaf.number, kind=leaf.kind)
