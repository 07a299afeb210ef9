"""Deleting, pruning and copying: each a transaction, with the thread held so that no run writes in between."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bide.errors import ConflictError
from bide.interop.langgraph.packing import Packer
from bide.interop.langgraph.putting import drop_strays, hold_thread, new_life
from bide.interop.langgraph.rows import Address, CheckpointRow, InvalidConfigError, Rows
from bide.store.frames import pack_frame

STRATEGIES = ("keep_latest", "delete")
_DELTAS = "counters_since_delta_snapshot"

Place = tuple[str, str]
"""The namespace and the id of a checkpoint, within one thread."""


def delete_thread(rows: Rows, thread_id: str) -> None:
    """Delete a thread, and remember how far it had come: what its old run still writes is refused."""
    thread = {"thread_id": thread_id}
    held = rows.tx.one("saver_hold_thread", thread)
    if held is None:
        return
    newest = rows.tx.one("saver_newest", thread)
    horizons = [known for known in (held[2], newest[0] if newest is not None else None) if known is not None]
    for query in ("saver_delete_checkpoints", "saver_delete_all_values", "saver_delete_writes"):
        rows.tx.run(query, thread)
    rows.release_blobs(thread_id)
    if horizons:
        rows.tx.run("saver_bury_thread", {**thread, "horizon": max(horizons), "life": new_life(), "now": rows.now})


def delete_runs(rows: Rows, run_ids: Collection[str], packer: Packer) -> None:
    """Delete the checkpoints that some runs made, in all threads; refuse if others could not be read without them."""
    threads = {row[0] for run_id in run_ids for row in rows.tx.all("saver_threads_of_run", {"run_id": run_id})}
    # In one order, so that two who do this at once do not wait for each other.
    for thread_id in sorted(threads):
        hold_thread(rows, thread_id)
        found = _checkpoints(rows, thread_id)
        kept = {place: row for place, row in found.items() if row.run_id not in run_ids}
        needed = _needed(kept.values(), found, packer)
        if not needed <= kept.keys():
            raise ConflictError(
                f"A later run of thread {thread_id!r} cannot be read without what these runs wrote: it has delta "
                f"channels, which are put together from the writes of earlier checkpoints. Nothing was deleted. Delete "
                f"the later runs too, or the whole thread with delete_thread({thread_id!r})."
            )
        _keep_only(rows, thread_id, found, kept)


def check_strategy(strategy: str) -> None:
    """Refuse a strategy that does not exist."""
    if strategy not in STRATEGIES:
        raise InvalidConfigError(f"prune(strategy={strategy!r}) is not known. Use 'keep_latest' or 'delete'.")


def keep_latest(rows: Rows, thread_id: str, packer: Packer) -> None:
    """Keep the newest checkpoint of each graph of a thread, and those that its delta channels are read from."""
    if rows.tx.one("saver_hold_thread", {"thread_id": thread_id}) is None:
        return
    found = _checkpoints(rows, thread_id)
    newest: dict[str, str] = {}
    for ns, checkpoint_id in found:
        newest[ns] = max(checkpoint_id, newest.get(ns, ""))
    latest = [found[place] for place in newest.items()]
    needed = _needed(latest, found, packer)
    kept = {place: row for place, row in found.items() if place in needed or newest[place[0]] == place[1]}
    _keep_only(rows, thread_id, found, kept)


def _checkpoints(rows: Rows, thread_id: str) -> dict[Place, CheckpointRow]:
    found = (rows.opened(row) for row in rows.tx.all("saver_thread_checkpoints", {"thread_id": thread_id}))
    return {(row.ns, row.checkpoint_id): row for row in found}


def _needed(kept: Iterable[CheckpointRow], found: Mapping[Place, CheckpointRow], packer: Packer) -> set[Place]:
    """Return the ancestors without which the delta channels of some checkpoints could not be put together."""
    needed: set[Place] = set()
    for row in kept:
        metadata = packer.unpack(row.metadata, "metadata")
        missing = {channel for channel in metadata.get(_DELTAS) or () if not row.holds(channel)}
        above = found.get((row.ns, row.parent_id or ""))
        while missing and above is not None and (above.ns, above.checkpoint_id) not in needed:
            needed.add((above.ns, above.checkpoint_id))
            missing = {channel for channel in missing if not above.holds(channel)}
            above = found.get((above.ns, above.parent_id or ""))
    return needed


def _keep_only(
    rows: Rows, thread_id: str, found: Mapping[Place, CheckpointRow], kept: Mapping[Place, CheckpointRow]
) -> None:
    """Delete all other checkpoints with their writes, and the values that none of the kept ones holds."""
    for ns, checkpoint_id in found.keys() - kept.keys():
        place = {"thread_id": thread_id, "ns": ns, "checkpoint_id": checkpoint_id}
        rows.tx.run("saver_delete_checkpoint", place)
        rows.tx.run("saver_delete_writes_on", place)
    # Writes on a checkpoint that may still come are younger than all that is here.
    drop_strays(rows, thread_id, max((checkpoint_id for _, checkpoint_id in kept), default=""))
    _drop_values(rows, thread_id, kept.values())
    rows.release_blobs(thread_id)


def _drop_values(rows: Rows, thread_id: str, kept: Iterable[CheckpointRow]) -> None:
    spans: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for row in kept:
        for channel, held in row.frame.logged.items():
            spans.setdefault((row.ns, channel), set()).update(held)
    for ns, channel, seq in rows.tx.all("saver_thread_values", {"thread_id": thread_id}):
        if not any(first <= seq <= last for first, last in spans.get((ns, channel), ())):
            rows.delete_values(thread_id, ns, channel, (seq, seq))


def copy_thread(rows: Rows, source: str, target: str) -> None:
    """Copy all of a thread into one that is new or empty; a thread that is not there is copied as nothing."""
    # In one order, whichever way the copy goes.
    held: dict[str, Any] = {}
    for thread_id in sorted({source, target}):
        held[thread_id] = rows.tx.one("saver_hold_thread", {"thread_id": thread_id})
    if held[source] is None or source == target:
        return
    if rows.tx.one("saver_newest", {"thread_id": target}) not in (None, (None,)):
        raise ConflictError(
            f"Thread {target!r} has checkpoints of its own, and two histories do not mix. Nothing was copied. Choose a "
            f"new id, or delete it first with delete_thread({target!r})."
        )
    hold_thread(rows, target)
    found = _checkpoints(rows, source).values()
    for row in found:
        _copy_checkpoint(rows, row, target)
    _copy_values(rows, source, target)
    _copy_writes(rows, source, target)
    rows.tx.run("saver_count_on", {"thread_id": target, "puts": held[source][0]})


def _copy_checkpoint(rows: Rows, row: CheckpointRow, target: str) -> None:
    *_, metadata, frame = row
    key = {**row._asdict(), "thread_id": target}
    del key["metadata"], key["frame"]
    rows.write_checkpoint(key, metadata, pack_frame(frame))


def _copy_values(rows: Rows, source: str, target: str) -> None:
    for ns, channel, seq in rows.tx.all("saver_thread_values", {"thread_id": source}):
        for number, body in rows.values(source, ns, channel, (seq, seq)):
            rows.write_value(target, ns, channel, number, body)


def _copy_writes(rows: Rows, source: str, target: str) -> None:
    for ns, checkpoint_id in rows.tx.all("saver_written_on", {"thread_id": source}):
        for write in rows.writes(Address(source, ns, checkpoint_id)):
            rows.write_write(target, ns, write)


def thread_ids_of(given: Sequence[object]) -> list[str]:
    """Read a list of ids; a single text would be read letter by letter."""
    if isinstance(given, str | bytes):
        raise InvalidConfigError(f"A list of ids is wanted, and {given!r} is one text. Write [{given!r}].")
    return [str(thread_id) for thread_id in given]
