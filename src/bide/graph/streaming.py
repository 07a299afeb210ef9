"""Stream modes: what the engine tells, in the shapes that readers of LangGraph's streams know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from bide.clock import Clock, iso
from bide.engine.spec import GraphSpec
from bide.engine.values import CUSTOM, PAUSED, RESULT, SAVED, TASK, VALUES, Checkpoint, Emit, Ending, Outcome, Task
from bide.errors import InvalidUpdateError
from bide.types import INTERRUPT, UNSET, Overwrite, StreamMode

_NEEDS: Mapping[str, frozenset[str]] = {
    "values": frozenset({VALUES, PAUSED}),
    "updates": frozenset({RESULT, PAUSED}),
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
                f"There is no stream mode {mode!r}. Choose from {', '.join(get_args(StreamMode))}."
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
        config_of: Callable[[int], dict[str, Any]],
        clock: Clock,
    ) -> None:
        self.spec = spec
        self.modes = modes
        self.config_of = config_of
        self.clock = clock

    def parts(self, event: Emit) -> Iterator[tuple[str, Any]]:
        """Yield (mode, payload) for each mode that this event concerns."""
        for mode in self.modes:
            if event.kind in _NEEDS[mode]:
                yield from ((mode, payload) for payload in self._payloads(mode, event))

    def _payloads(self, mode: str, event: Emit) -> Iterator[Any]:
        if mode == "custom":
            yield event.what
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

    def _values(self, event: Emit) -> dict[str, Any]:
        if event.kind == PAUSED:
            return {**output_of(self.spec, event.what.checkpoint), INTERRUPT: _shown(event.what)}
        return output_of(self.spec, event.what)

    def _updates(self, event: Emit) -> Iterator[dict[str, Any]]:
        if event.kind == PAUSED:
            yield {INTERRUPT: _shown(event.what)}
        elif event.what[1].is_done:
            yield {event.what[1].task.node: update_of(event.what[1])}

    def _task_payloads(self, event: Emit) -> Iterator[tuple[str, dict[str, Any]]]:
        checkpoint, what = event.what
        if event.kind == TASK:
            yield "task", self._task_start(checkpoint, what)
        elif not what.is_skipped:
            yield "task_result", _task_end(what)

    def _task_start(self, checkpoint: Checkpoint, task: Task) -> dict[str, Any]:
        given = output_of(self.spec, checkpoint) if task.arg is UNSET else task.arg
        triggers = [origin.node for origin in checkpoint.origins]
        return {"id": task.id, "name": task.node, "input": given, "triggers": triggers}

    def _checkpoint(self, event: Emit) -> dict[str, Any]:
        asks = event.what.asks if event.kind == PAUSED else ()
        checkpoint: Checkpoint = event.what.checkpoint if event.kind == PAUSED else event.what
        return {
            "config": self.config_of(checkpoint.seq),
            "parent_config": None if checkpoint.parent is None else self.config_of(checkpoint.parent),
            "values": output_of(self.spec, checkpoint),
            "metadata": {"source": checkpoint.source, "step": checkpoint.step, "parents": {}},
            "next": list(checkpoint.next),
            "tasks": [
                {
                    "id": task.id,
                    "name": task.node,
                    "interrupts": [
                        _as_dict(ask.shown()) for ask in asks if ask.task_id == task.id and not ask.is_static
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


def output_of(spec: GraphSpec, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the state as callers see it: the keys of the output schema, and those that an edit brought in."""
    values = checkpoint.values
    shown = {key: values[key] for key in spec.output_keys if key in values}
    for key in checkpoint.extras:
        shown[key] = values[key]
    return shown


def state_of(spec: GraphSpec, checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the whole state, for whoever looks at the thread: every key but the graph's own barriers."""
    return {key: value for key, value in checkpoint.values.items() if key not in spec.joins}


def update_of(outcome: Outcome) -> dict[str, Any] | None:
    """Return what a task wrote, as one dict; a key written several times holds a list."""
    if not outcome.writes:
        return None
    update: dict[str, list[Any]] = {}
    for key, value in outcome.writes:
        update.setdefault(key, []).append(value.value if isinstance(value, Overwrite) else value)
    return {key: values[0] if len(values) == 1 else values for key, values in update.items()}


def _task_end(outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.task.id,
        "name": outcome.task.node,
        "error": None if outcome.error is None else repr(outcome.error),
        "result": update_of(outcome) or {},
        "interrupts": [_as_dict(question.shown()) for question in (*outcome.asks, *outcome.returns)],
    }


def _shown(ending: Ending) -> tuple[Any, ...]:
    return tuple(question.shown() for question in ending.asks if not question.is_static)


def _as_dict(interrupt: Any) -> dict[str, Any]:
    return {"value": interrupt.value, "id": interrupt.id}
