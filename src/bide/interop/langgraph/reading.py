"""Reading: one checkpoint, pages of them, and the history of a channel along its line of ancestors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple

from bide.errors import CorruptDataError
from bide.interop.langgraph.packing import Packed, Packer
from bide.interop.langgraph.rows import Address, CheckpointRow, InvalidConfigError, Rows, WriteRow
from bide.interop.langgraph.values import Held, Remembered, ValueLog
from bide.store.database import Row

if TYPE_CHECKING:
    from langgraph.checkpoint.base import DeltaChannelHistory  # not in every release

PAGE = 25
"""How many checkpoints are read at a time: a list that nobody reads to its end costs little."""
SCANNED = 200
"""How many are looked at at a time when most do not pass the filter."""
ANCESTORS = 64


class Found(NamedTuple):
    """A checkpoint as it is stored, with its values and writes still packed."""

    row: CheckpointRow
    values: Mapping[str, Packed]
    writes: Sequence[WriteRow]


def find(rows: Rows, address: Address, remembered: Remembered) -> Found | None:
    """Read one checkpoint, or None if there is none."""
    row = rows.find(address)
    return None if row is None else _whole(rows, row, ValueLog(rows, row.address, remembered))


def _whole(rows: Rows, row: CheckpointRow, log: ValueLog) -> Found:
    values: dict[str, Packed] = {key: packed for key, packed in row.frame.small.items() if packed is not None}
    values.update((channel, log.read(channel, Held(row.life, spans))) for channel, spans in row.frame.logged.items())
    return Found(row, values, rows.writes(row.address))


def tuple_of(found: Found, packer: Packer) -> CheckpointTuple:
    """Unpack a checkpoint into what LangGraph works with."""
    row = found.row
    skeleton = packer.unpack(row.skeleton, "checkpoint")
    if not isinstance(skeleton, dict):
        raise CorruptDataError(f"Checkpoint {row.checkpoint_id!r} of thread {row.thread_id!r} is no checkpoint.")
    # In the order of their versions, whatever of them is stored where.
    values = {
        channel: packer.unpack(found.values[channel], f"channel_values[{channel!r}]")
        for channel in row.versions
        if channel in found.values
    }
    parent = None if row.parent_id is None else row.address._replace(checkpoint_id=row.parent_id)
    return CheckpointTuple(
        config=row.address.config(),  # type: ignore[arg-type]
        checkpoint={**skeleton, "channel_values": values, "channel_versions": dict(row.versions)},  # type: ignore[typeddict-item]
        metadata=packer.unpack(row.metadata, "metadata"),
        parent_config=None if parent is None else parent.config(),  # type: ignore[arg-type]
        pending_writes=[_pending(write, packer) for write in found.writes],
    )


def _pending(write: WriteRow, packer: Packer) -> tuple[str, str, Any]:
    return write.task_id, write.channel, packer.unpack(write.packed, f"writes[{write.channel!r}]")


def with_last_good(problem: CorruptDataError, rows: Rows, address: Address, packer: Packer) -> CorruptDataError:
    """Name the newest checkpoint that can still be read, for whoever finds one damaged."""
    good = _last_good(rows, address, packer)
    advice = "No older checkpoint of it can be read: restore a backup."
    if good is not None:
        advice = (
            f"The last good checkpoint before it is {good!r}: look at it, and go on from there, with "
            f"config={{'configurable': {{'thread_id': {address.thread_id!r}, 'checkpoint_id': {good!r}}}}}."
        )
    error = CorruptDataError(f"Thread {address.thread_id!r} cannot be read. {problem} {advice}")
    error.last_good = good
    return error


def _last_good(rows: Rows, address: Address, packer: Packer) -> str | None:
    newest = rows.tx.one("saver_newest", {"thread_id": address.thread_id})
    end = "" if newest is None else f"{newest[0]}z"
    if address.checkpoint_id is not None:
        end = address.checkpoint_id
    while True:
        scope = {"thread_id": address.thread_id, "ns": address.ns, "before_id": end, "most": PAGE}
        scanned = rows.tx.all("saver_list_ns", scope)
        for row in scanned:
            end = str(row[2])
            if _is_readable(rows, row, packer):
                return end
        if len(scanned) < PAGE:
            return None


def _is_readable(rows: Rows, row: Row, packer: Packer) -> bool:
    try:
        opened = rows.opened(row)
        tuple_of(_whole(rows, opened, ValueLog(rows, opened.address, Remembered())), packer)
    except CorruptDataError:
        return False
    return True


# ── Lists ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Wanted(NamedTuple):
    """Which checkpoints a list is to hold. None means any."""

    thread_id: str | None
    ns: str | None
    checkpoint_id: str | None
    filter: Mapping[str, Any]
    before: str | None


def wanted(config: Mapping[str, Any] | None, filter: Any, before: Mapping[str, Any] | None) -> Wanted:
    """Read the arguments of `list`."""
    if filter is not None and not isinstance(filter, Mapping):
        raise InvalidConfigError(f"filter is a dict of metadata, as in {{'source': 'loop'}}; this is {filter!r}.")
    end = None if before is None else (before.get("configurable") or {}).get("checkpoint_id")
    end = None if end is None else str(end)
    if config is None:
        return Wanted(None, None, None, filter or {}, end)
    thread_id, ns, checkpoint_id = Address.of(config)
    any_ns = (config.get("configurable") or {}).get("checkpoint_ns") is None
    return Wanted(thread_id, None if any_ns else ns, checkpoint_id, filter or {}, end)


class Pages:
    """A list of checkpoints, newest first, read page by page: between two pages nothing is held."""

    def __init__(self, which: Wanted, limit: int | None, packer: Packer, remembered: Remembered) -> None:
        self._which = which
        self._left = limit
        self._packer = packer
        self._remembered = remembered
        self._cursor: dict[str, str] | None = None
        self.is_over = limit is not None and limit <= 0

    def read(self, rows: Rows) -> list[Found]:
        """Read the next page; it may be empty though the list is not over."""
        most = SCANNED if self._which.filter else PAGE if self._left is None else min(PAGE, self._left)
        scanned = self._scan(rows, most)
        found, examined = self._choose(rows, scanned)
        self.is_over = self._left == 0 or (examined == len(scanned) < most)
        return found

    def _scan(self, rows: Rows, most: int) -> Sequence[Row]:
        """Read the next rows, without their values."""
        which = self._which
        if which.checkpoint_id is not None:
            named = rows.tx.all("saver_find_id", {"thread_id": which.thread_id, "checkpoint_id": which.checkpoint_id})
            is_early = which.before is None or which.checkpoint_id < which.before
            return [row for row in named if is_early and which.ns in (None, row[1])]
        cursor = self._cursor or self._first(rows)
        if cursor is None:
            return ()
        query, scope = self._scope()
        return rows.tx.all(query, {**scope, **cursor, "most": most})

    def _choose(self, rows: Rows, scanned: Sequence[Row]) -> tuple[list[Found], int]:
        """Take those that pass the filter, up to a page; return them, and how many rows were looked at."""
        logs: dict[tuple[str, str], ValueLog] = {}
        found: list[Found] = []
        for examined, row in enumerate(scanned, 1):
            self._cursor = self._bounds(row[2], row[0], row[1])
            if not self._passes(rows, row):
                continue
            opened = rows.opened(row)
            log = logs.setdefault((opened.thread_id, opened.ns), ValueLog(rows, opened.address, self._remembered))
            found.append(_whole(rows, opened, log))
            if self._left is not None:
                self._left -= 1
            if self._left == 0 or len(found) == PAGE:
                return found, examined
        return found, len(scanned)

    def _scope(self) -> tuple[str, dict[str, str]]:
        which = self._which
        if which.thread_id is None:
            return "saver_list_all", {}
        if which.ns is None:
            return "saver_list_thread", {"thread_id": which.thread_id}
        return "saver_list_ns", {"thread_id": which.thread_id, "ns": which.ns}

    def _first(self, rows: Rows) -> dict[str, str] | None:
        """Return where to begin: below the given checkpoint, or above the newest."""
        if self._which.before is not None:
            return self._bounds(self._which.before, "", "")
        thread_id = self._which.thread_id
        query = "saver_newest_of_all" if thread_id is None else "saver_newest"
        newest = rows.tx.one(query, {"thread_id": thread_id})
        if newest is None or newest[0] is None:
            return None
        # Whatever order the database sorts texts in, a longer one comes after its own beginning.
        return self._bounds(newest[0] + "z", "", "")

    def _bounds(self, checkpoint_id: str, thread_id: str, ns: str) -> dict[str, str]:
        bounds = {"before_id": checkpoint_id}
        if self._which.thread_id is None:
            bounds["before_thread"] = thread_id
        if self._which.ns is None:
            bounds["before_ns"] = ns
        return bounds

    def _passes(self, rows: Rows, row: Row) -> bool:
        if not self._which.filter:
            return True
        metadata = self._packer.unpack(rows.metadata_of(row), "metadata")
        return all(_is_same(metadata.get(key), value) for key, value in self._which.filter.items())


def _is_same(left: Any, right: Any) -> bool:
    # In Python True is 1; in a filter it is not.
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


# ── Histories ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Lines(NamedTuple):
    """What one channel's value is made of: the nearest value that is stored, and the writes since, oldest first."""

    seed: Packed | None
    writes: list[WriteRow]


def read_lines(rows: Rows, address: Address, channels: Sequence[str], remembered: Remembered) -> dict[str, Lines]:
    """Walk up from a checkpoint, for each channel to the nearest ancestor that holds its value."""
    writes: dict[str, list[list[WriteRow]]] = {channel: [] for channel in channels}
    seeds: dict[str, Packed] = {}
    target = rows.find(address)
    next_id = None if target is None else target.parent_id
    seen: set[str] = set()
    while next_id is not None and next_id not in seen and len(seeds) < len(writes):
        line = _ancestors(rows, address, next_id)
        missing = [channel for channel in writes if channel not in seeds]
        told = {channel: _writes_on(rows, address, next_id, channel) for channel in missing}
        for row in line:
            seen.add(row.checkpoint_id)
            for channel in missing:
                if channel not in seeds:
                    writes[channel].append(told[channel].get(row.checkpoint_id, []))
                    if row.holds(channel):
                        seeds[channel] = _value(rows, row, channel, remembered)
        next_id = line[-1].parent_id if line else None
    return {
        channel: Lines(seeds.get(channel), [write for step in reversed(steps) for write in step])
        for channel, steps in writes.items()
    }


def _ancestors(rows: Rows, address: Address, first: str) -> list[CheckpointRow]:
    params = {"thread_id": address.thread_id, "ns": address.ns, "checkpoint_id": first, "most": ANCESTORS}
    return [rows.opened(row) for row in rows.tx.all("saver_read_line", params)]


def _writes_on(rows: Rows, address: Address, first: str, channel: str) -> dict[str, list[WriteRow]]:
    params = {"thread_id": address.thread_id, "ns": address.ns, "checkpoint_id": first, "most": ANCESTORS}
    found = rows.tx.all("saver_read_line_writes", {**params, "channel": channel})
    by_checkpoint: dict[str, list[WriteRow]] = {}
    for write in rows.opened_writes(address.thread_id, address.ns, found):
        by_checkpoint.setdefault(write.checkpoint_id, []).append(write)
    return by_checkpoint


def _value(rows: Rows, row: CheckpointRow, channel: str, remembered: Remembered) -> Packed:
    small = row.frame.small.get(channel)
    if small is not None:
        return small
    return ValueLog(rows, row.address, remembered).read(channel, Held(row.life, row.frame.logged[channel]))


def history_of(lines: Lines, channel: str, packer: Packer) -> DeltaChannelHistory:
    """Unpack the history of a channel."""
    history: DeltaChannelHistory = {"writes": [_pending(write, packer) for write in lines.writes]}
    if lines.seed is not None:
        history["seed"] = packer.unpack(lines.seed, f"channel_values[{channel!r}]")
    return history
