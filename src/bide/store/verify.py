"""`store.verify()`: looks whether what is stored is whole and makes sense, thread by thread, each in one snapshot.

It reads and tells; it changes nothing, and what it finds never makes it fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bide.clock import Instant
from bide.errors import StoreFormatError, UnknownThreadError
from bide.store.bodies import Bodies
from bide.store.database import Row, Transaction
from bide.store.findings import Findings, Verification
from bide.store.stored_rows import BLOB_USES, NOTES, PAGE, Values
from bide.store.verify_beside import check_beside, check_lost
from bide.store.verify_course import check_events, check_journal
from bide.store.verify_history import check_history
from bide.store.verify_rows import RESTORE, Reference, RowReader
from bide.store.verify_runs import check_started, read_runs
from bide.store.verify_saver import check_saver_thread
from bide.store.verify_waits import check_waits

if TYPE_CHECKING:
    from bide.store.store import Store

Progress = Callable[[int, str], None]
"""Called after each thread: how many were looked at so far, and which was the last."""


def verify(
    store: Store, thread_id: str | None = None, *, deep: bool = True, most: int = 1000, progress: Progress | None = None
) -> Verification:
    """Look at one thread, or at everything."""
    found = Findings(most)
    check = _check_thread if thread_id is None else _check_named
    names = _thread_ids(store, found) if thread_id is None else [str(thread_id)]
    for number, name in enumerate(names, 1):
        _look(store, found, name, lambda tx, part, name=name: check(tx, store, part, name, deep=deep))  # type: ignore[misc]
        if progress is not None:
            progress(number, name)
    if thread_id is None:
        check_beside(store, lambda work: _look(store, found, None, work), deep=deep)
    return found.result()


def check_one(tx: Transaction, bodies: Bodies, now: Instant, thread_id: str, *, most: int = 20) -> Verification:
    """Look at one thread, with what a transaction that is under way has written of it."""
    found = Findings(most)
    row = tx.one("inspect_thread", {"thread_id": thread_id})
    if row is not None:
        _check_living(RowReader(tx, bodies, found, thread_id), row, now, deep=True)
    return found.result()


def _thread_ids(store: Store, found: Findings) -> Iterator[str]:
    """Name every thread, a page at a time: no snapshot is held while they are looked at."""
    after = ""
    while True:
        page: list[str] = []

        def read(tx: Transaction, _: Findings, after: str = after, page: list[str] = page) -> None:
            page[:] = [row[0] for row in tx.all("page_threads", {"thread_id": after, "most": PAGE})]

        _look(store, found, None, read)
        yield from (name for name in page if isinstance(name, str))
        if len(page) < PAGE:
            return
        after = page[-1]


def _look(store: Store, found: Findings, thread_id: str | None, work: Callable[[Transaction, Findings], None]) -> None:
    """Read one snapshot. It may be read again when a connection breaks, so each time has findings of its own."""

    def once(tx: Transaction) -> Findings:
        part = Findings(found.most)
        work(tx, part)
        return part

    try:
        found.add(store.database.read(once))
    except StoreFormatError as problem:
        found.tell("I12", thread_id, str(problem), "")


def _check_named(tx: Transaction, store: Store, found: Findings, thread_id: str, *, deep: bool) -> None:
    """Look at what was asked for: a thread of ours, what is left of one, or one of LangGraph's with the same id."""
    _check_thread(tx, store, found, thread_id, deep=deep)
    is_ours = found.checked["threads"] > 0 or bool(found.problems)
    is_theirs = check_saver_thread(RowReader(tx, store.bodies, found, thread_id), thread_id, deep=deep)
    if not is_ours and not is_theirs:
        raise UnknownThreadError(
            f"There is no thread {thread_id!r} to look at, neither of Bide's own nor of a BideSaver. Check the "
            f"thread_id, and which database is open; verify() without one looks at everything."
        )


def _check_thread(tx: Transaction, store: Store, found: Findings, thread_id: str, *, deep: bool) -> None:
    row = tx.one("inspect_thread", {"thread_id": thread_id})
    if row is None:
        check_lost(tx, found, thread_id)
        return
    found.checked["threads"] += 1
    reader = RowReader(tx, store.bodies, found, thread_id)
    if not _is_thread(row):
        reader.tell("I12", f"The thread's own row is damaged: {row!r:.200}.", RESTORE)
        return
    _check_living(reader, row, store.clock.now(), deep=deep)


def _is_thread(row: Row) -> bool:
    """Whether the types of a thread's own row are what they should be; what it says of its parent may be empty."""
    types = [type(value) for value in row[:7]]
    return types == [str, str, str, str, int, int, int] and all(isinstance(value, str | None) for value in row[7:])


def _check_living(reader: RowReader, thread: Row, now: Instant, *, deep: bool) -> None:
    _, _, owner, _, events, _, pruned, *_ = thread
    runs: dict[str, Values] = read_runs(reader, now, deep=deep)
    history = check_history(reader, runs, was_pruned=bool(pruned), deep=deep)
    check_started(reader, runs, history)
    check_journal(reader, runs, history, deep=deep)
    asked = check_waits(reader, runs, history, owner=owner, deep=deep)
    check_events(reader, runs, history, asked, count=events, deep=deep)
    _check_notes(reader, deep=deep)
    if deep and reader.is_whole:
        _check_uses(reader)


def _check_notes(reader: RowReader, *, deep: bool) -> None:
    """Look whether what clients have said about the thread can be read."""
    for table in NOTES:
        for row in reader.sound(table):
            if deep:
                reader.opened(table, row)


def _check_uses(reader: RowReader) -> None:
    """Look whether every blob that the bodies speak of is noted as used by the thread.

    One that is noted, and that nothing speaks of any more, is no fault: such notes go when the thread is pruned.
    """
    known: set[Reference] = {(row["owner"], row["hash"]) for row in reader.sound(BLOB_USES)}
    for _, hash_ in sorted(reader.references - known):
        what = f"Blob {hash_.hex()[:12]}… is used, and nobody has noted that: it may be collected."
        reader.tell("I9", what, "Export the thread and import it again; that notes it.")
