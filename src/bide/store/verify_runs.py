"""Whether the runs of a thread make sense: one is live (I1), leases (I3), and whether what was started begins (I14)."""

from __future__ import annotations

from collections.abc import Mapping

from bide.clock import Instant
from bide.store.stored_rows import RUNS, Values
from bide.store.verify_history import Told
from bide.store.verify_rows import RESTORE, RowReader
from bide.store.workers import LONGEST_LEASE

LIVE = ("ready", "running", "waiting", "blocked", "dead")
SLACK = 3_600_000
"""Milliseconds by which the clocks of two machines may differ, at the very most."""
INVOKE = "Look at the thread with get_state(config), and go on with invoke(None, config)."


def read_runs(reader: RowReader, now: Instant, *, deep: bool) -> dict[str, Values]:
    """Look at the runs of a thread; return them by their ids."""
    runs = {row["run_id"]: _opened(reader, row, deep=deep) for row in reader.sound(RUNS)}
    live = [run_id for run_id, row in runs.items() if row["status"] in LIVE]
    if len(live) > 1:
        what = f"The runs {', '.join(live)} are all live."
        reader.tell("I1", what, "Stop the workers, keep the run that wrote the newest checkpoint, and end the others.")
        reader.is_whole = False  # which of them the log and the waits are about cannot be told
    workers = {row[0]: row[4] for row in reader.tx.all("list_workers", {})} if runs else {}
    for row in runs.values():
        _check_lease(reader, row, workers, now)
        if row["status"] == "ready" and row["due_at"] is None:
            what = f"Run {row['run_id']} is ready, and not from any moment on: no worker finds it."
            reader.tell("I3", what, INVOKE)
    return runs


def _opened(reader: RowReader, row: Values, *, deep: bool) -> Values:
    """Open what a run was started with, and keep no more of it than that it is there."""
    for column in RUNS.places:
        if row[column] is not None:
            if deep:
                reader.opened(RUNS, row, column)
            row[column] = b""
    return row


def _check_lease(reader: RowReader, run: Values, workers: Mapping[str, object], now: Instant) -> None:
    run_id, worker_id = run["run_id"], run["worker_id"]
    is_running = run["status"] == "running"
    if is_running != (worker_id is not None):
        whose = "nobody" if worker_id is None else f"worker {worker_id}"
        what = f"Run {run_id} is {run['status']}, and leased to {whose}."
        reader.tell("I3", what, INVOKE)
    elif is_running and worker_id in workers:
        # A worker that is not there any more has left its runs to others; one that is there must run out some day.
        until = workers[worker_id]
        if not isinstance(until, int) or until > now + LONGEST_LEASE * 1000 + SLACK:
            what = f"Run {run_id} is leased to worker {worker_id} until {until!r:.40}, longer than any lease is."
            reader.tell("I3", what, "A clock was wrong: stop that worker, and delete its row from the table workers.")


def check_started(reader: RowReader, runs: Mapping[str, Values], history: Told) -> None:
    """Look whether what was started begins, and does not begin twice."""
    is_live = any(run["status"] in LIVE for run in runs.values())
    for run_id, run in runs.items():
        if run["input"] is not None and run_id in history.writers:
            what = f"Run {run_id} has written checkpoints, and still has its input, which would be applied again."
            reader.tell("I14", what, RESTORE)
        # One that is due by the clock is made ready by whoever looks at the clock next.
        if run["status"] == "queued" and run["due_at"] is None and not is_live and reader.is_whole:
            what = f"Run {run_id} is queued, no other run of its thread is live, and it is due at no moment."
            reader.tell("I14", what, "Cancel it and start it again, or start another run: when that ends, it is next.")
