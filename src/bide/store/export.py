"""`store.export_thread()`: a thread as one file, which any Bide store can import, whatever database it is in."""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bide.errors import StoreUnavailableError, UnknownThreadError
from bide.store.bodies import Bodies
from bide.store.database import Transaction
from bide.store.portable import PortableWriter
from bide.store.seal import Checksums, Seal
from bide.store.stored_rows import OF_A_THREAD, Table, Values, rows

if TYPE_CHECKING:
    from bide.clock import Instant
    from bide.store.store import Store

THREAD = "thread"
"""The first record: thread_id, uid, graph, events, created_at, when it was exported, by which Bide, whether pruned, its
parent, and what becomes of it when that is closed."""


def export_thread(
    store: Store,
    thread_id: str,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    encrypt: bool | None = None,
) -> None:
    """Write a thread to a file, from one snapshot. The file is there whole, or not at all."""
    seal = _seal_for(store.bodies.seal, encrypt)
    target = Path(os.path.abspath(path))
    if not overwrite and os.path.lexists(target):
        raise _exists(target)
    now = store.clock.now()
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with open(descriptor, "w+b") as file:
                store.database.read(lambda tx: _write(tx, store.bodies, file, seal, thread_id, now))
                file.flush()
                os.fsync(file.fileno())
            _give_name(name, target, overwrite)
        except BaseException:
            os.unlink(name)
            raise
        _settle(target.parent)
    except OSError as problem:
        raise StoreUnavailableError(
            f"The export could not be written to {str(target)!r} ({problem}). Nothing is there that was not before. "
            f"Its folder must exist, be writable, and have room."
        ) from problem


def _give_name(name: str, target: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(name, target)
        return
    try:
        # Unlike a renaming, a link is refused where somebody else has taken the name meanwhile.
        os.link(name, target)
    except FileExistsError as problem:
        raise _exists(target) from problem
    except OSError:
        if os.path.lexists(target):
            raise
        os.replace(name, target)  # a disk without links
        return
    os.unlink(name)


def _exists(target: Path) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"{str(target)!r} exists already, and was left as it is. Choose another name, or say "
        f"export_thread(…, overwrite=True)."
    )


def _seal_for(seal: Seal, encrypt: bool | None) -> Seal:
    if encrypt is False:
        return Checksums()
    if encrypt and isinstance(seal, Checksums):
        raise StoreUnavailableError(
            "export_thread(encrypt=True) needs keys, and this store was opened without. Open it with "
            "Store.open(…, encryption=Encryption(…)), or export without encryption and keep the file safe."
        )
    return seal


def _write(tx: Transaction, bodies: Bodies, file: BinaryIO, seal: Seal, thread_id: str, now: Instant) -> None:
    file.seek(0)  # a snapshot whose connection broke is read again
    file.truncate()
    thread = tx.one("inspect_thread", {"thread_id": thread_id})
    if thread is None:
        raise UnknownThreadError(
            f"There is no thread {thread_id!r} to export. Check the thread_id, and which database is open."
        )
    _, uid, _, graph, events, created_at, pruned, parent, on_close = thread
    writer = PortableWriter(file, seal)
    writer.add(THREAD, [thread_id, uid, graph, events, created_at, now, version("bide"), pruned, parent, on_close])
    for table in OF_A_THREAD:
        for row in rows(tx, table, thread_id):
            writer.add(table.name, _opened(tx, bodies, table, _unowned(row)))
    writer.finish()


def _unowned(row: Values) -> Values:
    """Leave out whose it is, and the keys that say so: where it is imported, it belongs to whoever imports it."""
    return {**row, **{column: "" for column in ("owner", "correlation") if column in row}}


def _opened(tx: Transaction, bodies: Bodies, table: Table, row: Values) -> list[object]:
    """Return the values of a row without its thread's id, and with its bodies open: they are going to another place."""
    opened = {
        column: bodies.open(tx, place(row), row[column])
        for column, place in table.places.items()
        if row[column] is not None
    }
    # The row itself stays as it is: the page that it came with is in memory for a while.
    return [opened.get(name, value) for name, value in row.items() if name != "thread_id"]


def _settle(folder: Path) -> None:
    """See to it that a new name in a folder outlives a power failure."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
