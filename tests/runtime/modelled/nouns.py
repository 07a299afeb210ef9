"""The nouns of the model: what everybody must see of runs, waits and threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LIVE = ("ready", "running", "waiting", "dead")
HOUR = 3_600_000
LOOK_BACK = 24 * HOUR
MOST_CRASHES = 5
Script = list[list[Any]]


@dataclass(eq=False)
class Run:
    """One request to advance a thread."""

    status: str
    due: int | None
    script: Script | None
    """Its input, until its first checkpoint."""
    base: int | None = None
    """At which checkpoint it begins, if not at the newest."""
    id: str = ""
    crashes: int = 0
    has_progress: bool = False
    worker: str | None = None

    @property
    def is_over(self) -> bool:
        return self.status in ("done", "failed", "cancelled")


@dataclass(eq=False)
class Wait:
    """What a thread waits for; `answer` is there when it has come."""

    kind: str
    about: Any = None
    due: int | None = None
    deadline: int | None = None
    answer: Any = None
    is_open: bool = True


@dataclass(eq=False)
class Thread:
    """A thread, as everybody must see it."""

    id: str
    parent: Thread | None = None
    on_close: str = "abandon"
    is_closing: bool = False
    runs: list[Run] = field(default_factory=list)
    history: list[tuple[Script, int, list[Any]]] = field(default_factory=list)
    writers: list[Run | None] = field(default_factory=list)
    """Which run wrote each checkpoint."""
    wait: Wait | None = None
    children: list[Thread] = field(default_factory=list)
    child_at: dict[int, Thread] = field(default_factory=dict)
    """The child that was spawned in the step after a checkpoint."""
    reports: list[tuple[int, str]] = field(default_factory=list)
    """How it ended, for its parent: each is a fact."""
    heard: set[Any] = field(default_factory=set)
    """The facts that have woken it."""

    @property
    def live(self) -> Run | None:
        return next((run for run in self.runs if run.status in LIVE), None)

    @property
    def state(self) -> tuple[Script, int, list[Any]]:
        return self.history[-1] if self.history else ([], 0, [])

    @property
    def is_unfinished(self) -> bool:
        script, at, _ = self.state
        return at < len(script)


class Busy(Exception):
    """There is a live run."""
