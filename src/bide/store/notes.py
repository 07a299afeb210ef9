"""What clients say about threads and runs beside their state: metadata by which threads are found again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from bide.clock import Instant, uuid7
from bide.errors import ThreadExistsError, UnknownThreadError
from bide.store.bodies import Bodies
from bide.store.correlating import known_keys, written_key
from bide.store.database import Row, Transaction
from bide.store.needed import PLAIN
from bide.store.places import notes_place
from bide.store.rows import checkpoint_id
from bide.store.starting import new_uid, start_place
from bide.store.writes import Writing
from bide.types import RunStatus

if TYPE_CHECKING:
    from bide.store.store import Store

MOST_FOUND = 10_000
"""So many threads are looked at by one search, newest first."""


class NotedThread(NamedTuple):
    """A thread as clients list it: what was said about it, and how its live or newest run stands."""

    thread_id: str
    graph: str
    created_at: Instant
    updated_at: Instant
    changed_at: Instant
    """When its state last changed."""
    metadata: Mapping[str, Any]
    ttl: Mapping[str, Any] | None
    expires_at: Instant | None
    run_id: str | None
    status: RunStatus | None
    error: str | None


def make_thread(
    store: Store, owner: str, thread_id: str | None, metadata: Mapping[str, Any], ttl: Mapping[str, Any] | None
) -> str:
    """Make a thread that has no graph yet, and return its id."""
    now = store.clock.now()
    name = thread_id or uuid7(now)

    def make(tx: Transaction) -> None:
        made = {"thread_id": name, "uid": new_uid(now), "owner": owner, "now": now}
        tx.expect("make_thread", made, lambda _: _exists(name))
        _write(Writing(tx, store.bodies, now), owner, name, metadata, ttl)

    store.database.write("make_thread", make)
    return name


def name_graph(store: Store, thread_id: str, graph: str) -> None:
    """Say of which graph a thread is that was made before its first run."""
    store.database.write("name_graph", lambda tx: tx.run("name_graph", {"thread_id": thread_id, "graph": graph}))


def note_thread(
    store: Store,
    owner: str,
    thread_id: str,
    metadata: Mapping[str, Any],
    *,
    ttl: Mapping[str, Any] | None = None,
    is_new: bool = False,
) -> None:
    """Add to what was said about a thread; what is said again is said anew. With `is_new`, only what is missing."""

    def add(tx: Transaction) -> None:
        writing = Writing(tx, store.bodies, store.clock.now())
        if tx.one("hold_thread", {"thread_id": thread_id}) is None:
            raise UnknownThreadError(f"There is no thread {thread_id!r}. Nothing was written.")
        known, kept = _read(store.bodies, tx, thread_id)
        merged = {**metadata, **known} if is_new else {**known, **metadata}
        if merged != known or ttl is not None:
            _write(writing, owner, thread_id, merged, ttl or kept)

    store.database.write("note_thread", add)


def note_new_thread(writing: Writing, owner: str, thread_id: str, metadata: Mapping[str, Any]) -> None:
    """Write down what is said about a thread that is made in the same transaction."""
    _write(writing, owner, thread_id, metadata, None)


def _read(bodies: Bodies, tx: Transaction, thread_id: str) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    row = tx.one("read_thread_notes", {"thread_id": thread_id})
    return _opened(bodies, tx, thread_id, None if row is None else row[0])


def _opened(bodies: Bodies, tx: Transaction, thread_id: str, body: bytes | None) -> tuple[dict[str, Any], Any]:
    if body is None:
        return {}, None
    said = cast("dict[str, Any]", PLAIN.decode(bodies.open(tx, notes_place(thread_id), body), "notes"))
    return said["metadata"], said["ttl"]


def _write(
    writing: Writing, owner: str, thread_id: str, metadata: Mapping[str, Any], ttl: Mapping[str, Any] | None
) -> None:
    body = PLAIN.encode({"metadata": dict(metadata), "ttl": None if ttl is None else dict(ttl)}, "metadata")
    minutes = None if ttl is None else ttl.get("ttl")
    expires_at = None if minutes is None else writing.now + round(float(minutes) * 60_000)
    closed = writing.closed(thread_id, notes_place(thread_id), body)
    put = {"thread_id": thread_id, "now": writing.now, "expires_at": expires_at, "body": closed}
    writing.tx.send("put_thread_notes", put)
    _write_labels(writing.bodies, writing.tx, owner, thread_id, metadata)


def _write_labels(bodies: Bodies, tx: Transaction, owner: str, thread_id: str, metadata: Mapping[str, Any]) -> None:
    key = {"thread_id": thread_id}
    tx.send("delete_labels", key)
    for name, value in metadata.items():
        if is_word(value):
            tx.send("insert_label", {**key, "label": written_key(bodies, owner, label_of(name, value))})


def rewrite_labels(bodies: Bodies, tx: Transaction, thread_id: str) -> None:
    """Write the labels of a thread as they are written today, out of its metadata: a hash does not say what it was."""
    thread = tx.one("owner_of_thread", {"thread_id": thread_id})
    if thread is not None:
        _write_labels(bodies, tx, thread[0], thread_id, _read(bodies, tx, thread_id)[0])


def label_of(name: str, value: Any) -> str:
    """Return one word of metadata as threads are found by it."""
    return f"label:{json.dumps(name)}={json.dumps(value)}"  # in which every character can be kept


def is_word(value: Any) -> bool:
    """Whether a value of metadata is one by which threads are found through an index."""
    return value is None or isinstance(value, (str, int, bool))


def _exists(thread_id: str) -> ThreadExistsError:
    return ThreadExistsError(f"There is a thread {thread_id!r} already. Use another id, or say if_exists='do_nothing'.")


# ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def noted_thread(store: Store, owner: str, thread_id: str) -> NotedThread | None:
    """Read one thread of an owner."""

    def read(tx: Transaction) -> NotedThread | None:
        row = tx.one("show_noted_thread", {"thread_id": thread_id, "owner": owner})
        return None if row is None else _noted(store.bodies, tx, row)

    return store.database.read(read)


def noted_threads(store: Store, owner: str, word: tuple[str, Any] | None = None) -> list[NotedThread]:
    """Read the threads of an owner, newest first: all of them, or those with one word in their metadata."""

    def read(label: str | None, tx: Transaction) -> list[NotedThread]:
        query = "list_noted_threads" if label is None else "list_labelled_threads"
        rows = tx.all(query, {"owner": owner, "most": MOST_FOUND, **({} if label is None else {"label": label})})
        return [_noted(store.bodies, tx, row) for row in rows]

    if word is None:
        return store.database.read(partial(read, None))
    labels = known_keys(store.bodies, owner, label_of(*word))
    found = {thread.thread_id: thread for label in labels for thread in store.database.read(partial(read, label))}
    return list(found.values())


def _noted(bodies: Bodies, tx: Transaction, row: Row) -> NotedThread:
    thread_id, graph, created_at, noted_at, expires_at, body, run_id, status, moved_at, error, changed_at = row
    metadata, ttl = _opened(bodies, tx, thread_id, body)
    return NotedThread(
        thread_id,
        graph,
        created_at,
        max(created_at, noted_at or 0, moved_at or 0, changed_at or 0),
        changed_at or created_at,
        metadata,
        ttl,
        expires_at,
        run_id,
        None if status is None else RunStatus(status),
        error,
    )


def run_notes(store: Store, thread_id: str, run_id: str) -> Mapping[str, Any]:
    """Read what a client asked for when it started a run; nothing for one that no client has started."""

    def read(tx: Transaction) -> Mapping[str, Any]:
        row = tx.one("read_run_notes", {"thread_id": thread_id, "run_id": run_id})
        if row is None:
            return {}
        body = store.bodies.open(tx, start_place(thread_id, run_id, "notes"), row[0])
        return cast("Mapping[str, Any]", PLAIN.decode(body, "notes"))

    return store.database.read(read)


def thread_of_run(store: Store, run_id: str) -> str | None:
    """Find the thread of a run that a client has started."""
    row = store.database.read(lambda tx: tx.one("thread_of_run", {"run_id": run_id}))
    return None if row is None else str(row[0])


def forget_run(store: Store, thread_id: str, run_id: str) -> None:
    """Delete a run that is over; what it has done stays."""
    key = {"thread_id": thread_id, "run_id": run_id}

    def forget(tx: Transaction) -> None:
        tx.send("hold_thread", {"thread_id": thread_id})
        tx.send("drop_run", key)
        tx.send("drop_run_notes", key)

    store.database.write("forget_run", forget)


def base_of_run(store: Store, thread_id: str, run_id: str) -> str | None:
    """Return the checkpoint that a run began at; None if it has written none of its own."""

    def read(tx: Transaction) -> str | None:
        row = tx.one("base_of_run", {"thread_id": thread_id, "run_id": run_id})
        thread = tx.one("peek_thread", {"thread_id": thread_id})
        return None if row is None or thread is None else checkpoint_id(thread[0], row[0])

    return store.database.read(read)


def let_go_of_expired(store: Store, most: int = 100) -> int:
    """Delete the threads whose time to live is over, or all but their newest checkpoint, as was said; how many."""

    def read(tx: Transaction) -> list[tuple[str, Any]]:
        rows = tx.all("list_expired_threads", {"now": store.clock.now(), "most": most})
        return [(thread_id, _opened(store.bodies, tx, thread_id, body)[1]) for thread_id, body in rows]

    found = store.database.read(read)
    for thread_id, ttl in found:
        if (ttl or {}).get("strategy") == "keep_latest":
            store.prune(keep_last=1, thread_id=thread_id)
            store.database.write("keep", partial(_keep, thread_id))
        else:
            store.delete_thread(thread_id)
    return len(found)


def _keep(thread_id: str, tx: Transaction) -> int:
    return tx.run("keep_for_ever", {"thread_id": thread_id})
