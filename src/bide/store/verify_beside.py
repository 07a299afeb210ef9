"""What `store.verify()` looks at beside threads: lost rows, deliveries, blobs, items, caches, and the file itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bide.store.database import Transaction, queries
from bide.store.findings import Findings
from bide.store.sqlite import SqliteDatabase
from bide.store.stored_rows import BESIDE_THREADS, BLOBS, LANGGRAPH, NOTES, OF_A_THREAD, PAGE, Table, Values
from bide.store.verify_rows import RESTORE, RowReader

if TYPE_CHECKING:
    from bide.store.store import Store

Look = Callable[[Callable[[Transaction, Findings], None]], None]

_HARMLESS = "They take room, and do no harm: nobody finds them. " + RESTORE
LOST = ("runs", "checkpoints", "channel_log", "journal", "waits", "events", "blob_uses", "thread_notes", "run_notes")


def check_beside(store: Store, look: Look, *, deep: bool) -> None:
    """Look at all that is no thread's own."""
    look(_check_lost_rows)
    look(_check_deliveries)
    look(_check_unused)
    if not deep:
        return
    for table in (*BESIDE_THREADS, BLOBS):
        look(lambda tx, found, table=table: _check_bodies(RowReader(tx, store.bodies, found), table))  # type: ignore[misc]
    database = store.database
    if isinstance(database, SqliteDatabase):
        look(_check_file)


def check_lost(tx: Transaction, found: Findings, thread_id: str) -> None:
    """Tell what is left of one thread that is not there."""
    for table in (*OF_A_THREAD, *NOTES):
        params = {**dict.fromkeys(table.key, ""), "thread_id": thread_id, "most": 1}
        params |= {name: -(2**62) for name in table.key if table.columns[name] == "int"}
        if tx.all(f"page_{table.name}", params):
            _tell_lost(found, table.name, thread_id)


def _tell_lost(found: Findings, table: str, thread_id: object) -> None:
    what = f"There are rows in {table} for a thread that is not there."
    found.tell("I13", str(thread_id), what, "delete_thread() with its id takes them away.")


def _check_lost_rows(tx: Transaction, found: Findings) -> None:
    for table in LOST:
        for thread_id in lost_threads(tx, table, found.most):
            _tell_lost(found, table, thread_id)
    for (thread_id,) in tx.all("lost_saver_rows", {"most": found.most}):
        _tell_lost(found, "saver_checkpoints", thread_id)
    for (thread_id,) in tx.all("risen_threads", {"most": found.most}):
        what = "This life of the thread was deleted, and goes on."
        found.tell("I13", str(thread_id), what, "Delete it again, or export it and import it under a new life.")


def lost_threads(tx: Transaction, table: str, most: int) -> list[str]:
    """Name the threads that have rows in a table, and are not there."""
    params = {"most": most, **({"langgraph": LANGGRAPH} if table == "blob_uses" else {})}
    return [str(row[0]) for row in tx.all(f"lost_{table}", params)]


def _check_deliveries(tx: Transaction, found: Findings) -> None:
    most = {"most": found.most}
    for source, external_id, wait_id, taken_by, thread_id in tx.all("unkept_deliveries", most):
        whose = "nobody" if taken_by is None else f"wait {taken_by}"
        what = f"Wait {wait_id} has delivery {external_id!r} from {source!r} for itself alone, and it is {whose}'s."
        found.tell("I6", str(thread_id), what, "Two may have gone on with it: look at both threads.")
    for source, external_id, wakes, leaves in tx.all("uncounted_deliveries", most):
        what = f"Delivery {external_id!r} from {source!r} has woken {leaves}, and is said to have woken {wakes}."
        found.tell("I6", None, what, RESTORE)
    for (delivery_id,) in tx.all("lost_delivery_keys", most):
        found.tell("I13", None, f"There are keys of delivery {delivery_id}, which is not there.", _HARMLESS)
    for (wait_id,) in tx.all("lost_conditions", most):
        found.tell("I13", None, f"There are conditions of wait {wait_id}, which is not there.", _HARMLESS)


def _check_unused(tx: Transaction, found: Findings) -> None:
    for _, hash_ in tx.all("unused_blobs", {"most": found.most}):
        what = f"Blob {bytes(hash_).hex()[:12]}… is used by nobody."
        found.tell("I9", None, what, "It takes room, and does no harm; reseal() takes it away.")


def _check_bodies(reader: RowReader, table: Table) -> None:
    for row in reader.sound(table):
        for column in table.places:
            body = reader.opened(table, row, column)
            if table is BLOBS and body is not None:
                _check_blob(reader, row, body)


def _check_blob(reader: RowReader, row: Values, body: bytes) -> None:
    if len(body) != row["size"]:
        what = f"Blob {row['hash'].hex()[:12]}… has {len(body)} bytes, and is said to have {row['size']}."
        reader.tell("I12", what, RESTORE)


def _check_file(tx: Transaction, found: Findings) -> None:
    for (text,) in tx.connection.execute(queries("sqlite")["check_file"], {"most": PAGE}):
        if text != "ok":
            found.tell("I12", None, f"SQLite says: {text}.", "Restore the file from a backup.")
