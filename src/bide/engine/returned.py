"""What a node returned, read: updates, destinations, questions, and commands to the graph around its own. Pure."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bide.engine.channels import LastValue, Reduced
from bide.engine.context import TaskContext
from bide.engine.plan import Place, checked_places, question_id
from bide.engine.spec import GIVEN, PREVIOUS, GraphSpec
from bide.engine.values import Ending, Question
from bide.errors import InterruptError, InvalidUpdateError
from bide.shape import json_schema
from bide.types import UNSET, Command, FinalValue, Interrupt, Overwrite, Send

Write = tuple[str, Any]


class Read(NamedTuple):
    """What a node returned, taken apart."""

    writes: tuple[Write, ...] = ()
    goto: tuple[Place, ...] = ()
    returned: tuple[Question, ...] = ()
    up: tuple[Command[Any], ...] = ()


NOTHING_READ = Read()


def read_result(spec: GraphSpec, context: TaskContext, given: Any, result: Any) -> Read:
    """Turn what a node returned into writes, destinations, returned questions, and words to the graph above."""
    if spec.value_key is not None:
        return Read(_value_writes(spec.value_key, result))
    if result is None:
        return NOTHING_READ
    if result.__class__ is dict:
        return Read(tuple(_changes(spec, context, given, result)))
    parts: Sequence[Any] = result if isinstance(result, (list, tuple)) and _is_mixed(result) else (result,)
    writes: list[Write] = []
    goto: list[Place] = []
    returned: list[Question] = []
    up: list[Command[Any]] = []
    for part in parts:
        if isinstance(part, Command) and part.graph is not None:
            up.append(_checked_up(context, part))
        elif isinstance(part, Command):
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
    return Read(tuple(writes), tuple(goto), tuple(returned), tuple(up))


def _value_writes(key: str, result: Any) -> tuple[Write, ...]:
    """A function's result is its graph's output, and what the next call on the thread finds as `previous`."""
    _check_no_future(result)
    if isinstance(result, FinalValue):
        _check_no_future(result.value)
        return (key, result.value), (PREVIOUS, result.save)
    return (key, result), (PREVIOUS, result)


def _check_no_future(result: Any) -> None:
    if hasattr(result, "unheard"):
        raise InvalidUpdateError(
            f"The entrypoint returned the future of task {result.node.name!r}, and not its result. Write "
            f"{result.node.name}(…).result(), or await it."
        )


def _checked_up(context: TaskContext, command: Command[Any]) -> Command[Any]:
    node = context.task.node
    if command.graph != Command.PARENT or not context.assignment.checkpoint.prefix:
        raise InvalidUpdateError(
            f"Node {node!r} returned Command(graph={command.graph!r}), but this graph has no parent graph to go to."
        )
    if command.resume is not UNSET:
        raise InvalidUpdateError(_no_answers(node))
    return command


def _no_answers(node: str) -> str:
    return f"Node {node!r} returned Command(resume=…). Answers come from outside: invoke() takes them."


def _is_mixed(result: Sequence[Any]) -> bool:
    return not hasattr(result, "_fields") and all(isinstance(part, Mapping | Command | Interrupt) for part in result)


def _command_writes(spec: GraphSpec, context: TaskContext, given: Any, command: Command[Any]) -> list[Write]:
    node = context.task.node
    if command.resume is not UNSET:
        raise InvalidUpdateError(_no_answers(node))
    return [] if command.update is None else _changes(spec, context, given, command.pairs)


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


# ── What a graph inside a task hands back ──────────────────────────────────────────────────────────────────────────


def read_ending(outer: GraphSpec, inner: GraphSpec, context: TaskContext, given: Any, ending: Ending) -> Read:
    """Turn the end of a graph that is a node into what that node returned."""
    if ending.up:
        return read_result(outer, context, given, [Command(update=up.update, goto=up.goto) for up in ending.up])
    if inner.value_key is not None:
        return read_result(outer, context, given, ending.checkpoint.values.get(inner.value_key))
    # What a Send brought was not the outer state, so all of it is new there.
    got = (outer.read_update(given) or {}) if context.task.arg is UNSET else {}
    values = ending.checkpoint.values
    if got and not context.assignment.is_fresh:
        got = {**got, **_given_before(inner, values)}
    return Read(tuple(_handed_back(outer, inner.output_keys, values, got)))


def _given_before(inner: GraphSpec, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a graph that was resumed had been given, as far as it is still in its state."""
    found: dict[str, Any] = {}
    for key, (digest, length) in values.get(GIVEN, {}).items():
        value = values.get(key, UNSET)
        part = value[:length] if length is not None and isinstance(value, list) else value
        found[key] = part if part is not UNSET and inner.codec.digest(part) == digest else UNSET
    return found


def _handed_back(
    outer: GraphSpec, keys: Sequence[str], values: Mapping[str, Any], got: Mapping[str, Any]
) -> list[Write]:
    """Return what the graph inside has changed of the keys that both know.

    It began with the outer state, so what it only passed on is no update, and to a list that both add to only its own
    items are added: a reducer must not see the outer items a second time.
    """
    writes: list[Write] = []
    for key in keys:
        if key not in outer.state_keys or key not in values:
            continue
        value, before = values[key], got.get(key, UNSET)
        if before is not UNSET and _is_same(value, before):
            continue
        channel = outer.channel(key)
        if isinstance(channel, Reduced) and channel.reducer in _APPENDING and _begins_with(value, before):
            value = value[len(before) :]
        writes.append((key, value))
    return writes


_APPENDING = (operator.add, operator.concat, operator.iadd)


def _begins_with(value: Any, before: Any) -> bool:
    return isinstance(before, list | tuple) and type(value) is type(before) and value[: len(before)] == before
