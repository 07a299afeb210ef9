"""Which answer belongs to which question. Strict: nothing is guessed, and nothing is ignored."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from bide.engine.plan import branch_of
from bide.engine.values import Checkpoint, Loaded, Question
from bide.errors import (
    AlreadyAnsweredError,
    AmbiguousResumeError,
    InvalidAnswerError,
    NotWaitingError,
    UnknownInterruptError,
    UnknownThreadError,
)
from bide.shape import problems
from bide.types import WaitStatus
from bide.waits.asked import SEVERAL

Answers = list[tuple[Question, Any]]


def match_answers(resume: Any, loaded: Loaded) -> Answers:
    """Return each answered question with its answer, or raise; static pauses are passed on the way."""
    waits = loaded.open_waits
    known = {wait.question.id for wait in loaded.waits}
    if not waits and not is_id_map(resume, known):
        raise _nothing_open(loaded)
    holds: Answers = [(wait.question, None) for wait in waits if wait.question.is_static]
    asks = [wait.question for wait in waits if not wait.question.is_static]
    if is_id_map(resume, known):
        answers = _by_id(resume, asks, loaded)
    elif len(asks) > 1:
        raise AmbiguousResumeError(
            f"One answer was given, and {len(asks)} questions are open ({shown_list(loaded)}). "
            f"Say which: Command(resume={{id: answer, …}}). Some may stay open."
        )
    else:
        answers = [(asks[0], resume)] if asks else [(question, resume) for question, _ in holds]
        holds = holds if asks else []
    for question, answer in answers:
        _check_shape(question, answer)
    return answers + holds


def shown_list(loaded: Loaded) -> str:
    """List the open questions for a message: node, id, and what is asked."""
    shown = []
    for wait in loaded.open_waits:
        question = wait.question
        if question.is_static:
            shown.append(f"the pause {question.kind} node {question.node!r}")
        else:
            shown.append(f"{question.id}: {question.node!r} asks {short(question.value)}")
    return "; ".join(shown)


def short(value: Any) -> str:
    """Write a value for a message, not too long."""
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"


def is_id_map(resume: Any, known: Container[str]) -> bool:
    """Whether this is a map of question ids: one of its keys is such an id, or all of them look like one.

    Ids are 32 hex digits, so no dict of words is taken for a map; and a map with one wrong id is still a map.
    """
    if not isinstance(resume, Mapping) or not resume:
        return False
    return any(key in known for key in resume) or all(_is_id(key) for key in resume)


def _is_id(key: Any) -> bool:
    return isinstance(key, str) and len(key) == 32 and all(digit in "0123456789abcdefABCDEF" for digit in key)


def _by_id(resume: Mapping[str, Any], asks: list[Question], loaded: Loaded) -> Answers:
    by_id = {question.id: question for question in asks}
    settled = {wait.question.id: wait for wait in loaded.waits if wait.status is not WaitStatus.OPEN}
    for id_ in resume:
        if id_ in settled:
            raise AlreadyAnsweredError(
                f"Question {id_} is {settled[id_].status}: {short(settled[id_].answer)}. An answer stands; nothing was "
                f"written. To go on with it use invoke(None, config); to answer differently, fork from the checkpoint "
                f"before."
            )
    unknown = tuple(id_ for id_ in resume if id_ not in by_id)
    if unknown:
        raise UnknownInterruptError(
            f"No open question has the id {unknown[0]}: it is unknown, or was answered or cancelled before. "
            f"Open: {shown_list(loaded) or 'none'}. Nothing was written.",
            interrupt_ids=unknown,
            pending_ids=tuple(by_id),
        )
    return [(by_id[id_], answer) for id_, answer in resume.items()]


def _nothing_open(loaded: Loaded) -> Exception:
    if loaded.checkpoint is None:
        return UnknownThreadError(
            f"There is no thread {loaded.thread_id!r} in {loaded.place!r}, so there is nothing to resume. Check the "
            f"thread_id, and which database is open; start a thread with invoke({{…}}, config)."
        )
    answered = [wait for wait in loaded.waits if wait.status is WaitStatus.ANSWERED]
    if answered:
        return AlreadyAnsweredError(
            f"The question {short(answered[0].question.value)} has its answer already: {short(answered[0].answer)}. An "
            f"answer stands; nothing was written. Go on with it: invoke(None, config)."
        )
    if loaded.checkpoint.tasks:
        return NotWaitingError(
            f"Thread {loaded.thread_id!r} does not wait for an answer: it stands before "
            f"{', '.join(loaded.checkpoint.next)} after a failed or stopped run. Go on with invoke(None, config)."
        )
    return NotWaitingError(
        f"Thread {loaded.thread_id!r} does not wait for an answer: it has finished. Look at it with get_state(config); "
        "give it new input with invoke({…}, config)."
    )


def _check_shape(question: Question, answer: Any) -> None:
    if question.schema is None:
        return
    if SEVERAL in question.schema:
        raise AmbiguousResumeError(
            f"Node {question.node!r} waits for several things ({', '.join(question.schema[SEVERAL])}), and one answer "
            f"cannot stand for all of them. Nothing was written. Bring each: app.wake({question.id!r}, …, leaf='…'), "
            f"or app.deliver(…)."
        )
    found = problems(answer, dict(question.schema))
    if found:
        listed = "\n".join(f"  - {problem}" for problem in found)
        raise InvalidAnswerError(
            f"The answer to {question.value!r} (node {question.node!r}) does not fit:\n{listed}\n"
            f"Nothing was written; the question is still open."
        )


def answers_at(checkpoint: Checkpoint, asked: Sequence[Question], answers: Any) -> Answers:
    """Return what was asked at an older checkpoint, each with the answer that it shall have on another branch."""
    tasks = {task.id for task in checkpoint.tasks}
    there = {
        question.id: question
        for question in asked
        if question.kind == "call" and branch_of(checkpoint.prefix, question.task_id) in tasks
    }
    if isinstance(answers, Mapping) and answers and all(_is_id(key) for key in answers):
        unknown = tuple(id_ for id_ in answers if id_ not in there)
        if unknown:
            raise UnknownInterruptError(
                f"Nothing with the id {unknown[0]} was asked at this checkpoint. Asked there: "
                f"{', '.join(there) or 'nothing'}.",
                interrupt_ids=unknown,
                pending_ids=tuple(there),
            )
        given: Answers = [(there[id_], answer) for id_, answer in answers.items()]
    elif len(there) == 1:
        given = [(question, answers) for question in there.values()]
    elif there:
        raise AmbiguousResumeError(
            f"{len(there)} questions were asked at this checkpoint. Say which: fork(…, answers={{id: answer}})."
        )
    else:
        raise NotWaitingError("Nothing was asked at this checkpoint. Choose the one before which the node asked.")
    for question, answer in given:
        _check_shape(question, answer)
    return given


__all__ = ["Answers", "answers_at", "match_answers", "shown_list"]
