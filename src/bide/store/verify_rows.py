"""Rows as `store.verify()` reads them: what is damaged is told and left out, so that the checks can trust the rest."""

from __future__ import annotations

from collections.abc import Iterator

from bide.errors import CodecError, CorruptDataError
from bide.store.bodies import Bodies
from bide.store.database import Transaction
from bide.store.findings import Findings
from bide.store.seal import is_reference, open_reference
from bide.store.stored_rows import Table, Values, rows

RESTORE = "Restore it from a backup, or from an export of the thread."

Reference = tuple[str, bytes]
"""The owner and the hash of a blob."""


class RowReader:
    """Reads rows in one snapshot, opens their bodies, and tells what cannot be read."""

    def __init__(self, tx: Transaction, bodies: Bodies, found: Findings, thread_id: str | None = None) -> None:
        self.tx = tx
        self.bodies = bodies
        self.found = found
        self.thread_id = thread_id
        self.references: set[Reference] = set()
        """The blobs that the bodies speak of."""
        self.is_whole = True
        """Whether everything could be read so far: what follows from a row that cannot is no second problem."""
        self.has_all_rows = True
        """Whether every row was one, whatever its bodies are."""

    def tell(self, invariant: str, what: str, advice: str) -> None:
        """Note a problem of this thread."""
        self.found.tell(invariant, self.thread_id, what, advice)

    def sound(self, table: Table) -> Iterator[Values]:
        """Read the rows of a table that are what their columns say."""
        for row in rows(self.tx, table, self.thread_id):
            self.found.checked[table.name] += 1
            damage = table.damage(row)
            if damage is None:
                yield row
            else:
                self.is_whole = self.has_all_rows = False
                self.tell("I12", f"The row {table.shown(row)} is damaged: {damage}.", RESTORE)

    def opened(self, table: Table, row: Values, column: str = "body") -> bytes | None:
        """Return a body, or None if it cannot be read, which is told."""
        place = table.places[column](row)
        try:
            if is_reference(row[column]):
                self._note(place, row[column])
            return self.bodies.open(self.tx, place, row[column])
        except CodecError as problem:
            self.is_whole = False
            is_missing = isinstance(problem, CorruptDataError) and "which is gone" in str(problem)
            self.tell("I9" if is_missing else "I12", str(problem), RESTORE)
            return None

    def _note(self, place: str, stored: bytes) -> None:
        reference = open_reference(self.bodies.seal, place, stored)
        self.references.add((reference[32:].decode("utf-8", "replace"), reference[:32]))
