"""The story of one task: call the node, read what it returned, let its conditional edges choose.

A generator that yields the calls to make, so that one telling serves sync and async nodes.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from bide.engine.apply import seen_after
from bide.engine.channels import LastValue
from bide.engine.context import Pause, TaskContext
from bide.engine.plan import Place, question_id
from bide.engine.spec import Branch, Call, GraphSpec, NodeSpec
from bide.engine.values import Outcome, Question
from bide.errors import InterruptError, InterruptSwallowedError, InvalidUpdateError, ReplayMismatchError
from bide.shape import json_schema
from bide.types import END, START, UNSET, Command, Interrupt, Overwrite, Send

Write = tuple[str, Any]


class Action(NamedTuple):
    """One call of a user's function."""

    call: Call
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


Story = Generator[Action, Any, Outcome]


def work(spec: GraphSpec, context: TaskContext) -> Story:
    """Run one task to its outcome. Only signals that are not ours (Ctrl-C, cancellation) pass through."""
    task = context.task
    node = spec.start if task.node == START else spec.nodes[task.node]
    try:
        if context.assignment.routes_only:
            return Outcome(task, routes=(yield from route(spec, node, context, ())))
        given = _given(node, context)
        result = yield _action(node.call, given, context)
        if context.asked:
            raise InterruptSwallowedError(_swallowed_text(context))
        writes, goto, returned = read_result(spec, context, given, result)
        routes: tuple[Place, ...] = ()
        if node.branches:
            routes = yield from route(spec, node, context, writes)
        if context.assignment.steps:
            _check_replayed(context)
        return Outcome(task, writes, goto, routes, (), returned)
    except (Pause, Exception, BaseExceptionGroup) as error:  # noqa: BLE001 — what a node raises is its task's outcome
        return _unfinished(context, error)


def _unfinished(context: TaskContext, error: BaseException) -> Outcome:
    """Tell a task that asks from one that failed. What is neither (Ctrl-C, cancellation) goes on up."""
    task = context.task
    if isinstance(error, Pause):
        if error.question not in context.asked:
            return Outcome(task, error=_stray_pause(error, context))
        return Outcome(task, asks=tuple(context.asked))
    if isinstance(error, BaseExceptionGroup):
        # asyncio.TaskGroup wraps what its tasks raise, a pause among it; a failure beside it counts more.
        rest = error.split(Pause)[1]
        if rest is None:
            return Outcome(task, asks=tuple(context.asked))
        if isinstance(rest, Exception):
            return Outcome(task, error=rest)
    if isinstance(error, Exception):
        return Outcome(task, error=_hidden_pause(error, context))
    raise error


def route(
    spec: GraphSpec, node: NodeSpec, context: TaskContext, writes: Sequence[Write]
) -> Generator[Action, Any, tuple[Place, ...]]:
    """Let the conditional edges of a node choose, each on the state with that node's own writes."""
    seen = seen_after(spec, context.assignment.checkpoint.values, context.task, writes)
    places: list[Place] = []
    for branch in node.branches:
        try:
            chosen = yield _action(branch.call, branch.read(seen), context)
        except Pause as pause:
            if not context.assignment.routes_only:
                raise
            raise InterruptError(
                f"The conditional edge {branch.name!r} after {node.name!r} called interrupt(), but no node runs here "
                f"that could be paused. Ask in a node, and let the edge read the answer from the state."
            ) from pause
        if context.asked:
            raise InterruptSwallowedError(_swallowed_text(context))
        places += _destinations(spec, node, branch, chosen)
    return tuple(places)


def _given(node: NodeSpec, context: TaskContext) -> Any:
    arg = context.task.arg
    return node.read(context.assignment.checkpoint.values) if arg is UNSET else arg


def _action(call: Call, given: Any, context: TaskContext) -> Action:
    args = (given,) if call.takes_state else ()
    if not call.injected:
        return Action(call, args, _NOTHING)
    return Action(call, args, {name: _inject(what, context) for name, what in call.injected})


_NOTHING: Mapping[str, Any] = {}


def _inject(what: str, context: TaskContext) -> Any:
    if what == "config":
        return context.run.config
    return context.write if what == "writer" else context.runtime()


# ── What a node returned ───────────────────────────────────────────────────────────────────────────────────────


def read_result(
    spec: GraphSpec, context: TaskContext, given: Any, result: Any
) -> tuple[tuple[Write, ...], tuple[Place, ...], tuple[Question, ...]]:
    """Turn what a node returned into writes, explicit destinations and returned questions."""
    if result is None:
        return (), (), ()
    if result.__class__ is dict:
        return tuple(_changes(spec, context, given, result)), (), ()
    parts: Sequence[Any] = result if isinstance(result, (list, tuple)) and _is_mixed(result) else (result,)
    writes: list[Write] = []
    goto: list[Place] = []
    returned: list[Question] = []
    for part in parts:
        if isinstance(part, Command):
            writes += _command_writes(spec, context, given, part)
            goto += checked_places(spec, part.targets, f"Command(goto=…) of node {context.task.node!r}")
        elif isinstance(part, Send):
            raise InvalidUpdateError(
                f"Node {context.task.node!r} returned a Send. Say where to go with Command(goto=Send(…)), or return it "
                f"from a conditional edge."
            )
        elif isinstance(part, Interrupt):
            returned.append(_returned(context, part, len(returned)))
        elif part is not None:
            writes += _changes(spec, context, given, part)
    return tuple(writes), tuple(goto), tuple(returned)


def _is_mixed(result: Sequence[Any]) -> bool:
    return not hasattr(result, "_fields") and all(isinstance(part, Mapping | Command | Interrupt) for part in result)


def _command_writes(spec: GraphSpec, context: TaskContext, given: Any, command: Command) -> list[Write]:
    node = context.task.node
    if command.resume is not UNSET:
        raise InvalidUpdateError(
            f"Node {node!r} returned Command(resume=…). Answers come from outside: invoke() takes them."
        )
    if command.graph is not None:
        raise InvalidUpdateError(
            f"Node {node!r} returned Command(graph={command.graph!r}), but this graph has no parent graph to go to."
        )
    return [] if command.update is None else _changes(spec, context, given, command.update)


def _returned(context: TaskContext, part: Interrupt, index: int) -> Question:
    task, journal = context.task, context.run.journal
    if journal is None:
        raise InterruptError(
            f"Node {task.node!r} returned Interrupt(…), but the graph has no store, so nobody could ever resume it. "
            f'Compile it with one: graph.compile(checkpointer="sqlite:///bide.db").'
        )
    journal.codec.encode(part.value, f"Interrupt value returned by node {task.node!r}")
    key = part.key or f"#return{index}"
    schema = None if part.response_schema is None else json_schema(part.response_schema)
    return Question(
        question_id(context.run.uid, task.id, key), task.id, task.node, key, "return", part.value, schema=schema
    )


def _changes(spec: GraphSpec, context: TaskContext, given: Any, update: Any) -> list[Write]:
    """Return the writes in an update, without those that only hand the node's own input back."""
    node = context.task.node
    pairs = spec.read_update(update)
    if pairs is None:
        raise InvalidUpdateError(
            f"Node {node!r} returned {update!r} ({type(update).__name__}). "
            f"A node returns a dict of state keys, an instance of the state's schema, a Command, or None."
        )
    spec.check_keys(pairs, f"Node {node!r} returned")
    lent = spec.read_update(given) if context.task.arg is UNSET else None
    if not lent:
        return list(pairs.items())
    writes: list[Write] = []
    for key, value in pairs.items():
        if value is not lent.get(key, UNSET) or not (update is given or value.__class__ not in _ATOMS):
            writes.append((key, value))
        elif not _is_unchanged(context, key, value):
            # The node's own copy came back, changed in place: it is the value now, past the reducer.
            writes.append((key, value if isinstance(spec.channel(key), LastValue) else Overwrite(value)))
    return writes


_ATOMS = frozenset({int, float, bool, str, bytes, type(None)})


def _is_unchanged(context: TaskContext, key: str, value: Any) -> bool:
    if not _is_same(value, context.assignment.checkpoint.values.get(key, UNSET)):
        return False
    # Objects are lent, not copied, so a change inside one shows on both sides; what was stored tells the truth.
    journal = context.run.journal
    return journal is None or value.__class__ in _ATOMS or journal.is_unchanged(key, value)


def _is_same(value: Any, original: Any) -> bool:
    try:
        return bool(value == original)
    except Exception:  # noqa: BLE001 — arrays and the like do not compare to one truth; then it counts as changed
        return False


# ── Where it leads ─────────────────────────────────────────────────────────────────────────────────────────────


def _destinations(spec: GraphSpec, node: NodeSpec, branch: Branch, chosen: Any) -> list[Place]:
    where = f"The conditional edge {branch.name!r} after {node.name!r}"
    choices = list(chosen) if isinstance(chosen, list | tuple | set) else [chosen]
    if branch.destinations is None:
        return checked_places(spec, choices, where)
    places: list[Place] = []
    for choice in choices:
        if isinstance(choice, Send):
            places.append(choice)
        elif isinstance(choice, Hashable) and choice in branch.destinations:
            places.append(branch.destinations[choice])
        else:
            known = ", ".join(repr(key) for key in branch.destinations)
            raise InvalidUpdateError(
                f"{where} returned {choice!r}, which its path map does not hold. It holds: {known}."
            )
    return checked_places(spec, places, where)


def checked_places(spec: GraphSpec, places: Sequence[Any], where: str) -> list[Place]:
    """Refuse destinations that are no nodes: a typo must not end a run in silence."""
    for place in places:
        name = place.node if isinstance(place, Send) else place
        if not isinstance(name, str):
            raise InvalidUpdateError(
                f"{where} leads to {place!r} ({type(place).__name__}). Give a node's name, a Send, or a list of them."
            )
        if name not in spec.nodes and (name != END or isinstance(place, Send)):
            known = ", ".join(repr(known) for known in spec.nodes)
            raise InvalidUpdateError(f"{where} leads to {name!r}, which is no node. Known nodes: {known}, and END.")
    return list(places)


# ── What went wrong ────────────────────────────────────────────────────────────────────────────────────────────


def _swallowed_text(context: TaskContext) -> str:
    return (
        f"Node {context.task.node!r} called interrupt({context.asked[0].value!r}) and then caught its signal, so the "
        f"thread did not pause. Look for `except BaseException` or a bare `except:` around it; use `except Exception`, "
        f"or re-raise."
    )


def _hidden_pause(error: Exception, context: TaskContext) -> Exception:
    if not context.asked or context.assignment.routes_only or isinstance(error, InterruptSwallowedError):
        return error
    swallowed = InterruptSwallowedError(_swallowed_text(context))
    swallowed.__cause__ = error
    return swallowed


def _stray_pause(pause: Pause, context: TaskContext) -> Exception:
    return InterruptError(
        f"Node {context.task.node!r} was left by the pause of another task ({pause.question.node!r}). "
        f"A node must not keep or re-raise the signal of another one."
    )


def _check_replayed(context: TaskContext) -> None:
    for key in context.unvisited():
        raise ReplayMismatchError(
            f"Node {context.task.node!r} finished without making step {key!r}, which it had made before its pause.\n"
            f"  recorded: {key}\n  now: (not made)\n"
            f"Its code or its inputs changed between the two runs. Keep the step, or answer this thread with the code "
            f"that asked; if the step is no longer wanted, fork the thread from an earlier checkpoint."
        )
