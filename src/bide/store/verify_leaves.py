"""Whether an open wait can be settled: its conditions are what it needs, and nothing that it needs was passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bide.clock import Instant
from bide.errors import CorruptDataError
from bide.store.correlating import known_keys
from bide.store.database import Row
from bide.store.facts import fact_of, read_delivery_row
from bide.store.queue_rows import DeliveryRow
from bide.store.stored_rows import Values
from bide.store.verify_rows import RESTORE, RowReader
from bide.waits.leaves import Leaf, leaves
from bide.waits.matching import match
from bide.waits.needs import Needs
from bide.waits.tree import open_leaves, verdict
from bide.waits.wake import Wake

SLACK = 5_000
"""Milliseconds by which clocks may differ: what came so soon behind a wait may have come before it."""
MOST_FACTS = 20
"""Of those that came after a leaf and that it did not get, so many are looked at."""
_ANSWER = "Answer it by hand, or cancel it: it can wait for ever."


class OpenWait(NamedTuple):
    """A wait that somebody may settle."""

    wait_id: str
    needs: Needs
    created_at: Instant
    deadline: Instant | None


Keys = tuple[str, ...]
"""What may be written as the key of a condition."""

Leaves = Sequence[tuple[Values, Wake | None]]
"""The rows of a wait's conditions, and what satisfied each."""


def check_open_wait(reader: RowReader, wait: OpenWait, rows: Leaves) -> None:
    """Look at the conditions of an open wait."""
    plain = wait.needs.condition
    try:
        wanted = () if plain is None else leaves(plain, wait.created_at)
        satisfied = {row["number"]: wake for row, wake in rows if wake is not None}
        thread = reader.tx.one("inspect_thread", {"thread_id": reader.thread_id})
        owner = "" if thread is None else thread[2]
        keys = [known_keys(reader.bodies, owner, leaf.correlation) for leaf in wanted]
        fault = next(_faults(wanted, keys, {row["number"]: row for row, _ in rows}), None)
        if fault is not None:
            reader.tell("I4", f"Wait {wait.wait_id} is open, and {fault}.", _ANSWER)
        elif plain is not None:
            _check_tree(reader, wait, plain, satisfied, {row["number"] for row, _ in rows if row["is_open"]})
            _check_passed_over(reader, wait, [*zip(wanted, keys, strict=True)], rows)
    except CorruptDataError as problem:
        reader.is_whole = False
        reader.tell("I12", f"What wait {wait.wait_id} needs cannot be read ({problem}).", RESTORE)


def _faults(wanted: Sequence[Leaf], keys: Sequence[Keys], rows: Mapping[int, Values]) -> Iterator[str]:
    """Say where the rows are not what the condition says."""
    if rows.keys() != {leaf.number for leaf in wanted}:
        yield f"needs the conditions {[leaf.number for leaf in wanted]}, and has {sorted(rows)}"
        return
    for leaf in wanted:
        row = rows[leaf.number]
        if row["kind"] != leaf.kind or (row["due_at"] is None) != (leaf.due_at is None):
            yield f"its condition {leaf.number} is one of {row['kind']}, where it needs {leaf.kind}"
        if row["correlation"] not in keys[leaf.number]:
            yield f"its condition {leaf.number} is found under another key than what it needs comes with"
        if row["is_open"] and bool(row["exclusive"]) != leaf.exclusive:
            yield f"its condition {leaf.number} takes facts for itself alone, or should and does not"


def _check_tree(
    reader: RowReader, wait: OpenWait, plain: Mapping[str, object], satisfied: Mapping[int, Wake], is_open: set[int]
) -> None:
    if verdict(plain, satisfied) is not None:
        reader.tell("I4", f"Wait {wait.wait_id} is open, and has all that it needs.", _ANSWER)
        return
    closed = sorted(open_leaves(plain, satisfied) - is_open)
    if closed:
        what = (
            f"Wait {wait.wait_id} is open, and its conditions {closed} are closed: nothing can satisfy them any more."
        )
        reader.tell("I4", what, _ANSWER)


def _check_passed_over(reader: RowReader, wait: OpenWait, wanted: Sequence[tuple[Leaf, Keys]], rows: Leaves) -> None:
    """Look for facts that came while a leaf was open, fit it, and were not given to it."""
    for row, _ in rows:
        if not row["is_open"] or not row["correlation"]:
            continue
        leaf, keys = wanted[row["number"]]
        for found in _facts_since(reader, wait, row, keys):
            if match(leaf.plain, fact_of(reader.bodies, reader.tx, found)).fits:
                what = f"Delivery {found.external_id!r} from {found.source!r} fits wait {wait.wait_id}, which is open."
                reader.tell("I6", what, "It was passed over: deliver it again under another id, or answer by hand.")
                return


def _facts_since(reader: RowReader, wait: OpenWait, leaf: Values, keys: Keys) -> Iterator[DeliveryRow]:
    """Give the facts that nobody is looking at any more, and that this wait should have been shown."""
    until = 2**62 if wait.deadline is None else wait.deadline
    params = {"since": leaf["created_at"] + SLACK, "until": until, "wait_id": wait.wait_id}
    for key in keys:
        rows: Sequence[Row] = reader.tx.all(
            "passed_over", {**params, "correlation": key, "exclusive": leaf["exclusive"], "most": MOST_FACTS}
        )
        yield from map(read_delivery_row, rows)
