"""`store.import_thread()`: a thread out of a file that `export_thread()` has written, in one transaction.

The file may come from anywhere: it is read through before anything is written, and what was written is looked at as
`verify()` does before it is committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from bide.clock import Instant, uuid7
from bide.codec import Codec
from bide.errors import StoreUnavailableError, ThreadBusyError, ThreadExistsError
from bide.store.bodies import Bodies
from bide.store.database import Row, Transaction
from bide.store.deletion import delete_everything
from bide.store.export import THREAD
from bide.store.places import event_place
from bide.store.portable import PortableReader, Record, refuse
from bide.store.recorrelating import keys_of_wait
from bide.store.renaming import renamed, returned_keys
from bide.store.seal import Seal
from bide.store.stored_rows import OF_A_THREAD, Table, Values
from bide.store.verify import check_one
from bide.store.workers import is_gone

if TYPE_CHECKING:
    from bide.store.store import Store

NOBODY = "imported"
"""Who holds a run that was running when it was exported: no worker of this name lives, so the next call takes it."""
_TABLES: Mapping[str, Table] = {table.name: table for table in OF_A_THREAD}
_THREAD_TYPES: tuple[Any, ...] = (str, str, str, int, int, int, str, int, str | None, str | None)
_ON_CLOSE = (None, "cancel", "end", "abandon", "due")
_FLUSH_EVERY = 64
"""After so many rows the database is waited for: what is on its way to it takes memory, too."""


@dataclass(frozen=True)
class ImportedThread:
    """A thread that has come in."""

    thread_id: str
    is_same_life: bool
    """Whether ids of its checkpoints and questions are what they were. A second copy in one database has its own."""
    renamed_waits: Mapping[str, str]
    """Old ids of questions that are open, and those that they have here; empty if they stayed the same."""


class _Found(NamedTuple):
    """What the first look at a file has told."""

    thread_id: str
    uid: str
    graph: str
    events: int
    created_at: Instant
    pruned: int
    parent: str | None
    on_close: str | None
    waits: tuple[Values, ...]
    runs: tuple[Values, ...]


class _Names(NamedTuple):
    """What ids become on the way in."""

    thread_id: str
    uid: str
    ids: Mapping[str, str]
    """Of questions and runs: the old one and the new one, of the same length."""

    def new(self, id_: str) -> str:
        return self.ids.get(id_, id_)


def import_thread(
    store: Store,
    path: str | os.PathLike[str],
    thread_id: str | None = None,
    *,
    replace: bool = False,
    encryption: Seal | None = None,
    owner: str | None = None,
) -> ImportedThread:
    """Bring a thread in: all of it, or nothing."""
    now = store.clock.now()
    try:
        with open(path, "rb") as file:
            reader = PortableReader(file, encryption or store.bodies.seal, store.bodies.largest)
            found = _read_through(reader)
            name = found.thread_id if thread_id is None else str(thread_id)
            store.database.check_present()
            return store.database.write(
                "import", lambda tx: _Import(tx, store.bodies, found, now, owner).all(reader, name, replace=replace)
            )
    except OSError as problem:
        raise StoreUnavailableError(f"The file {os.fspath(path)!r} cannot be read ({problem}).") from problem


# ── Reading the file ───────────────────────────────────────────────────────────────────────────────────────────────


def _read_through(reader: PortableReader) -> _Found:
    """Read the whole file without keeping it: whatever is wrong with it is found before anything is written."""
    records = reader.records()
    first = next(records, None)
    if first is None or first.what != THREAD or not _is_thread(first.values):
        refuse("it does not begin with a thread")
    _check_values(THREAD, first.values)
    thread_id, uid, graph, events, created_at, _, _, pruned, parent, on_close = first.values
    if pruned not in (0, 1) or on_close not in _ON_CLOSE:
        refuse("it does not say whether its thread was pruned, or what becomes of it when its parent is closed")
    waits: list[Values] = []
    runs: list[Values] = []
    for record in records:
        row = _row(record)
        if record.what == "waits":
            if row["wait_id"] != wait_id_of(uid, row["task_id"], row["key"]):
                refuse("one of its questions has an id that is not its own")
            waits.append({name: row[name] for name in ("wait_id", "task_id", "key", "status")})
        elif record.what == "runs":
            runs.append({name: row[name] for name in ("run_id", "created_at")})
    return _Found(thread_id, uid, graph, events, created_at, pruned, parent, on_close, tuple(waits), tuple(runs))


def _is_thread(values: Sequence[object]) -> bool:
    return len(values) == len(_THREAD_TYPES) and all(
        isinstance(value, kind) and not isinstance(value, bool)
        for value, kind in zip(values, _THREAD_TYPES, strict=True)
    )


def _row(record: Record) -> Values:
    """Return the row that a record holds; whatever does not look like one of its table is refused."""
    table = _TABLES.get(record.what)
    if table is None or len(record.values) != len(table.columns) - 1:
        refuse(f"it holds a record {record.what!r:.40} that is not known")
    names = [name for name in table.columns if name != "thread_id"]
    row: Values = {"thread_id": "", **dict(zip(names, record.values, strict=True))}
    damage = table.damage(row)
    if damage is not None:
        refuse(f"in a row of {table.name}, {damage}")
    _check_values(table.name, record.values)
    return row


def wait_id_of(uid: str, task_id: str, key: str) -> str:
    """Return the id of a question, as the engine makes it: of one life of a thread, a task, and a key in it."""
    return blake2b(f"{uid}|{task_id}|{key}".encode(), digest_size=16).hexdigest()


def _check_values(what: str, values: Sequence[object]) -> None:
    for value in values:
        if isinstance(value, str) and not _is_text(value):
            refuse(f"in a row of {what} there is a text that no database takes")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            refuse(f"in a row of {what} there is a number that no database takes")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


# ── Writing it down ────────────────────────────────────────────────────────────────────────────────────────────────


class _Import:
    """One import, in the transaction that does it."""

    def __init__(self, tx: Transaction, bodies: Bodies, found: _Found, now: Instant, owner: str | None = None) -> None:
        self.tx = tx
        self.bodies = bodies
        self.owner = bodies.owner if owner is None else owner
        self.found = found
        self.now = now
        self.keys: dict[str, Mapping[int, str]] = {}
        """Of each wait, what its conditions are found by here."""

    def all(self, reader: PortableReader, name: str, *, replace: bool) -> ImportedThread:
        """Write everything, and look at it before it is committed."""
        self._make_room(name, replace=replace)
        names = self._names(name)
        self._write_thread(names)
        head = 0
        for number, (table, row) in enumerate(self._rows(reader, names)):
            if table.name == "checkpoints" and not row["ns"]:
                head = max(head, row["seq"])
            write = self.tx.send if number % _FLUSH_EVERY else self.tx.run
            write(f"import_{table.name}", row)
        self._note_event(names, head)
        self._check(name)
        opened = [wait["wait_id"] for wait in self.found.waits if wait["status"] == "open"]
        return ImportedThread(name, not names.ids, {old: names.ids[old] for old in opened if old in names.ids})

    def _make_room(self, name: str, *, replace: bool) -> None:
        if self.tx.one("hold_thread", {"thread_id": name}) is None:
            return
        if not replace:
            raise ThreadExistsError(
                f"There is a thread {name!r} already. Nothing was imported. Import it under another name with "
                f"import_thread(path, thread_id=…), or in its place with import_thread(path, replace=True)."
            )
        run = self.tx.one("read_live_run", {"thread_id": name})
        if run is not None and _is_driven(run, self.now):
            raise ThreadBusyError(
                f"Thread {name!r} has a run under way, so it cannot be replaced now. Nothing was imported. Wait until "
                f"it pauses or ends, and try again."
            )
        delete_everything(self.tx, name, self.now)

    def _names(self, name: str) -> _Names:
        """Let the thread keep its ids, if this database has never seen this life of it; else it begins another one."""
        found, uid = self.found, {"uid": self.found.uid}
        if self.tx.one("find_thread", uid) is None and self.tx.one("read_tombstone", uid) is None:
            return _Names(name, found.uid, {})
        life = uuid7(self.now).replace("-", "")[-20:]
        waits = {wait["wait_id"]: wait_id_of(life, wait["task_id"], wait["key"]) for wait in found.waits}
        # Ids of runs sort by time. A worker that still holds the old life must not find one of its runs in the new one.
        return _Names(name, life, {**waits, **{run["run_id"]: uuid7(run["created_at"]) for run in found.runs}})

    def _write_thread(self, names: _Names) -> None:
        found = self.found
        params: Values = {"thread_id": names.thread_id, "uid": names.uid, "owner": self.owner}
        params |= {
            "graph": found.graph,
            "events": found.events + 1,
            "created_at": found.created_at,
            "pruned": found.pruned,
            "parent": found.parent,
            "on_close": found.on_close,
        }
        if not self.tx.run("import_thread", params):
            raise ThreadExistsError(
                f"Another call made a thread {names.thread_id!r}, or imported this one, at the same moment. Nothing "
                f"was imported. Try again."
            )

    def _rows(self, reader: PortableReader, names: _Names) -> Iterator[tuple[Table, Values]]:
        """Read the file again, and give each row as it is to be stored here."""
        records = reader.records()
        next(records)
        for record in records:
            table, row = _TABLES[record.what], _row(record)
            row["thread_id"] = names.thread_id
            for column in ("run_id", "wait_id"):
                if row.get(column):
                    row[column] = names.new(row[column])
            if "owner" in row:
                row["owner"] = self.owner
            if table.name == "runs":
                row["worker_id"] = NOBODY if row["status"] == "running" else None
            elif table.name == "conditions":
                self._settle_in(row, names)
            closed = self._closed(table, row, names)
            if table.name == "waits":
                wait_id = closed["wait_id"]
                self.keys[wait_id] = keys_of_wait(self.bodies, self.tx, self.owner, wait_id, closed["needs"])
            yield table, closed

    def _closed(self, table: Table, row: Values, names: _Names) -> Values:
        for column, place in table.places.items():
            body = row[column]
            if body is not None:
                body = renamed(table.name, row, body, self._ids_for(table, row, body, names))
                if column in table.in_row:
                    row[column] = self.bodies.close_small(place(row), body)
                else:
                    row[column] = self.bodies.close(self.tx, names.thread_id, place(row), body, self.now)
        return row

    def _settle_in(self, row: Values, names: _Names) -> None:
        """Let a leaf belong to whoever imports it. A fact that the original had is known to the copy, too, so that it
        does not hear it again; but it was taken for the original alone."""
        if row["correlation"]:
            refuse("one of its conditions says by which key it is found; that follows from what it waits for")
        row["correlation"] = self.keys.get(row["wait_id"], {}).get(row["number"], "")
        if row["is_open"]:
            row["created_at"] = self.now  # it stands in line here since now; what came before was not for it
        if row["delivery_id"] is not None:
            self.tx.send("count_wake", {"delivery_id": row["delivery_id"]})
            if names.uid != self.found.uid:
                row["exclusive"] = 0

    def _ids_for(self, table: Table, row: Values, body: bytes, names: _Names) -> Mapping[str, str]:
        """Return the ids that a body may speak of; a result knows questions that are not asked yet, and have no row."""
        if names.uid == self.found.uid:
            return {}
        if table.name != "journal" or row["kind"] != "result":
            return names.ids
        task_id, old, new = row["task_id"], self.found.uid, names.uid
        return {wait_id_of(old, task_id, key): wait_id_of(new, task_id, key) for key in returned_keys(body)}

    def _note_event(self, names: _Names, head: int) -> None:
        """Tell the log of the thread where it has come from."""
        kind = "thread.imported"
        body = Codec().encode({"thread_id": self.found.thread_id, "is_same_life": not names.ids}, "event")
        place = event_place(names.thread_id, kind, head, self.now)
        params = {"thread_id": names.thread_id, "number": self.found.events + 1, "seq": head, "run_id": None}
        closed = self.bodies.close(self.tx, names.thread_id, place, body, self.now)
        self.tx.send("import_events", {**params, "kind": kind, "at": self.now, "body": closed})

    def _check(self, name: str) -> None:
        """Refuse what `verify()` would complain of: a file may be whole, and yet hold what no store has written."""
        found = check_one(self.tx, self.bodies, self.now, name)
        if not found.is_sound:
            refuse(f"what it holds does not make sense ({found.problems[0]})")


def _is_driven(run: Row, now: Instant) -> bool:
    """Whether somebody who lives drives this run."""
    _, _, _, worker_id, host, pid, started, lease_until, _ = run
    return worker_id is not None and host is not None and not is_gone(host, pid, started, lease_until, now)
