"""What one `put` and one `put_writes` write: each a transaction, all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, get_checkpoint_metadata
from langgraph.checkpoint.serde.types import ERROR

from bide.errors import ThreadDeletedError
from bide.interop.langgraph.packing import SMALL, Packed, Packer
from bide.interop.langgraph.rows import Address, CheckpointRow, Config, Number, Rows, WriteRow
from bide.interop.langgraph.values import Held, Remembered, ValueLog
from bide.store.database import Answer, Row
from bide.store.frames import Frame, Spans, pack_frame

Versions = Mapping[str, Any]

_APART = ("channel_values", "channel_versions")
_ROOT = ""


class Draft(NamedTuple):
    """A checkpoint that is about to be written. What takes time was done before the transaction begins."""

    address: Address
    parent_id: str | None
    run_id: str | None
    root_id: str | None
    """Of a graph inside another: the checkpoint of the outermost one that it belongs to."""
    metadata: bytes
    skeleton: bytes
    versions: Versions
    changed: Mapping[str, Packed | None]
    """The channels that have a new version; None for one that is empty now."""
    values: Mapping[str, Any]


def draft_of(
    config: Config, checkpoint: Mapping[str, Any], metadata: Mapping[str, Any], new: Versions, packer: Packer
) -> Draft:
    """Pack a checkpoint; raise if something in it cannot be stored."""
    thread_id, ns, parent_id = Address.of(config)
    told: dict[str, Any] = dict(get_checkpoint_metadata(config, metadata))  # type: ignore[arg-type]
    values = checkpoint["channel_values"]
    changed = {
        channel: packer.pack_parts(values[channel], _path(channel)) if channel in values else None for channel in new
    }
    rest = {key: part for key, part in checkpoint.items() if key not in _APART}
    run_id = told.get("run_id")
    parents = told.get("parents")
    return Draft(
        Address(thread_id, ns, checkpoint["id"]),
        parent_id,
        None if run_id is None else str(run_id),
        parents.get(_ROOT) if ns and isinstance(parents, Mapping) else None,
        packer.pack(told, "metadata"),
        packer.pack(rest, "checkpoint"),
        checkpoint["channel_versions"],
        changed,
        values,
    )


def _path(channel: str) -> str:
    return f"channel_values[{channel!r}]"


class Putting:
    """Writes one draft."""

    def __init__(self, rows: Rows, draft: Draft, packer: Packer, remembered: Remembered) -> None:
        self._rows = rows
        self._draft = draft
        self._packer = packer
        self._log = ValueLog(rows, draft.address, remembered)
        self._small: dict[str, bytes | None] = {}
        self._logged: dict[str, Spans] = {}

    def write(self) -> None:
        """Write the checkpoint, and of its channels what its parent does not hold already."""
        draft = self._draft
        thread_id, ns, checkpoint_id = draft.address
        # Asked together, so that they travel together; in this order, so that nobody deletes the parent in between.
        taken = self._rows.tx.ask("saver_take_number", {"thread_id": thread_id})
        asked = self._rows.ask(Address(thread_id, ns, draft.parent_id)) if draft.parent_id else None
        number, horizon = take_number(self._rows, thread_id, taken)
        parent = asked() if asked is not None else None
        if horizon is not None:
            self._refuse_late(parent)
            self._clean_up()
        for channel, version in draft.versions.items():
            self._place(channel, version, number, parent)
        rest = [dict(draft.versions), draft.skeleton, number.life]
        frame = Frame(number.seq, None, self._small, self._logged, rest)
        key: dict[str, Any] = {"thread_id": thread_id, "ns": ns, "checkpoint_id": checkpoint_id}
        key |= {"parent_id": draft.parent_id, "run_id": draft.run_id, "seq": number.seq}
        self._rows.write_checkpoint(key, draft.metadata, pack_frame(frame))

    def remember(self) -> None:
        """Remember what was written, once it is committed."""
        self._log.remember()

    def _refuse_late(self, parent: CheckpointRow | None) -> None:
        """Refuse what a run writes whose thread was deleted meanwhile; a run that begins anew is welcome."""
        draft = self._draft
        based_on = draft.parent_id or draft.root_id
        if based_on is None or parent is not None:
            return
        if draft.parent_id is None and self._rows.find(Address(draft.address.thread_id, _ROOT, based_on)) is not None:
            return
        raise deleted(draft.address.thread_id)

    def _clean_up(self) -> None:
        """Where a deleted thread begins anew, drop what its old run has left since."""
        thread_id, ns, checkpoint_id = self._draft.address
        if ns == _ROOT and self._draft.parent_id is None:
            drop_strays(self._rows, thread_id, checkpoint_id or "")

    def _place(self, channel: str, version: Any, number: Number, parent: CheckpointRow | None) -> None:
        """Say where the value of a channel is; write it if it is nowhere yet."""
        if channel in self._draft.changed:
            value = self._draft.changed[channel]
        elif parent is not None and parent.versions.get(channel) == version:
            self._inherit(channel, parent)
            return
        elif channel in self._draft.values:
            # A copy or a fork: this version is not the parent's, and whose it is need not be in this thread.
            value = self._packer.pack_parts(self._draft.values[channel], _path(channel))
        else:
            value = None
        if value is not None:
            self._put(channel, value, number, parent)

    def _inherit(self, channel: str, parent: CheckpointRow) -> None:
        if channel in parent.frame.small:
            self._small[channel] = parent.frame.small[channel]
        elif channel in parent.frame.logged:
            self._logged[channel] = parent.frame.logged[channel]

    def _put(self, channel: str, value: Packed, number: Number, parent: CheckpointRow | None) -> None:
        if not isinstance(value, list) and len(value) <= SMALL:
            self._small[channel] = value
            return
        spans = None if parent is None else parent.frame.logged.get(channel)
        before = None if parent is None or spans is None else Held(parent.life, spans)
        self._logged[channel] = self._log.write(channel, number, value, before)


class Writes(NamedTuple):
    """The writes of one task, packed."""

    address: Address
    rows: tuple[WriteRow, ...]


def writes_of(
    config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, packer: Packer
) -> Writes:
    """Pack the writes of a task; raise if one of them cannot be stored."""
    address = Address.of(config)
    checkpoint_id = address.checkpoint_id or ""
    packed = (
        WriteRow(
            checkpoint_id,
            str(task_id),
            WRITES_IDX_MAP.get(channel, idx),
            channel,
            task_path,
            packer.pack(_storable(channel, value), f"writes[{channel!r}]"),
        )
        for idx, (channel, value) in enumerate(writes)
    )
    return Writes(address, tuple(packed))


def _storable(channel: str, value: Any) -> Any:
    # Of an error its text is kept, as LangGraph's own savers do: to build it again would be to call its class.
    return repr(value) if channel == ERROR and isinstance(value, BaseException) else value


def put_writes(rows: Rows, writes: Writes) -> None:
    """Write them. Their checkpoint may still be on its way, since LangGraph saves in the background."""
    thread_id, ns, checkpoint_id = writes.address
    horizon = hold_thread(rows, thread_id)
    is_late = horizon is not None and (checkpoint_id or "") <= horizon
    if is_late and rows.find(writes.address) is None:
        raise deleted(thread_id)
    for write in writes.rows:
        rows.write_write(thread_id, ns, write)


def forget_late(rows: Rows, address: Address) -> None:
    """Drop the writes on a checkpoint that was refused. Unless a new life has begun, those that still come are late."""
    thread_id, ns, refused = address
    horizon = hold_thread(rows, thread_id)
    newest = rows.tx.one("saver_newest", {"thread_id": thread_id})
    if newest is not None and newest[0] is not None:
        rows.tx.send("saver_delete_writes_on", {"thread_id": thread_id, "ns": ns, "checkpoint_id": refused})
        return
    reached = max(horizon or "", refused or "")
    rows.tx.send("saver_move_horizon", {"thread_id": thread_id, "horizon": reached})
    drop_strays(rows, thread_id, reached + "z")


def drop_strays(rows: Rows, thread_id: str, before: str) -> None:
    """Delete writes whose checkpoint is not there and will not come: those on checkpoints older than `before`."""
    for ns, checkpoint_id in rows.tx.all("saver_written_on", {"thread_id": thread_id}):
        if checkpoint_id < before and rows.find(Address(thread_id, ns, checkpoint_id)) is None:
            rows.tx.send("saver_delete_writes_on", {"thread_id": thread_id, "ns": ns, "checkpoint_id": checkpoint_id})


def take_number(rows: Rows, thread_id: str, taken: Answer) -> tuple[Number, str | None]:
    """Hold a thread until the end of the transaction; return the number of this put, and how far it was deleted."""
    seq, life, horizon = _made(rows, "saver_take_number", thread_id, taken())
    return Number(seq, life), horizon


def hold_thread(rows: Rows, thread_id: str) -> str | None:
    """Hold a thread until the end of the transaction; return the newest checkpoint of its that was deleted with it."""
    found = rows.tx.all("saver_hold_thread", {"thread_id": thread_id})
    horizon: str | None = _made(rows, "saver_hold_thread", thread_id, found)[2]
    return horizon


def _made(rows: Rows, query: str, thread_id: str, found: Sequence[Row]) -> Row:
    """Return the thread's row, and make it if there was none."""
    if not found:
        rows.tx.run("saver_insert_thread", {"thread_id": thread_id, "life": new_life(), "now": rows.now})
        found = rows.tx.all(query, {"thread_id": thread_id})
    return found[0]


def new_life() -> str:
    """Make a name for one life of a thread."""
    return os.urandom(8).hex()


def deleted(thread_id: str) -> ThreadDeletedError:
    """Say that the thread is gone."""
    return ThreadDeletedError(
        f"Thread {thread_id!r} was deleted while a run was under way on it. Nothing was written, and it stays deleted. "
        f"To begin a new conversation under the same id, invoke the graph with new input."
    )
