"""What becomes of a run's row: as the engine's values, and as the status that a broken-off run is left in."""

from __future__ import annotations

from bide.engine.values import RunInfo
from bide.errors import GraphChanged, ReplayMismatchError
from bide.store.rows import RunRow
from bide.types import RunStatus

ENDS = (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED)
"""Where a run is over."""


def status_after(reason: BaseException) -> RunStatus:
    """Say where a claimed run stands that could not even be begun, or not be ended."""
    if isinstance(reason, (GraphChanged, ReplayMismatchError)):
        return RunStatus.BLOCKED
    if isinstance(reason, KeyboardInterrupt):
        return RunStatus.READY  # somebody stops the program, and not the run
    return RunStatus.FAILED


def run_row(run: RunInfo | None) -> RunRow | None:
    """Return the live run of a thread as the store names it."""
    return None if run is None else RunRow(run.id, run.status, run.epoch, run.is_orphan)
