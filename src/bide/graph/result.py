"""What a call returns: the state as a dict, and whether the thread is done or waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bide.types import INTERRUPT, Interrupt


@dataclass(frozen=True, slots=True)
class GraphOutput:
    """What `invoke(version="v2")` returns: the output, and the open questions beside it."""

    value: Any
    interrupts: tuple[Interrupt, ...] = ()

    def __getitem__(self, key: str) -> Any:
        """Look into the output."""
        return list(self.interrupts) if key == INTERRUPT else self.value[key]

    def __contains__(self, key: object) -> bool:
        return bool(self.interrupts) if key == INTERRUPT else key in self.value


def pick_keys(output: Any, keys: str | Sequence[str] | None) -> Any:
    """Return the part of an output that the caller asked for."""
    if keys is None or not isinstance(output, dict):
        return output
    if isinstance(keys, str):
        return output.get(keys)
    return {key: output[key] for key in keys if key in output}


class Result(dict[str, Any]):
    """The state after a call. A plain dict to whoever wants one.

    With open questions it holds them under `"__interrupt__"`, as LangGraph does; `is_interrupted`, `interrupts`,
    `value` and `next` say the same in words.
    """

    def __init__(
        self,
        state: dict[str, Any],
        *,
        interrupts: tuple[Interrupt, ...],
        next: tuple[str, ...],
        is_interrupted: bool,
        thread_id: str | None,
        checkpoint_id: str | None,
    ) -> None:
        super().__init__(state)
        if interrupts:
            self[INTERRUPT] = list(interrupts)
        self.interrupts = interrupts
        """The open questions, in task order; empty at a static pause."""
        self.next = next
        """The nodes that come next."""
        self.is_interrupted = is_interrupted
        self.thread_id = thread_id
        self.checkpoint_id = checkpoint_id

    @property
    def is_complete(self) -> bool:
        """Whether the graph has reached its end."""
        return not self.is_interrupted

    @property
    def status(self) -> str:
        """`"done"` or `"waiting"`."""
        return "waiting" if self.is_interrupted else "done"

    @property
    def value(self) -> dict[str, Any]:
        """The state alone, without `"__interrupt__"`."""
        return {key: value for key, value in self.items() if key != INTERRUPT}

    @property
    def interrupt_value(self) -> Any:
        """What the first open question asks, or None."""
        return self.interrupts[0].value if self.interrupts else None
