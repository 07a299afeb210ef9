"""Whether the course of a thread makes sense: its runs (I1, I3), its waits (I4, I5), its journal (I7), its log (I8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bide.clock import Instant
from bide.store.stored_rows import EVENTS, JOURNAL, RUNS, WAITS, Values
from bide.store.verify_history import Told
from bide.store.verify_rows import RESTORE, RowReader
from bide.store.workers import LONGEST_LEASE

LIVE = ("ready", "running", "waiting", "blocked")
SLACK = 3_600_000
"""Milliseconds by which the clocks of two machines may differ, at the very most."""

_BEGUN = ("run.started", "run.resumed", "run.taken_over")
_AT_THE_HEAD = (*_BEGUN, "run.done")
"""Events that tell the newest checkpoint of the thread's own graph; others may tell that of a graph inside it."""
LAST_EVENT: Mapping[str, tuple[str, ...]] = {
    "ready": ("run.ready",),
    "running": _BEGUN,
    "waiting": ("run.waiting",),
    "blocked": ("run.blocked",),
    "done": ("run.done",),
    "failed": ("run.failed",),
}
"""What the log says last of a run in each status. One that is cancelled may have been replaced at any point."""

_LINES_LOST = "Lines of the log are lost; the thread itself is not touched by that. " + RESTORE
_INVOKE = "Look at the thread with get_state(config), and go on with invoke(None, config)."


def read_runs(reader: RowReader, now: Instant) -> dict[str, Values]:
    """Look at the runs of a thread; return them by their ids."""
    runs = {row["run_id"]: row for row in reader.sound(RUNS)}
    live = [run_id for run_id, row in runs.items() if row["status"] in LIVE]
    if len(live) > 1:
        what = f"The runs {', '.join(live)} are all live."
        reader.tell("I1", what, "Stop the workers, keep the run that wrote the newest checkpoint, and end the others.")
        reader.is_whole = False  # which of them the log and the waits are about cannot be told
    workers = {row[0]: row[4] for row in reader.tx.all("list_workers", {})} if runs else {}
    for row in runs.values():
        _check_lease(reader, row, workers, now)
    return runs


def _check_lease(reader: RowReader, run: Values, workers: Mapping[str, object], now: Instant) -> None:
    run_id, worker_id = run["run_id"], run["worker_id"]
    is_running = run["status"] == "running"
    if is_running != (worker_id is not None):
        whose = "nobody" if worker_id is None else f"worker {worker_id}"
        what = f"Run {run_id} is {run['status']}, and leased to {whose}."
        reader.tell("I3", what, _INVOKE)
    elif is_running and worker_id in workers:
        # A worker that is not there any more has left its runs to others; one that is there must run out some day.
        until = workers[worker_id]
        if not isinstance(until, int) or until > now + LONGEST_LEASE * 1000 + SLACK:
            what = f"Run {run_id} is leased to worker {worker_id} until {until!r:.40}, longer than any lease is."
            reader.tell("I3", what, "A clock was wrong: stop that worker, and delete its row from the table workers.")


class Asked(NamedTuple):
    """What the waits tell the look at the log."""

    is_open: bool
    answered: list[Instant]
    """When answers were given that must have taken the thread on."""


def check_waits(reader: RowReader, runs: Mapping[str, Values], history: Told, *, deep: bool) -> Asked:
    """Look at the waits."""
    is_open = False
    answered: list[Instant] = []
    for row in reader.sound(WAITS):
        if deep:
            reader.opened(WAITS, row, "question")
        _check_answer(reader, row, deep=deep)
        if not history.was_pruned:
            _check_run_of(reader, row, runs)
        is_open = is_open or row["status"] == "open"
        if row["status"] == "answered" and row["answered_via"] == "invoke":
            answered.append(row["answered_at"])
    waiting = [run_id for run_id, run in runs.items() if run["status"] == "waiting"]
    if waiting and not is_open and reader.is_whole:
        reader.tell("I4", f"Run {waiting[0]} waits, and no wait of its thread is open.", _INVOKE)
    return Asked(is_open, answered)


def _check_answer(reader: RowReader, row: Values, *, deep: bool) -> None:
    parts = (row["answer"], row["answered_at"], row["answered_via"])
    is_answered = row["status"] == "answered"
    if (is_answered and None in parts) or (not is_answered and parts != (None, None, None)):
        what = f"Wait {row['wait_id']} is {row['status']}, and of answer, time and way some are missing or too many."
        reader.tell("I5", what, RESTORE)
    elif is_answered and deep:
        reader.opened(WAITS, row, "answer")
    if row["status"] == "open" and row["consumed"]:
        reader.tell("I4", f"Wait {row['wait_id']} is open, though the step that asked is over.", RESTORE)


def _check_run_of(reader: RowReader, row: Values, runs: Mapping[str, Values]) -> None:
    if row["run_id"] and row["run_id"] not in runs:
        what = f"Wait {row['wait_id']} was asked by run {row['run_id']}, which is not there."
        reader.tell("I13", what, RESTORE)


def check_journal(reader: RowReader, runs: Mapping[str, Values], history: Told, *, deep: bool) -> None:
    """Look at what was recorded of the step under way."""
    for row in reader.sound(JOURNAL):
        shown = JOURNAL.shown(row)
        if deep:
            reader.opened(JOURNAL, row)
        if row["kind"] != "step" and (row["phase"] != "done" or row["key"]):
            reader.tell("I7", f"{shown} is a {row['kind']} that is not done, or has a key.", RESTORE)
        run = runs.get(row["run_id"])
        is_lost = run is None and not history.was_pruned
        if is_lost or (run is not None and row["epoch"] > run["epoch"]):
            which = "which is not there" if run is None else f"which is in epoch {run['epoch']}"
            what = f"{shown} was written in epoch {row['epoch']} of run {row['run_id']}, {which}."
            reader.tell("I7", what, RESTORE)
        if history.tasks is not None and _root_task(row["task_id"]) not in history.tasks:
            what = f"{shown} is of no task of the step that the thread stands in."
            reader.tell("I7", what, "A step that is over must leave nothing behind. " + RESTORE)


def _root_task(task_id: str) -> str:
    """Return the task of the thread's own graph in which a task runs."""
    for index, letter in enumerate(task_id):
        if letter in "|:":
            return task_id[:index]
    return task_id


def check_events(
    reader: RowReader, runs: Mapping[str, Values], history: Told, asked: Asked, *, count: int, deep: bool
) -> None:
    """Look at the log: numbered up to the thread's count, and with a line for each transition."""
    log = _read_log(reader, deep=deep)
    if log.number != count and log.is_whole:
        reader.tell("I8", f"The thread counts {count} events, and the last one is number {log.number}.", RESTORE)
    elif log.is_whole and reader.is_whole:
        _check_told(reader, runs, log)
        # Where retention has let the beginning go, answers may be older than what is left.
        if log.first == 1:
            _check_moved(reader, asked.answered, log.resumed)
        if asked.is_open and log.ended == "run.done":
            reader.tell("I4", "A wait is open, though the thread's latest run is done.", RESTORE)
        if log.newest > history.heads.get("", 0):
            what = f"The log speaks of checkpoint {log.newest}, and the newest one is {history.heads.get('', 0)}."
            reader.tell("I2", what, "The end of the history is lost. " + RESTORE)


class _Log:
    """What is remembered of a thread's log."""

    def __init__(self) -> None:
        self.first = self.number = 0
        self.newest = 0
        """The newest checkpoint that it speaks of."""
        self.last: dict[str, str] = {}
        """What it says last of each run."""
        self.ended = ""
        """What it says last of all runs."""
        self.resumed: set[Instant] = set()
        self.is_whole = True


def _read_log(reader: RowReader, *, deep: bool) -> _Log:
    log = _Log()
    for row in reader.sound(EVENTS):
        if deep:
            reader.opened(EVENTS, row)
        if not log.first:
            log.first = row["number"]
        elif row["number"] != log.number + 1 and log.is_whole:
            log.is_whole = False
            reader.tell("I8", f"After event {log.number} comes event {row['number']}.", _LINES_LOST)
        log.number = row["number"]
        if row["run_id"] is not None:
            log.last[row["run_id"]] = log.ended = row["kind"]
        if row["kind"] in _AT_THE_HEAD:
            log.newest = max(log.newest, row["seq"])
        if row["kind"] == "run.resumed":
            log.resumed.add(row["at"])
    return log


def _check_told(reader: RowReader, runs: Mapping[str, Values], log: _Log) -> None:
    if runs and not log.last:
        reader.tell("I8", "There are runs, and the log says nothing of any.", _LINES_LOST)
        return
    for run_id, run in runs.items():
        expected = LAST_EVENT.get(run["status"])
        told = log.last.get(run_id)
        is_missing = told is None and log.first <= 1  # else retention has let older ones go
        if is_missing or (told is not None and expected is not None and told not in expected):
            says = "says nothing of it" if told is None else f"says last: {told}"
            reader.tell("I8", f"Run {run_id} is {run['status']}, and the log {says}.", _LINES_LOST)


def _check_moved(reader: RowReader, answered: list[Instant], resumed: set[Instant]) -> None:
    for at in answered:
        if at not in resumed:
            reader.tell("I5", f"An answer was given at {at}, and no run went on with it then.", _INVOKE)
