"""Whether the course of a thread makes sense: its journal (I7), and its log (I8), beside its runs and waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bide.clock import Instant
from bide.store.stored_rows import EVENTS, JOURNAL, Values
from bide.store.verify_history import Told
from bide.store.verify_rows import RESTORE, RowReader
from bide.store.verify_runs import INVOKE
from bide.store.verify_waits import Asked

_BEGUN = ("run.started", "run.resumed", "run.taken_over")
_AT_THE_HEAD = (*_BEGUN, "run.done")
"""Events that tell the newest checkpoint of the thread's own graph; others may tell that of a graph inside it."""
_TO_CLAIM = ("run.ready", "run.queued", "run.waiting", "run.reaped", "run.released")
"""What is told last of a run that may be claimed: a wake tells of its wait, and that its turn has come is not told."""
LAST_EVENT: Mapping[str, tuple[str, ...]] = {
    "queued": ("run.queued",),
    "ready": _TO_CLAIM,
    "running": (*_BEGUN, *_TO_CLAIM),
    "waiting": ("run.waiting",),
    "blocked": ("run.blocked",),
    "dead": ("run.dead",),
    "done": ("run.done", "run.continued"),
    "failed": ("run.failed",),
}
"""What the log says last of a run in each status. One that is cancelled may have been replaced at any point."""

_LINES_LOST = "Lines of the log are lost; the thread itself is not touched by that. " + RESTORE
_SETTLED = ("answered", "expired", "cancelled")


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
        _check_woken(reader, runs, log)
        # Where retention has let the beginning go, answers may be older than what is left.
        if log.first == 1:
            _check_moved(reader, asked.answered, log.resumed)
            _check_settled(reader, asked, log)
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
        self.paused: dict[str, int] = {}
        """With which event each run paused last."""
        self.settled: dict[str, int] = {}
        """With which event a wait of each run was settled last, from outside."""
        self.count: Counter[str] = Counter()
        self.resumed: set[Instant] = set()
        self.is_whole = True

    def note(self, row: Values) -> None:
        """Remember what a line says of a run, or of one of its waits."""
        what, _, kind = row["kind"].partition(".")
        if row["run_id"] is None:
            return
        if what == "run":
            self.last[row["run_id"]] = self.ended = row["kind"]
            if kind == "waiting":
                self.paused[row["run_id"]] = row["number"]
        elif what == "wait" and kind in _SETTLED:
            self.settled[row["run_id"]] = row["number"]
            self.count[kind] += 1


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
        log.note(row)
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
            reader.tell("I5", f"An answer was given at {at}, and no run went on with it then.", INVOKE)


def _check_woken(reader: RowReader, runs: Mapping[str, Values], log: _Log) -> None:
    """Whoever settles a wait from outside makes its run ready, if it waits: so none waits after that."""
    for run_id, run in runs.items():
        if run["status"] == "waiting" and log.settled.get(run_id, 0) > log.paused.get(run_id, 0):
            what = f"Run {run_id} waits, and one of its waits was settled since it does: nobody has woken it."
            reader.tell("I5", what, INVOKE)


def _check_settled(reader: RowReader, asked: Asked, log: _Log) -> None:
    """Each wait that was settled from outside has a line of its own; one that was asked again has had several."""
    for status in _SETTLED:
        if asked.settled[status] > log.count[status]:
            what = (
                f"{asked.settled[status]} waits were {status} from outside, and the log tells of {log.count[status]}."
            )
            reader.tell("I8", what, _LINES_LOST)
