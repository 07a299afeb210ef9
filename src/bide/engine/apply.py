"""What changed: from the writes of finished tasks to the next checkpoint. Pure."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

from bide.engine.channels import LastValue
from bide.engine.plan import Place, origins_of, plan, targets_of
from bide.engine.spec import DEFERRED, GATHERED, PARALLEL, GraphSpec
from bide.engine.values import Checkpoint, Outcome
from bide.errors import InvalidUpdateError
from bide.types import END, START, UNSET, Overwrite, Send

Writes = Mapping[str, Sequence[Any]]


def next_checkpoint(
    spec: GraphSpec, before: Checkpoint, outcomes: Sequence[Outcome], *, source: str = "loop"
) -> tuple[Checkpoint, frozenset[str]]:
    """Apply a finished step; return the checkpoint after it, and the keys it wrote.

    `outcomes` come in task order, whichever finished first, so the result is the same at every run.
    """
    writes = _gather(spec, before, outcomes)
    full = [join for join in spec.joins if join in writes and _fills(spec, join, before, writes)] if spec.joins else ()
    seq = before.seq + 1
    places = targets_of(spec, outcomes, full)
    if spec.deferred:
        places = _put_off(spec, before, places, writes)
    values, changed = merge(spec, before, writes, outcomes)
    tasks = plan(before.prefix, seq, places)
    origins = origins_of(outcomes)
    after = Checkpoint(
        seq,
        before.seq,
        before.step + 1,
        source,
        values,
        tasks,
        origins,
        spec.fingerprint,
        None,
        before.extras,
        None,
        None,
        None,
        before.ns,
        before.prefix,
        before.is_migrated,
    )
    return after, changed


def _put_off(spec: GraphSpec, before: Checkpoint, places: Sequence[Place], writes: dict[str, list[Any]]) -> list[Place]:
    """Let deferred nodes wait until nothing else is left to run; who waits is kept with the state."""
    waiting = before.values.get(DEFERRED, [])
    put_off = {*waiting, *(place for place in places if isinstance(place, str) and place in spec.deferred)}
    # A Send brings its own state, so it is not put off: there is nothing more to wait for.
    rest = [place for place in places if isinstance(place, Send) or place not in spec.deferred]
    if all(place == END for place in rest):
        rest, put_off = sorted(put_off), set()
    if put_off != set(waiting):
        writes[DEFERRED] = [Overwrite(sorted(put_off))]
    return rest


def edited_checkpoint(
    spec: GraphSpec, before: Checkpoint, writes: Sequence[tuple[str, Any]], *, source: str
) -> tuple[Checkpoint, frozenset[str]]:
    """Apply writes beside the steps: the plan stays as it is, with its tasks and their ids."""
    if not writes:
        return before, frozenset()
    grouped: dict[str, list[Any]] = {}
    for key, value in writes:
        grouped.setdefault(key, []).append(value)
    seq = before.seq + 1
    values, changed = merge(spec, before, grouped, (), keep_fleeting=True)
    after = before._replace(
        seq=seq,
        parent=before.seq,
        source=source,
        values=values,
        fingerprint=spec.fingerprint,
        extras=before.extras | {key for key in grouped if key not in spec.channels},
        created_at=None,
    )
    return after, changed


def rerouted(spec: GraphSpec, checkpoint: Checkpoint, places: Sequence[Place]) -> Checkpoint:
    """Replace the plan of a checkpoint that is not written yet."""
    values = checkpoint.values
    if spec.deferred:
        writes: dict[str, list[Any]] = {}
        places = _put_off(spec, checkpoint, places, writes)
        values = {**values, **{key: written[0].value for key, written in writes.items()}}
    return checkpoint._replace(values=values, tasks=plan(checkpoint.prefix, checkpoint.seq, places))


def merge(
    spec: GraphSpec,
    before: Checkpoint,
    writes: Writes,
    outcomes: Sequence[Outcome],
    *,
    keep_fleeting: bool = False,
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the values after these writes, and which keys changed. Only written keys are touched."""
    values = dict(before.values)
    channels = spec.channels
    for key, written in writes.items():
        channel = channels.get(key, _PLAIN)
        if channel.__class__ is LastValue and len(written) == 1 and written[0].__class__ is not Overwrite:
            values[key] = written[0]  # the commonest case, without a call
            continue
        try:
            values[key] = channel.merge(key, values.get(key, UNSET), written)
        except InvalidUpdateError as problem:
            raise _with_writers(problem, key, outcomes) from problem.__cause__
    if keep_fleeting or not spec.fleeting:
        return values, frozenset(writes)
    gone = [key for key in spec.fleeting if key in values and key not in writes]
    for key in gone:
        del values[key]
    return values, frozenset((*writes, *gone))


_PLAIN = LastValue()


def seen_now(spec: GraphSpec, checkpoint: Checkpoint, finished: Sequence[Outcome]) -> Checkpoint:
    """Return the state as it looks while a step is not over: with what its finished tasks have written.

    Where that cannot be merged, the step as it began is shown: whoever must look at the thread can.
    """
    if not finished:
        return checkpoint
    writes: dict[str, list[Any]] = {}
    for outcome in finished:
        for key, value in outcome.writes:
            writes.setdefault(key, []).append(value)
    try:
        values, _ = merge(spec, checkpoint, writes, finished, keep_fleeting=True)
    except InvalidUpdateError:
        return checkpoint
    return checkpoint._replace(values=values)


def seen_after(
    spec: GraphSpec, values: Mapping[str, Any], writes: Sequence[tuple[str, Any]], *, whole: bool
) -> Mapping[str, Any]:
    """Return the values as a conditional edge sees them: with the writes of its own node, and no other's.

    One that reads only some keys gets them without a copy of all the others.
    """
    changed: dict[str, Any] = {}
    for key, value in writes:
        before = changed[key] if key in changed else values.get(key, UNSET)
        changed[key] = spec.channel(key).merge(key, before, [value])
    return {**values, **changed} if whole else ChainMap(changed, values)  # type: ignore[arg-type]


def _gather(spec: GraphSpec, before: Checkpoint, outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    writes: dict[str, list[Any]] = {}
    for outcome in outcomes:
        for key, value in outcome.writes:
            writes.setdefault(key, []).append(value)
        name = outcome.task.node
        if name == START:
            continue
        node = spec.nodes[name]
        for join in node.joins:
            writes.setdefault(join, []).append(name)
        if node.is_feeder:
            _feed(before, writes, outcome)
        if node.is_fanin:
            writes[GATHERED] = [True]
    return writes


def _feed(before: Checkpoint, writes: dict[str, list[Any]], outcome: Outcome) -> None:
    """Add what a branch returned to the results of its fan-in; those of an earlier round make way."""
    if PARALLEL not in writes and before.values.get(GATHERED):
        writes[PARALLEL] = [Overwrite([])]
        writes[GATHERED] = [False]
    writes.setdefault(PARALLEL, []).append([dict(outcome.writes)])


def _fills(spec: GraphSpec, join: str, before: Checkpoint, writes: Writes) -> bool:
    return spec.barrier(join).is_full(before.values.get(join, UNSET), writes[join])


def _with_writers(problem: InvalidUpdateError, key: str, outcomes: Sequence[Outcome]) -> InvalidUpdateError:
    writers = [outcome.task for outcome in outcomes if any(name == key for name, _ in outcome.writes)]
    nodes = ", ".join(repr(task.node) for task in writers)
    told = InvalidUpdateError(f"{problem} Written by: {nodes}." if nodes else str(problem))
    told.task_ids = tuple(task.id for task in writers)
    return told
