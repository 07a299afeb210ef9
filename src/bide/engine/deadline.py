"""Waiting for a node only so long, in all or since it was last heard of."""

from __future__ import annotations

from time import monotonic

from bide.engine.care import Limits
from bide.engine.context import TaskContext
from bide.errors import NodeTimeoutError


class Deadline:
    """The time that one attempt of a node has."""

    def __init__(self, limits: Limits, context: TaskContext) -> None:
        self.limits = limits
        self.context = context
        self.began = self.heard = monotonic()
        context.pulse = self._hear

    def _hear(self, is_heartbeat: bool) -> None:
        if is_heartbeat or self.limits.counts_all:
            self.heard = monotonic()

    def left(self) -> float:
        """Return how many seconds there are until the time is over; not positive when it is."""
        now = monotonic()
        run = float("inf") if self.limits.run is None else self.began + self.limits.run - now
        idle = float("inf") if self.limits.idle is None else self.heard + self.limits.idle - now
        return min(run, idle)

    def over(self) -> NodeTimeoutError:
        """Give the attempt up: its code may go on in its thread, but what it does counts no more."""
        context, limits = self.context, self.limits
        context.attempt += 1
        context.pulse = None
        is_run = limits.run is not None and monotonic() - self.began >= limits.run
        kind = "run" if is_run else "idle"
        told = f"took longer than {limits.run} s" if is_run else f"was not heard of for {limits.idle} s"
        return NodeTimeoutError(
            f"Node {context.task.node!r} {told}, so this attempt was given up. A sync node goes on in its thread until "
            f"it returns, but what it does is not saved. Give it more time with timeout=…, or try again with a "
            f"RetryPolicy.",
            node=context.task.node,
            kind=kind,
        )
