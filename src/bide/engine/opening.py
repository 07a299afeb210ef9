"""How a call takes up a thread: start, go on, resume, redirect, fork, or refuse. Pure, and strict.

Every refusal happens here, before anything is written.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from bide.engine.answers import match_answers, shown_list
from bide.engine.apply import edited_checkpoint, next_checkpoint, rerouted
from bide.engine.fitting import check_fits
from bide.engine.plan import Place, branch_of, checked_places, plan, replant
from bide.engine.ready import ready_tasks
from bide.engine.spec import DEFERRED, GraphSpec
from bide.engine.values import (
    Assignment,
    Begin,
    Checkpoint,
    Ending,
    Join,
    JournalEntry,
    Loaded,
    Origin,
    Outcome,
    Question,
    Start,
    Task,
    Wait,
)
from bide.errors import (
    AmbiguousResumeError,
    EmptyInputError,
    InvalidUpdateError,
    ResumeError,
    ThreadBusyError,
    ThreadPausedError,
    UnknownThreadError,
)
from bide.types import START, UNSET, Command, OnPaused, RunControl, RunStatus, WaitStatus

Write = tuple[str, Any]
Opened = Generator[Any, Any, "Opening | Ending"]


class Request(NamedTuple):
    """One call of invoke or stream, as the engine sees it."""

    input: Any
    seq: int | None = None
    """The checkpoint that the call is pinned to, if any."""
    merges: bool = False
    """Whether plain input is merged into the pinned checkpoint (`checkpoint=`)."""
    on_paused: OnPaused = "error"
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    wants: frozenset[str] = frozenset()
    """What the walk tells."""
    live: frozenset[str] = frozenset()
    """What tasks tell while they run."""
    subgraphs: bool = False
    """Whether graphs inside tasks tell, too."""
    durable: bool = True
    """Whether steps are saved."""
    has_thread: bool = True
    """Whether there is a thread in a store at all; graphs inside it may choose not to be saved."""
    recursion_limit: int = 10_000
    control: RunControl | None = None
    is_held: bool = False
    """Whether the run was claimed before, by whoever asks."""


class Opening(NamedTuple):
    """A thread that may be taken, and what is already known of its current step."""

    begin: Begin | None
    """How the thread is taken; a graph inside a task takes none."""
    checkpoint: Checkpoint
    results: Mapping[str, Outcome]
    steps: Mapping[str, Mapping[str, JournalEntry]]
    waits: tuple[Wait, ...]
    is_fresh: bool = True
    """Whether no task of the present step can have run before."""
    is_replay: bool = False
    """Whether what is known is of later steps: the graph starts again, and goes through them once more."""
    ended: tuple[Set[str], Set[str]] = (frozenset(), frozenset())
    """The ids of tasks, at any depth, that have a result, and of those that failed."""


NOTHING = Loaded(None, 0, None, None, {}, {}, {}, ())
"""What is loaded of a thread that does not exist."""


def open_thread(spec: GraphSpec, request: Request, loaded: Loaded) -> Opened:
    """Decide what this call does with the thread."""
    run = loaded.run
    if run is not None and run.status is RunStatus.RUNNING and not run.is_orphan and not request.is_held:
        raise ThreadBusyError(
            f"Another run is live on thread {loaded.thread_id!r}, and its worker is alive. A thread has one run at a "
            f"time: wait for it to finish or pause, or use another thread_id."
        )
    if not request.is_held:
        check_not_accepted(loaded)
    if loaded.checkpoint is not None:
        check_fits(spec, loaded.checkpoint)
    given = request.input
    if loaded.checkpoint is not None and loaded.checkpoint.seq != loaded.head:
        return (yield from _at_older(spec, request, loaded, loaded.checkpoint))
    if given is None and request.is_held:
        return (yield from _go_on_held(spec, loaded))
    if given is None:
        return _go_on(loaded)
    if isinstance(given, Command):
        return (yield from _obey(spec, given, loaded, is_held=request.is_held))
    if loaded.open_waits:
        return (yield from _input_while_paused(spec, request, loaded))
    if loaded.checkpoint is not None and (request.merges or has_progress(loaded)):
        return (yield from _input_in_the_middle(spec, request, loaded, loaded.checkpoint))
    return (yield from _start(spec, loaded, read_input(spec, given)))


def check_not_accepted(loaded: Loaded) -> None:
    """Refuse to touch a thread for which a run was accepted that has not begun: it would be lost without a word."""
    run = loaded.run
    if run is not None and run.has_input:
        raise ThreadBusyError(
            f"A run was started on thread {loaded.thread_id!r} and has not begun ({run.status}): it waits for a "
            f"worker. Nothing was written. Let a worker drive it, cancel it first, or use another thread_id."
        )


# ── Start ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read_input(spec: GraphSpec, given: Any, *, must_fit: bool = True) -> list[Write]:
    """Turn the caller's input into writes; keys that the graph does not take are left out, as long as one remains."""
    pairs = spec.read_update(given)
    if pairs is None:
        raise InvalidUpdateError(
            f"The input is {given!r} ({type(given).__name__}). Give a dict of state keys, an instance of the state's "
            f"schema, a Command, or None to go on."
        )
    writes = [(key, value) for key, value in pairs.items() if key in spec.input_keys]
    if must_fit and pairs and not writes:
        raise EmptyInputError(
            f"None of the input's keys ({', '.join(map(repr, pairs))}) is a key of the graph's input. "
            f"It takes: {', '.join(sorted(spec.input_keys))}."
        )
    return writes


def _start(spec: GraphSpec, loaded: Loaded, writes: Sequence[Write], goto: Sequence[Place] = ()) -> Opened:
    """Begin at START (or at `goto`) over the state there is. Whatever was planned before is dropped."""
    before = _base(spec, loaded)
    entry = Outcome(Task("start", START), tuple(writes), tuple(goto))
    checkpoint, changed = next_checkpoint(spec, before, [entry], source="input")
    if goto:
        checkpoint = rerouted(spec, checkpoint, goto)
    elif spec.start.branches:
        routed = yield from choose(checkpoint, [entry.task])
        checkpoint = rerouted(spec, checkpoint, [*spec.start.edges, *routed])
    checkpoint = checkpoint._replace(parent=loaded.checkpoint.seq if loaded.checkpoint else None)
    begin = Begin(loaded, checkpoint, changed, supersede=loaded.run, forget=True)
    return _fresh(begin, checkpoint)


def before_all(spec: GraphSpec) -> Checkpoint:
    """Return the state of a thread on which nothing has happened."""
    return Checkpoint(0, None, -1, "", spec.initial(), (), ())


def _base(spec: GraphSpec, loaded: Loaded) -> Checkpoint:
    """Return the state to begin over: numbered as the head, with no half-filled barriers."""
    old = loaded.checkpoint
    if old is None:
        return before_all(spec)._replace(seq=loaded.head)
    values = {key: value for key, value in old.values.items() if not is_plan(key)}
    return old._replace(seq=loaded.head, values=values)


def is_plan(key: str) -> bool:
    """Whether a key is part of the plan and not of the state: barriers, and nodes that were put off."""
    return key.startswith(("~join:", DEFERRED))


def _fresh(begin: Begin, checkpoint: Checkpoint) -> Opening:
    return Opening(begin, checkpoint, {}, {}, ())


def choose(checkpoint: Checkpoint, tasks: Sequence[Task]) -> Generator[Any, Any, list[Place]]:
    """Let the conditional edges of these nodes choose on the state of `checkpoint`."""
    yield Start(tuple(Assignment(task, checkpoint, routes_only=True) for task in tasks))
    chosen: dict[str, Outcome] = {}
    while len(chosen) < len(tasks):
        for outcome in (yield Join()):
            chosen[outcome.task.id] = outcome
    for outcome in chosen.values():
        if outcome.error is not None:
            raise outcome.error
    return [place for task in tasks for place in chosen[task.id].routes]


# ── Go on ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _go_on(loaded: Loaded) -> Opening | Ending:
    """`invoke(None)`: pass static pauses, retry what failed, take over what a dead worker left."""
    checkpoint = loaded.checkpoint
    if checkpoint is None:
        raise UnknownThreadError(
            f"There is nothing to go on with: there is no thread {loaded.thread_id!r} in {loaded.place!r}. Check the "
            f"thread_id, and which database is open; start a thread with invoke({{…}}, config)."
        )
    holds = [wait.question for wait in loaded.open_waits if wait.question.is_static]
    if holds:
        return _taken(loaded, checkpoint, [(question, None) for question in holds])
    asks = tuple(wait.question for wait in loaded.open_waits)
    can_run = ready_tasks(checkpoint, loaded.results, loaded.waits, (loaded.done, loaded.failed))
    is_left = loaded.run is not None and loaded.run.status in (RunStatus.READY, RunStatus.RUNNING)
    if not can_run and (asks or not (checkpoint.tasks or is_left)):
        done = tuple(loaded.results[task.id] for task in checkpoint.tasks if task.id in loaded.results)
        return Ending(checkpoint, asks, frozenset(loaded.results), done)
    return _taken(loaded, checkpoint, [])


def _go_on_held(spec: GraphSpec, loaded: Loaded) -> Opened:
    """Go on with a run that a worker has claimed: answers were recorded before, by whoever gave them."""
    before = loaded.checkpoint
    if before is None:
        return _go_on(loaded)
    returned = returned_answers(loaded, ())
    if returned and one_or_all(returned) != before.resume_value and not has_begun(loaded):
        return (yield from _resume(spec, loaded, (), ()))
    return _taken(loaded, before, [])


def _taken(
    loaded: Loaded,
    checkpoint: Checkpoint,
    answers: Sequence[tuple[Question, Any]],
    changed: frozenset[str] = frozenset(),
) -> Opening:
    """Take the thread with its step as it stands: results, journal and answers are kept."""
    given = {question.id: answer for question, answer in answers}
    waits = tuple(
        wait._replace(status=WaitStatus.ANSWERED, answer=given[wait.question.id]) if wait.question.id in given else wait
        for wait in loaded.waits
    )
    is_new = loaded.checkpoint is not checkpoint
    begin = Begin(loaded, checkpoint if is_new else None, changed, claim=loaded.run, answers=tuple(answers))
    return Opening(
        begin, checkpoint, loaded.results, loaded.steps, waits, is_fresh=False, ended=(loaded.done, loaded.failed)
    )


# ── Resume ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _obey(spec: GraphSpec, command: Command[Any], loaded: Loaded, *, is_held: bool) -> Opened:
    if command.graph is not None:
        raise InvalidUpdateError(f"Command(graph={command.graph!r}) cannot be an input: the root graph has no parent.")
    goto = checked_places(spec, command.targets, "Command(goto=…)")
    writes = _command_writes(spec, command)
    if command.resume is UNSET and is_held and _is_beside_an_answer(loaded, goto):
        return (yield from _resume(spec, loaded, [], writes, goto))
    if command.resume is UNSET:
        return (yield from _redirect(spec, loaded, writes, goto))
    answers = match_answers(command.resume, loaded)
    return (yield from _resume(spec, loaded, answers, writes, goto))


def _is_beside_an_answer(loaded: Loaded, goto: Sequence[Place]) -> bool:
    """Whether the answer that came with a Command was recorded when its run was accepted, and only the rest is left.

    Where questions are still open, going elsewhere means to leave them.
    """
    is_answered = any(wait.status is WaitStatus.ANSWERED and not wait.question.is_static for wait in loaded.waits)
    return is_answered and not (goto and loaded.open_waits)


def _command_writes(spec: GraphSpec, command: Command[Any]) -> list[Write]:
    if command.update is None:
        return []
    pairs = spec.read_update(command.pairs)
    if pairs is None:
        raise InvalidUpdateError(f"Command(update={command.update!r}) must be a dict of state keys.")
    spec.check_keys(pairs, "Command(update=…) holds")
    return list(pairs.items())


def _redirect(spec: GraphSpec, loaded: Loaded, writes: list[Write], goto: list[Place]) -> Opened:
    """A Command without an answer: go elsewhere. Open questions are cancelled, visibly, never left running beside."""
    if loaded.open_waits and not goto:
        raise ThreadPausedError(
            f"The thread waits for an answer ({shown_list(loaded)}), and this Command gives none. Add resume=…; "
            f"to change the state and keep waiting use update_state(config, …); to leave the question use goto=…."
        )
    if not goto and not writes:
        raise EmptyInputError("The Command is empty. Give it resume=…, update=… or goto=….")
    if not goto and loaded.checkpoint is not None and not loaded.checkpoint.tasks:
        # A finished thread is changed and not run again: nobody said where to.
        checkpoint, changed = edited_checkpoint(spec, loaded.checkpoint, writes, source="update")
        return _fresh(Begin(loaded, checkpoint, changed, supersede=loaded.run, forget=True), checkpoint)
    return (yield from _start(spec, loaded, writes, goto))


def _resume(
    spec: GraphSpec,
    loaded: Loaded,
    answers: Sequence[tuple[Question, Any]],
    writes: Sequence[Write],
    goto: Sequence[Place] = (),
) -> Opened:
    """Record the answers and go on; what they change may choose another way."""
    before = loaded.checkpoint
    assert before is not None, "a wait belongs to a checkpoint"
    checkpoint, changed = edited_checkpoint(spec, before, writes, source="update")
    has_returned = not answers or any(question.kind == "return" for question, _ in answers)
    returned = returned_answers(loaded, answers) if has_returned else {}
    if returned or goto:
        checkpoint = checkpoint._replace(
            seq=before.seq + 1,
            parent=before.seq,
            source="update" if writes else "resume",
            resume_value=one_or_all(returned) if returned else before.resume_value,
            created_at=None,
        )
    if checkpoint is not before and not has_begun(loaded):
        checkpoint = yield from reroute(spec, checkpoint)
    if goto:
        beside = Origin(f"{checkpoint.seq}@goto", "", tuple(goto))
        checkpoint = checkpoint._replace(
            tasks=(*checkpoint.tasks, *plan(checkpoint.prefix, checkpoint.seq, goto)),
            origins=(*checkpoint.origins, beside),
        )
    return _taken(loaded, checkpoint, answers, changed)


def returned_answers(loaded: Loaded, answers: Sequence[tuple[Question, Any]]) -> dict[str, Any]:
    """Return node → answer for the questions that finished nodes of this graph returned."""
    before = [(wait.question, wait.answer) for wait in loaded.waits if wait.status is WaitStatus.ANSWERED]
    return {
        question.node: answer
        for question, answer in (*before, *answers)
        if question.kind == "return" and branch_of(_prefix(loaded), question.task_id) == question.task_id
    }


def _prefix(loaded: Loaded) -> str:
    return "" if loaded.checkpoint is None else loaded.checkpoint.prefix


def one_or_all(returned: Mapping[str, Any]) -> Any:
    """Return the only answer, or all of them by node."""
    return next(iter(returned.values())) if len(returned) == 1 else dict(returned)


def has_begun(loaded: Loaded) -> bool:
    """Whether a task of the present step has run: then its plan stands."""
    return bool(loaded.results) or any(wait.question.kind == "call" for wait in loaded.waits)


def reroute(spec: GraphSpec, checkpoint: Checkpoint) -> Generator[Any, Any, Checkpoint]:
    """Choose the next tasks again, on the state as it is now, if any conditional edge has a say in it."""
    nodes = {**spec.nodes, START: spec.start}
    origins = [origin for origin in checkpoint.origins if origin.node in nodes]
    branching = [Task(origin.task_id, origin.node) for origin in origins if nodes[origin.node].branches]
    if not branching:
        return checkpoint
    routed = yield from choose(checkpoint, branching)
    places: list[Place] = [*routed]
    for origin in checkpoint.origins:
        places += origin.goto
    for origin in origins:
        places += nodes[origin.node].edges
    # A full barrier has planned its node already, and stays planned; so has a node that was put off until now.
    stays = {*spec.joins.values(), *spec.deferred}
    places += [task.node for task in checkpoint.tasks if task.node in stays and task.arg is UNSET]
    fresh = rerouted(spec, checkpoint, places)
    return checkpoint if _is_same_plan(fresh.tasks, checkpoint.tasks) else fresh


def _is_same_plan(fresh: Sequence[Task], planned: Sequence[Task]) -> bool:
    """Whether the same nodes come next, with the same arguments: then they are the same tasks, and keep their ids."""
    try:
        return len(fresh) == len(planned) and all(
            bool(new[1:] == old[1:]) for new, old in zip(fresh, planned, strict=True)
        )
    except Exception:  # noqa: BLE001 — arrays and the like do not compare to one truth; then it counts as another plan
        return False


def _input_while_paused(spec: GraphSpec, request: Request, loaded: Loaded) -> Opened:
    policy = "resume" if request.merges else request.on_paused
    if policy == "restart":
        return (yield from _start(spec, loaded, read_input(spec, request.input)))
    if policy != "resume":
        raise ThreadPausedError(
            f"Thread {loaded.thread_id!r} waits for an answer ({shown_list(loaded)}), and got plain input. An answer "
            f"must be explicit: invoke(Command(resume=…), config). To merge the input use on_paused='resume'; to "
            f"drop the questions and begin anew use on_paused='restart'."
        )
    asks = [wait.question for wait in loaded.open_waits if not wait.question.is_static]
    if len(asks) > 1:
        raise AmbiguousResumeError(
            f"Plain input can answer only one open question, and there are {len(asks)} ({shown_list(loaded)}). "
            f"Answer by id: invoke(Command(resume={{id: answer, …}}), config)."
        )
    holds = [wait.question for wait in loaded.open_waits if wait.question.is_static]
    answers = [(question, request.input) for question in asks] + [(question, None) for question in holds]
    return (yield from _resume(spec, loaded, answers, merged_writes(spec, request.input)))


def has_progress(loaded: Loaded) -> bool:
    """Whether the step that a run was stopped in holds something to lose: finished tasks, steps, or answers."""
    if loaded.checkpoint is None or not loaded.checkpoint.tasks:
        return False
    return bool(loaded.results or loaded.steps or any(not wait.question.is_static for wait in loaded.waits))


def _input_in_the_middle(spec: GraphSpec, request: Request, loaded: Loaded, checkpoint: Checkpoint) -> Opened:
    """Plain input on a thread that was stopped inside a step: beginning anew would make its finished steps twice."""
    if request.merges or request.on_paused == "resume":
        return (yield from _resume(spec, loaded, [], merged_writes(spec, request.input)))
    if request.on_paused == "restart":
        return (yield from _start(spec, loaded, read_input(spec, request.input)))
    raise ThreadPausedError(
        f"Thread {loaded.thread_id!r} was stopped inside {', '.join(checkpoint.next)}, with {_progress(loaded)}, "
        f"which plain input would drop. Go on "
        f"with invoke(None, config); to merge the input and go on use on_paused='resume'; to drop what was done and "
        f"begin anew use on_paused='restart'."
    )


def _progress(loaded: Loaded) -> str:
    """Say what a step that was stopped holds."""
    made = sum(len(steps) for steps in loaded.steps.values())
    answers = sum(wait.status is WaitStatus.ANSWERED and not wait.question.is_static for wait in loaded.waits)
    parts = ((len(loaded.results), "finished task(s)"), (made, "step(s) begun or made"), (answers, "answer(s)"))
    return " and ".join(f"{count} {what}" for count, what in parts if count)


def merged_writes(spec: GraphSpec, given: Any) -> list[Write]:
    """Read an edit from outside: keys beside the schema are kept where the state is open."""
    pairs = spec.read_update(given)
    if pairs is None:
        raise InvalidUpdateError(f"The input {given!r} cannot be merged into the state. Give a dict of state keys.")
    if not spec.open_state:
        spec.check_keys(pairs, "The input holds")
    return list(pairs.items())


# ── Older checkpoints ──────────────────────────────────────────────────────────────────────────────────────────


def _at_older(spec: GraphSpec, request: Request, loaded: Loaded, old: Checkpoint) -> Opened:
    """Go on from a checkpoint that is no longer the head: history stays, a branch is added."""
    given = request.input
    if isinstance(given, Command) and given.resume is not UNSET:
        raise ResumeError(
            f"Checkpoint {old.seq} is not the newest one of its thread, and its questions have been dealt with. To "
            f"answer differently, fork first: invoke(None, <that config>) asks again; then answer the new question."
        )
    if given is None or request.merges:
        if given is None and not old.tasks:
            return Ending(old, ())
        return (yield from _fork(spec, loaded, old, [] if given is None else merged_writes(spec, given)))
    if isinstance(given, Command):
        goto = checked_places(spec, given.targets, "Command(goto=…)")
        return (yield from _start(spec, loaded, _command_writes(spec, given), goto))
    return (yield from _start(spec, loaded, read_input(spec, given)))


def _fork(spec: GraphSpec, loaded: Loaded, old: Checkpoint, writes: Sequence[Write]) -> Opened:
    checkpoint, changed = fork_checkpoint(spec, loaded, old, writes)
    if writes:
        checkpoint = yield from reroute(spec, checkpoint)
    begin = Begin(loaded, checkpoint, changed, supersede=loaded.run, forget=True)
    return _fresh(begin, checkpoint)


def fork_checkpoint(
    spec: GraphSpec, loaded: Loaded, old: Checkpoint, writes: Sequence[Write], source: str = "fork"
) -> tuple[Checkpoint, frozenset[str]]:
    """Copy an old checkpoint to the head, with its tasks planned anew."""
    numbered = old._replace(seq=loaded.head)
    forked, changed = edited_checkpoint(spec, numbered, writes, source=source)
    forked = forked._replace(seq=loaded.head + 1, parent=old.seq or None, source=source, created_at=None)
    return forked._replace(tasks=replant(forked.prefix, forked.seq, forked.tasks)), changed
