"""What `store.verify(thread_id)` looks at in a thread of LangGraph's: that each of its rows is what was written."""

from __future__ import annotations

from collections.abc import Iterator

from bide.store.stored_rows import BEFORE_ALL, OF_SAVERS, Table, Values, page_after
from bide.store.verify_rows import RESTORE, RowReader


def check_saver_thread(reader: RowReader, thread_id: str, *, deep: bool) -> bool:
    """Look at the rows of a `BideSaver` under this id; return whether there are any.

    How its runs and checkpoints follow each other is LangGraph's own business, so none of that is judged.
    """
    is_there = False
    for table in OF_SAVERS:
        for row in _rows_of(reader, table, thread_id):
            is_there = True
            reader.found.checked[table.name] += 1
            damage = table.damage(row)
            if damage is not None:
                reader.tell("I12", f"The row {table.shown(row)} is damaged: {damage}.", RESTORE)
            elif deep:
                for column in table.places:
                    reader.opened(table, row, column)
    return is_there


def _rows_of(reader: RowReader, table: Table, thread_id: str) -> Iterator[Values]:
    """Read the rows of one thread: they lie together, since its id comes first in every key."""
    after: Values = {name: BEFORE_ALL if table.columns[name] == "int" else "" for name in table.key}
    after["thread_id"] = thread_id
    while True:
        page = page_after(reader.tx, table, after)
        own = [row for row in page if row["thread_id"] == thread_id]
        yield from own
        if len(own) < table.page:
            return
        after = own[-1]
