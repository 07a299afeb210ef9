"""Whether the waits of a thread make sense: those that are open can be settled (I4), the others were (I5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple, cast

from bide.clock import Instant
from bide.errors import CodecError
from bide.store.needed import PLAIN
from bide.store.stored_rows import CONDITIONS, WAITS, Values
from bide.store.verify_history import Told
from bide.store.verify_leaves import OpenWait, check_open_wait
from bide.store.verify_rows import RESTORE, RowReader
from bide.store.verify_runs import INVOKE
from bide.waits.needs import Needs, read_needs
from bide.waits.wake import Wake

INSIDE = ("invoke", "fork")
"""How answers come that take the thread on themselves; all others leave a line in its log, and make its run ready."""
_TO_ITS_OWNER = "Export the thread, and import it in its own place for whom it belongs to: all of it is theirs then."
_BY_PRODUCTS = ("answer", "answered_at", "answered_via", "answered_by", "answer_key", "settled_in")


class Asked(NamedTuple):
    """What the waits tell the look at the log."""

    is_open: bool
    answered: list[Instant]
    """When answers were given that must have taken the thread on."""
    settled: Counter[str]
    """How many were settled from outside, by their status."""


class _Checking:
    """The waits of one thread."""

    def __init__(self, reader: RowReader, runs: Mapping[str, Values], *, owner: str, deep: bool) -> None:
        self.reader = reader
        self.runs = runs
        self.owner = owner
        self.deep = deep
        self.asked = Asked(False, [], Counter())
        self.open: dict[str, OpenWait] = {}

    def look_at(self, row: Values, *, was_pruned: bool) -> None:
        """Look at one wait."""
        reader, is_open = self.reader, row["status"] == "open"
        if self.deep:
            reader.opened(WAITS, row, "question")
        _check_answer(reader, row, deep=self.deep)
        if row["run_id"] and row["run_id"] not in self.runs and not was_pruned:
            what = f"Wait {row['wait_id']} was asked by run {row['run_id']}, which is not there."
            reader.tell("I13", what, RESTORE)
        if row["owner"] != self.owner:
            what = f"Wait {row['wait_id']} is shown to {row['owner']!r:.60}, and its thread is of {self.owner!r:.60}."
            reader.tell("I13", what, _TO_ITS_OWNER)
        needs = self._needs(row)
        if is_open and not row["consumed"] and needs is not None:
            self.open[row["wait_id"]] = OpenWait(row["wait_id"], needs, row["created_at"], row["deadline"])
        if is_open:
            self.asked = self.asked._replace(is_open=True)
        elif row["answered_via"] == "invoke" and row["status"] == "answered":
            self.asked.answered.append(row["answered_at"])
        elif row["answered_at"] is not None and row["answered_via"] not in (None, *INSIDE):
            self.asked.settled[row["status"]] += 1
        self._check_heard(row)

    def _needs(self, row: Values) -> Needs | None:
        if row["needs"] is None or not self.deep:
            return Needs() if row["needs"] is None else None
        body = self.reader.opened(WAITS, row, "needs")
        try:
            return None if body is None else read_needs(cast("dict[str, Any]", PLAIN.decode(body, "needs")))
        except (CodecError, TypeError, AttributeError) as problem:
            self.reader.is_whole = False
            self.reader.tell("I12", f"What wait {row['wait_id']} needs cannot be read ({problem}).", RESTORE)
            return None

    def _check_heard(self, row: Values) -> None:
        """A wait that was settled while its run was running is what that run goes on with when it pauses."""
        run = self.runs.get(row["run_id"])
        if run is None or run["status"] != "waiting" or row["consumed"] or row["status"] == "open":
            return
        if row["settled_in"] == run["epoch"]:
            what = f"Wait {row['wait_id']} was {row['status']} while run {row['run_id']} was running, and it waits on."
            self.reader.tell("I5", what, INVOKE)

    def look_at_leaves(self) -> None:
        """Look at all conditions, those of each wait together."""
        left = dict(self.open)
        for wait_id, group in groupby(self.reader.sound(CONDITIONS), lambda row: row["wait_id"]):
            rows = [(row, _check_leaf(self.reader, row, deep=self.deep)) for row in group]
            wait = left.pop(wait_id, None)
            if wait is not None and self.deep and self.reader.is_whole:
                check_open_wait(self.reader, wait, rows)
        for wait in left.values() if self.deep and self.reader.is_whole else ():
            check_open_wait(self.reader, wait, [])


def check_waits(reader: RowReader, runs: Mapping[str, Values], history: Told, *, owner: str, deep: bool) -> Asked:
    """Look at the waits and their conditions."""
    checking = _Checking(reader, runs, owner=owner, deep=deep)
    for row in reader.sound(WAITS):
        checking.look_at(row, was_pruned=history.was_pruned)
    checking.look_at_leaves()
    waiting = [run_id for run_id, run in runs.items() if run["status"] == "waiting"]
    if waiting and not checking.asked.is_open and reader.is_whole:
        reader.tell("I4", f"Run {waiting[0]} waits, and no wait of its thread is open.", INVOKE)
    return checking.asked


def _check_answer(reader: RowReader, row: Values, *, deep: bool) -> None:
    faults = [*_faults(row)]
    if faults:
        what = f"Wait {row['wait_id']} is {row['status']}, and {' and '.join(faults)}."
        reader.tell("I5", what, RESTORE)
    elif row["answer"] is not None and deep:
        reader.opened(WAITS, row, "answer")
    if row["status"] == "open" and row["consumed"]:
        reader.tell("I4", f"Wait {row['wait_id']} is open, though the step that asked is over.", RESTORE)


def _faults(row: Values) -> Iterator[str]:
    """Say what of an answer is missing, or too much."""
    status = row["status"]
    if status == "open":
        there = [name for name in _BY_PRODUCTS if row[name] is not None]
        if there:
            yield f"has {', '.join(there)}"
        return
    # A step that is given up cancels its questions: then nobody has settled them, at no time. Whoever withdraws one
    # says why, in the place of an answer.
    is_given_up = status == "cancelled" and row["answered_at"] is None
    if (row["answer"] is not None) != (status != "expired" and not is_given_up):
        yield "has an answer" if row["answer"] is not None else "has no answer"
    if (row["answered_at"] is None or row["answered_via"] is None) and not is_given_up:
        yield "nobody knows when, or by what way"


def _check_leaf(reader: RowReader, row: Values, *, deep: bool) -> Wake | None:
    """Look at one leaf by itself; return what satisfied it."""
    shown = CONDITIONS.shown(row)
    if row["is_open"] and (row["wake"] is not None or row["delivery_id"] is not None):
        reader.tell("I5", f"{shown} is open, though something has satisfied it.", RESTORE)
    if row["delivery_id"] is not None and row["wake"] is None:
        reader.tell("I6", f"{shown} has delivery {row['delivery_id']}, and nothing of what it brought.", RESTORE)
    body = reader.opened(CONDITIONS, row, "wake") if deep and row["wake"] is not None else None
    if body is None:
        return None
    try:
        wake = PLAIN.decode(body, "wake")
    except CodecError as problem:
        reader.is_whole = False
        reader.tell("I12", f"What satisfied {shown} cannot be read ({problem}).", RESTORE)
        return None
    if not isinstance(wake, Wake) or wake.delivery != row["delivery_id"]:
        reader.tell("I6", f"What satisfied {shown} is not what delivery {row['delivery_id']} has brought.", RESTORE)
        return None
    return wake
