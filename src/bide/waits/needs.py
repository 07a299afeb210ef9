"""What a wait is about, beside the question itself: its condition, until when, for whom, and who is told again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

OnTimeout = Literal["resume", "cancel", "fail"]
"""What comes of a deadline: the node goes on (with its default, or with `WaitExpired`), or the run ends."""


class Needs(NamedTuple):
    """What a wait needs. Lengths of time are milliseconds."""

    condition: Mapping[str, Any] | None = None
    """A condition in its plain form; without one, anybody may answer."""
    timeout: int | None = None
    on_timeout: OnTimeout = "resume"
    title: str = ""
    assignees: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    remind_every: int | None = None
    escalate_after: int | None = None
    escalate_to: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    """What an answer must look like, for those who do not have the graph."""

    def plain(self) -> dict[str, Any]:
        """Return what is worth storing: all that was said."""
        said = {key: value for key, value in self._asdict().items() if value != _NOTHING[key]}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}

    def remind_at(self, asked_at: int, now: int) -> int | None:
        """Return when somebody is to be told next: again, or one step higher."""
        due = []
        if self.remind_every:
            due.append(asked_at + ((now - asked_at) // self.remind_every + 1) * self.remind_every)
        if self.escalate_after is not None and asked_at + self.escalate_after > now:
            due.append(asked_at + self.escalate_after)
        return min(due, default=None)


_NOTHING: dict[str, Any] = Needs()._asdict()


def read_needs(plain: Mapping[str, Any]) -> Needs:
    """Read what was stored; what a newer Bide has added is left out."""
    said = {key: value for key, value in plain.items() if key in _NOTHING}
    read: Any = {key: tuple(value) if isinstance(_NOTHING[key], tuple) else value for key, value in said.items()}
    return Needs(**read)
