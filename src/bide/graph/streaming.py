"""Stream modes: what the engine tells, in the shapes that readers of LangGraph's streams know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from bide.clock import Clock, iso
from bide.engine.apply import seen_now
from bide.engine.plan import branch_of
from bide.engine.spec import GraphSpec
from bide.engine.values import (
    CUSTOM,
    MESSAGES,
    PAUSED,
    RESULT,
    SAVED,
    TASK,
    VALUES,
    Checkpoint,
    Emit,
    Ending,
    Outcome,
    Task,
)
from bide.errors import InvalidUpdateError, did_you_mean
from bide.graph.live import message_metadata
from bide.graph.result import pick_keys
from bide.graph.tokens import messages_in
from bide.types import INTERRUPT, UNSET, Overwrite, StreamMode

_NEEDS: Mapping[str, frozenset[str]] = {
    "values": frozenset({VALUES, PAUSED}),
    "updates": frozenset({RESULT, PAUSED}),
    "messages": frozenset({MESSAGES, RESULT}),
    "custom": frozenset({CUSTOM}),
    "tasks": frozenset({TASK, RESULT}),
    "checkpoints": frozenset({SAVED, PAUSED}),
    "debug": frozenset({TASK, RESULT, SAVED, PAUSED}),
}


def read_modes(modes: StreamMode | Sequence[StreamMode]) -> tuple[str, ...]:
    """Read `stream_mode`, one or several."""
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in chosen:
        if mode not in _NEEDS:
            raise InvalidUpdateError(
                f"There is no stream mode {mode!r}.{did_you_mean(mode, _NEEDS)} Choose from "
                f"{', '.join(get_args(StreamMode))}."
            )
    return chosen


def wanted(modes: Sequence[str]) -> frozenset[str]:
    """Return what the engine must tell for these modes; what nobody reads is never made."""
    return frozenset().union(*(_NEEDS[mode] for mode in modes)) if modes else frozenset()


class Shaper:
    """Turns what the engine tells into stream parts."""

    def __init__(
        self,
        spec: GraphSpec,
        modes: Sequence[str],
        config_of: Callable[..., dict[str, Any]],
        clock: Clock,
        options: Mapping[str, Any],
        config: Mapping[str, Any],
    ) -> None:
        self.config = config
        self.spec = spec
        self.modes = modes
        self.config_of = config_of
        self.clock = clock
        self.is_single = isinstance(options.get("stream_mode", ""), str)
        self.has_ns = bool(options.get("subgraphs"))
        self.is_v2 = options.get("version") == "v2"
        self.keys = options.get("output_keys")
        self._seen: set[str] = set()

    def parts(self, event: Emit) -> Iterator[Any]:
        """Yield a part for each mode that this event concerns, in the shape that the caller asked for."""
        if event.ns and not self.has_ns:
            return
        for mode in self.modes:
            if self.shows(mode, event):
                for payload in self.payloads(mode, event):
                    yield self._part(mode, event, payload)

    def shows(self, mode: str, event: Emit) -> bool:
        """Whether a mode has something to show of an event."""
        return event.kind in _NEEDS[mode]

    def _part(self, mode: str, event: Emit, payload: Any) -> Any:
        if self.is_v2:
            part = {"type": mode, "ns": event.ns, "data": payload}
            if mode == "values":
                part["interrupts"] = payload.pop(INTERRUPT, ()) if isinstance(payload, dict) else ()
            return part
        if self.is_single:
            return (event.ns, payload) if self.has_ns else payload
        return (event.ns, mode, payload) if self.has_ns else (mode, payload)

    def payloads(self, mode: str, event: Emit) -> Iterator[Any]:
        """Yield what one mode shows of an event."""
        if mode == "custom" or (mode == "messages" and event.kind == MESSAGES):
            yield event.what
        elif mode == "messages":
            yield from self._whole_messages(event)
        elif mode == "values":
            yield self._values(event)
        elif mode == "updates":
            yield from self._updates(event)
        elif mode == "tasks":
            yield from (payload for _, payload in self._task_payloads(event))
        elif mode == "checkpoints":
            yield self._checkpoint(event)
        else:
            yield from self._debug(event)

    def _whole_messages(self, event: Emit) -> Iterator[Any]:
        """Show the messages that a node returned and no model has streamed."""
        checkpoint, outcome = event.what
        if not outcome.is_done:
            return
        self._seen |= outcome.streamed
        config = {**self.config, **self.config_of(checkpoint.seq, checkpoint.ns)}
        metadata = message_metadata(config, checkpoint, outcome.task)
        given = checkpoint.values if outcome.task.arg is UNSET else outcome.task.arg
        for message in messages_in(outcome.writes, self._seen, given):
            yield message, metadata

    def _output(self, event: Emit, checkpoint: Checkpoint) -> Any:
        """Show the state: all of it, as whoever follows a stream wants to see; `output_keys` may ask for less."""
        return pick_keys(state_of(event.spec or self.spec, checkpoint), self.keys)

    def _values(self, event: Emit) -> Any:
        if event.kind == PAUSED:
            seen = seen_now(event.spec or self.spec, event.what.checkpoint, event.what.outcomes)
            output = self._output(event, seen)
            return {**(output if isinstance(output, dict) else {}), INTERRUPT: _shown(event.what)}
        return self._output(event, event.what)

    def _updates(self, event: Emit) -> Iterator[dict[str, Any]]:
        if event.kind == PAUSED:
            yield {INTERRUPT: _shown(event.what)}
        elif event.what[1].is_done:
            outcome = event.what[1]
            shown = pick_keys(update_of(outcome, event.spec or self.spec), self.keys)
            update = {outcome.task.node: None if shown == {} else shown}
            yield {**update, "__metadata__": {"cached": True}} if outcome.is_cached else update

    def _task_payloads(self, event: Emit) -> Iterator[tuple[str, dict[str, Any]]]:
        checkpoint, what = event.what
        if event.kind == TASK:
            yield "task", self._task_start(event, checkpoint, what)
        elif not what.is_skipped:
            yield "task_result", _task_end(what, event.spec or self.spec)

    def _task_start(self, event: Emit, checkpoint: Checkpoint, task: Task) -> dict[str, Any]:
        spec = event.spec or self.spec
        given = task.arg
        if given is UNSET:
            is_function = spec.value_key is not None
            given = spec.nodes[task.node].read(checkpoint.values) if is_function else output_of(spec, checkpoint)
        triggers = [origin.node for origin in checkpoint.origins]
        return {"id": task.id, "name": task.node, "input": given, "triggers": triggers}

    def _checkpoint(self, event: Emit) -> dict[str, Any]:
        asks = event.what.asks if event.kind == PAUSED else ()
        checkpoint: Checkpoint = event.what.checkpoint if event.kind == PAUSED else event.what
        return {
            "config": self.config_of(checkpoint.seq, checkpoint.ns),
            "parent_config": None if checkpoint.parent is None else self.config_of(checkpoint.parent, checkpoint.ns),
            "values": self._output(event, checkpoint),
            "metadata": {"source": checkpoint.source, "step": checkpoint.step, "parents": {}},
            "next": list(checkpoint.next),
            "tasks": [
                {
                    "id": task.id,
                    "name": task.node,
                    "interrupts": [
                        _as_dict(ask.shown())
                        for ask in asks
                        if branch_of(checkpoint.prefix, ask.task_id) == task.id and not ask.is_static
                    ],
                    "state": None,
                }
                for task in checkpoint.tasks
            ],
        }

    def _debug(self, event: Emit) -> Iterator[dict[str, Any]]:
        if event.kind in (SAVED, PAUSED):
            found = event.what.checkpoint if event.kind == PAUSED else event.what
            yield self._debugged(found.step, "checkpoint", self._checkpoint(event))
        else:
            for kind, payload in self._task_payloads(event):
                yield self._debugged(event.what[0].step + 1, kind, payload)

    def _debugged(self, step: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"step": step, "timestamp": iso(self.clock.now()), "type": kind, "payload": payload}


def output_of(spec: GraphSpec, checkpoint: Checkpoint) -> Any:
    """Return the state as callers see it: the keys of the output schema, and those that an edit brought in."""
    values = checkpoint.values
    if spec.value_key is not None:
        return values.get(spec.value_key)
    shown = {key: values[key] for key in spec.output_keys if key in values}
    for key in checkpoint.extras:
        shown[key] = values[key]
    return shown


def state_of(spec: GraphSpec, checkpoint: Checkpoint) -> Any:
    """Return the whole state, for whoever looks at the thread: every key but the graph's own."""
    if spec.value_key is not None:
        return checkpoint.values.get(spec.value_key)
    return {key: value for key, value in checkpoint.values.items() if key[0] != "~"}


def update_of(outcome: Outcome, spec: GraphSpec) -> Any:
    """Return what a task wrote, as one dict; a key written several times holds a list."""
    update: dict[str, list[Any]] = {}
    for key, value in outcome.writes:
        if key[0] != "~":
            update.setdefault(key, []).append(value.value if isinstance(value, Overwrite) else value)
    if not update:
        return None
    if spec.value_key is not None or outcome.is_value:
        return update[spec.value_key or "value"][0]
    return {key: values[0] if len(values) == 1 else values for key, values in update.items()}


def _task_end(outcome: Outcome, spec: GraphSpec) -> dict[str, Any]:
    update = update_of(outcome, spec)
    return {
        "id": outcome.task.id,
        "name": outcome.task.node,
        "error": None if outcome.error is None else repr(outcome.error),
        "result": {} if update is None else update,
        "interrupts": [_as_dict(question.shown()) for question in (*outcome.asks, *outcome.returns)],
    }


def _shown(ending: Ending) -> tuple[Any, ...]:
    return tuple(question.shown() for question in ending.asks if not question.is_static)


def _as_dict(interrupt: Any) -> dict[str, Any]:
    return {"value": interrupt.value, "id": interrupt.id}
