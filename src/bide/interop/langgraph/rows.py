"""The rows of the saver's four tables, and the one way in which their bodies are closed and opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bide.clock import Instant
from bide.errors import BideError
from bide.store.bodies import Bodies, collect_blobs
from bide.store.database import Row, Transaction
from bide.store.frames import Frame, unpack_frame
from bide.store.lists import LogRow
from bide.store.reads import noticing_damage
from bide.store.saver_places import (
    saver_blobs,
    saver_checkpoint_place,
    saver_metadata_place,
    saver_value_place,
    saver_write_place,
)
from bide.store.seal import REFERENCE, is_reference, open_reference, refuse

Config = Mapping[str, Any]


class InvalidConfigError(BideError, ValueError):
    """The config or an argument of a saver's method does not say what it must."""


class Address(NamedTuple):
    """Which checkpoint of which graph of which thread; None for the newest."""

    thread_id: str
    ns: str
    checkpoint_id: str | None

    @classmethod
    def of(cls, config: Config) -> Address:
        """Read the address in a config of LangGraph."""
        configurable = config.get("configurable") or {}
        thread_id = configurable.get("thread_id")
        if thread_id is None:
            raise InvalidConfigError(
                "A checkpointer needs to know the thread: config={'configurable': {'thread_id': 'some id'}}."
            )
        checkpoint_id = configurable.get("checkpoint_id")
        return cls(
            str(thread_id), str(configurable.get("checkpoint_ns") or ""), str(checkpoint_id) if checkpoint_id else None
        )

    def config(self) -> dict[str, Any]:
        """Write it as LangGraph does."""
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.ns,
                "checkpoint_id": self.checkpoint_id,
            }
        }


class Number(NamedTuple):
    """Which put into a thread this is, in which life of the thread."""

    seq: int
    life: str


class CheckpointRow(NamedTuple):
    """A checkpoint, its bodies open."""

    thread_id: str
    ns: str
    checkpoint_id: str
    parent_id: str | None
    run_id: str | None
    seq: int
    metadata: bytes
    frame: Frame

    @property
    def address(self) -> Address:
        """Where it is."""
        return Address(self.thread_id, self.ns, self.checkpoint_id)

    @property
    def versions(self) -> dict[str, Any]:
        """Which version each channel is at."""
        versions: dict[str, Any] = self.frame.rest[0]
        return versions

    @property
    def skeleton(self) -> bytes:
        """The checkpoint without its channels, packed."""
        skeleton: bytes = self.frame.rest[1]
        return skeleton

    @property
    def life(self) -> str:
        """The life of the thread in which it was put."""
        life: str = self.frame.rest[2]
        return life

    def holds(self, channel: str) -> bool:
        """Whether a value of this channel is stored here."""
        return channel in self.frame.small or channel in self.frame.logged


class WriteRow(NamedTuple):
    """One write of a task, its body open."""

    checkpoint_id: str
    task_id: str
    idx: int
    channel: str
    task_path: str
    packed: bytes

    @property
    def order(self) -> tuple[str, str, int]:
        """Sort writes as LangGraph applies those of one step."""
        return self.task_path, self.task_id, self.idx


class Rows:
    """Reads and writes rows in one transaction."""

    def __init__(self, tx: Transaction, bodies: Bodies, now: Instant = 0) -> None:
        self.tx = tx
        self.now = now
        self._bodies = bodies

    def _close(self, thread_id: str, place: str, body: bytes) -> bytes:
        return self._bodies.close(self.tx, saver_blobs(thread_id), place, body, self.now)

    def _open(self, place: str, body: object) -> bytes:
        if not isinstance(body, bytes):
            refuse(place, body)
        return self._bodies.open(self.tx, place, body)

    # ── Checkpoints ────────────────────────────────────────────────────────────────────────────────────────────────

    def find(self, address: Address) -> CheckpointRow | None:
        """Read one checkpoint: the one that is named, or the newest."""
        return self.ask(address)()

    def ask(self, address: Address) -> Callable[[], CheckpointRow | None]:
        """Return a function that returns what `find` does: the question travels with others."""
        params = address._asdict()
        if address.checkpoint_id is None:
            del params["checkpoint_id"]
            answer = self.tx.ask("saver_read_latest", params)
        else:
            answer = self.tx.ask("saver_read_checkpoint", params)
        return lambda: next((self.opened(row) for row in answer()), None)

    def opened(self, row: Row) -> CheckpointRow:
        """Open the bodies of a row as the queries give it."""
        *key, metadata, body = row
        place = saver_checkpoint_place(key)
        opened = self._open(place, body)
        with noticing_damage(place):
            frame = unpack_frame(opened)
            if [type(part) for part in frame.rest] != [dict, bytes, str]:
                raise ValueError("it is no checkpoint of LangGraph's")
        thread_id, ns, checkpoint_id, parent_id, run_id, seq = key
        told = self._metadata(key, metadata)
        return CheckpointRow(thread_id, ns, checkpoint_id, parent_id, run_id, seq, told, frame)

    def _metadata(self, key: Sequence[Any], metadata: Any) -> bytes:
        return self._open(saver_metadata_place(key), metadata)

    def metadata_of(self, row: Row) -> bytes:
        """Open only the metadata of a row."""
        return self._metadata(row[:-2], row[-2])

    def write_checkpoint(self, key: Mapping[str, Any], metadata: bytes, body: bytes) -> None:
        """Write a checkpoint; one with the same id makes way, as LangGraph's savers have it."""
        parts = [key[name] for name in ("thread_id", "ns", "checkpoint_id", "parent_id", "run_id", "seq")]
        bodies = {
            "metadata": self._close(key["thread_id"], saver_metadata_place(parts), metadata),
            "body": self._close(key["thread_id"], saver_checkpoint_place(parts), body),
        }
        self.tx.send("saver_put_checkpoint", {**key, **bodies, "now": self.now})

    # ── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def values(self, thread_id: str, ns: str, channel: str, span: tuple[int, int]) -> list[tuple[int, bytes]]:
        """Read the rows of a span of the log of a channel, oldest first."""
        params = {"thread_id": thread_id, "ns": ns, "channel": channel, "first": span[0], "last": span[1]}
        return [
            (seq, self._open(saver_value_place((thread_id, ns, channel, seq)), body))
            for seq, body in self.tx.all("saver_read_values", params)
        ]

    def check_size(self, thread_id: str, row: LogRow) -> None:
        """Refuse a value that has grown past what the store takes: it could not be written whole again."""
        self._bodies.check_size(f"channel {row.channel!r} of thread {thread_id!r}", row.live)

    def write_value(self, thread_id: str, ns: str, channel: str, seq: int, body: bytes) -> None:
        """Add a row to the log of a channel."""
        closed = self._close(thread_id, saver_value_place((thread_id, ns, channel, seq)), body)
        params = {"thread_id": thread_id, "ns": ns, "channel": channel, "seq": seq, "body": closed}
        self.tx.send("saver_put_value", params)

    def newest_value(self, thread_id: str, ns: str, channel: str) -> tuple[int, bytes] | None:
        """Read the newest row of the log of a channel."""
        row = self.tx.one("saver_newest_value", {"thread_id": thread_id, "ns": ns, "channel": channel})
        if row is None:
            return None
        return row[0], self._open(saver_value_place((thread_id, ns, channel, row[0])), row[1])

    def delete_values(self, thread_id: str, ns: str, channel: str, span: tuple[int, int]) -> None:
        """Delete the rows of a span of the log of a channel."""
        params = {"thread_id": thread_id, "ns": ns, "channel": channel, "first": span[0], "last": span[1]}
        self.tx.send("saver_delete_values", params)

    # ── Writes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def writes(self, address: Address) -> list[WriteRow]:
        """Read the writes on a checkpoint, in the order in which they apply."""
        return self.opened_writes(address.thread_id, address.ns, self.tx.all("saver_read_writes", address._asdict()))

    def opened_writes(self, thread_id: str, ns: str, rows: Sequence[Row]) -> list[WriteRow]:
        """Open the bodies of writes and put them in order."""
        opened = [
            WriteRow(*row)._replace(packed=self._open(saver_write_place((thread_id, ns, *row[:-1])), row[-1]))
            for row in rows
        ]
        return sorted(opened, key=lambda write: write.order)

    def write_write(self, thread_id: str, ns: str, write: WriteRow) -> None:
        """Keep a write of a task. A second one in its place is dropped, unless the place is a special one."""
        *key, packed = write
        closed = self._close(thread_id, saver_write_place((thread_id, ns, *key)), packed)
        params = {**write._asdict(), "thread_id": thread_id, "ns": ns, "body": closed}
        del params["packed"]
        self.tx.send("saver_put_write" if write.idx >= 0 else "saver_replace_write", params)

    # ── Large bodies ───────────────────────────────────────────────────────────────────────────────────────────────

    def release_blobs(self, thread_id: str) -> None:
        """Say again which large bodies the thread uses, and delete those that nobody does any more."""
        user = {"thread_id": saver_blobs(thread_id)}
        before = self.tx.all("list_blob_uses", user)
        if not before:
            return
        self.tx.run("delete_blob_uses", user)
        for place, body in self._large(thread_id):
            reference = open_reference(self._bodies.seal, place, body)
            self.tx.run("use_blob", {**user, "owner": reference[32:].decode(), "hash": reference[:32]})
        collect_blobs(self.tx, before)

    def _large(self, thread_id: str) -> Iterator[tuple[str, bytes]]:
        """Find the bodies of a thread that lie elsewhere, each with its place."""
        thread, large = {"thread_id": thread_id}, {"thread_id": thread_id, "reference": REFERENCE}
        for *key, metadata, body in self.tx.all("saver_thread_checkpoints", thread):
            if is_reference(metadata):
                yield saver_metadata_place(key), metadata
            if is_reference(body):
                yield saver_checkpoint_place(key), body
        for *key, body in self.tx.all("saver_large_values", large):
            yield saver_value_place((thread_id, *key)), body
        for *key, body in self.tx.all("saver_large_writes", large):
            yield saver_write_place((thread_id, *key)), body
