"""Where the values of a checkpoint are: small ones in its own frame or its base's, large ones in the channel log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from bide.codec import Codec
from bide.engine.channels import Reduced
from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint
from bide.errors import UnstorableValueError
from bide.graph.marks import Mark, is_same, marks_of
from bide.store.frames import Frame, Spans
from bide.store.lists import Logged, LogRow, pack_value, write_list
from bide.store.rows import Found

SMALL = 256
"""Values of up to so many bytes travel in the frame of every checkpoint; larger ones are logged when they change."""


class StoredValues:
    """Follows one graph of one thread from checkpoint to checkpoint, and says what of its values must be written."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.codec: Codec = spec.codec
        self.is_whole = False
        """Whether every checkpoint holds all small values, because those before it may not be written."""
        self._start = self._seq = 0
        """Where the present branch of history begins, and the newest checkpoint on it."""
        self._small: dict[str, bytes] = {}
        self._base: int | None = None
        """The checkpoint that holds all small values; those after it hold what has changed since."""
        self._since: dict[str, bytes | None] = {}
        self._logged: dict[str, Spans] = {}
        self._lists: dict[str, Logged] = {}
        self._marks: dict[str, list[Mark]] = {}
        self._prints: dict[str, bytes] = {}

    # ── Values to bytes ────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, checkpoint: Checkpoint, changed: frozenset[str], rest: Any) -> tuple[Frame, tuple[LogRow, ...]]:
        """Return the frame of a checkpoint, and the rows that the channel log gains with it."""
        seq = checkpoint.seq
        if checkpoint.parent is None or checkpoint.parent != self._seq or seq != self._seq + 1:
            self._start = seq
        self._seq = seq
        if checkpoint.is_migrated:
            changed = changed.union(checkpoint.values, self._small, self._logged)
        rows = tuple(self._note_changes(checkpoint, changed))
        base, small = self._small_since(seq)
        return Frame(self._start, base, small, self._logged, rest), rows

    def _small_since(self, seq: int) -> tuple[int | None, Mapping[str, bytes | None]]:
        """Return what to write of the small values: those changed since the base, or all, when that is not much more.

        So a step costs what it touches, however many keys the state has, and a reader needs two rows at most.
        """
        if self.is_whole or self._base is None or 2 * len(self._since) >= len(self._small):
            self._base, self._since = seq, {}
            return None, self._small
        return self._base, self._since

    def _note_changes(self, checkpoint: Checkpoint, changed: Iterable[str]) -> Iterable[LogRow]:
        values, channels, seq = checkpoint.values, self.spec.channels, checkpoint.seq
        for key in changed:
            if self._small.pop(key, None) is not None:
                self._since[key] = None
            spans = self._logged.pop(key, None)
            before = None if spans is None else self._lists.pop(key, None)
            if key not in values or (key in channels and not channels[key].saved):
                continue
            yield from self._written(key, values[key], before, spans, seq)

    def _written(self, key: str, value: Any, before: Logged | None, spans: Spans | None, seq: int) -> Iterable[LogRow]:
        """Note where a value is from now on; return what the channel log gains by it, if it gains anything."""
        if before is None or not self._is_log(key, value):
            body = self.codec.encode(value, f"state[{key!r}]")
            if len(body) <= SMALL:
                self._small[key] = self._since[key] = body
                return ()
            if not self._is_log(key, value):
                return self._put(key, body, spans, seq)
        self._prints.pop(key, None)
        marks = marks_of(value)
        rows, logged = write_list(key, before, self._elements(key, value, marks, before), self._start, seq)
        self._logged[key], self._lists[key], self._marks[key] = logged.spans, logged, marks
        return rows

    def _put(self, key: str, body: bytes, spans: Spans | None, seq: int) -> Iterable[LogRow]:
        """Log a value whole, unless it is just what is there."""
        before, self._prints[key] = self._prints.pop(key, None), _print(body)
        if spans is not None and before == self._prints[key]:
            self._logged[key] = spans
            return ()
        self._logged[key] = ((seq, seq),)
        return (LogRow(key, seq, pack_value(body)),)

    def _is_log(self, key: str, value: Any) -> bool:
        """Whether a value is logged as it grows: a list, unless it is a vector of numbers that is replaced whole."""
        if type(value) is not list:
            return False
        return not value or not isinstance(value[0], (int, float)) or isinstance(self.spec.channel(key), Reduced)

    def _elements(self, key: str, value: list[Any], marks: list[Mark], before: Logged | None) -> list[bytes]:
        """Encode the elements of a list; those that are certainly what they were are not encoded again."""
        encode = self.codec.encode
        known = [] if before is None else before.elements
        try:
            kept = [
                old if is_same(mark, now) else encode(element)
                for element, now, mark, old in zip(value, marks, self._marks.get(key, ()), known, strict=False)
            ]
            return kept + [encode(element) for element in value[len(kept) :]]
        except UnstorableValueError:
            encode(value, f"state[{key!r}]")  # raises again, with the path of what is in the way
            raise

    def follow(self, checkpoint: Checkpoint) -> None:
        """Take over where the values of a checkpoint are that was read, without those that are gone since."""
        gone = [key for key in self._small if key not in checkpoint.values]
        for key in gone:
            del self._small[key]
            self._since[key] = None
        self._logged = {key: spans for key, spans in self._logged.items() if key in checkpoint.values}

    def is_unchanged(self, key: str, value: Any) -> bool:
        """Say whether a state key is stored with just this value."""
        if key in self._small:
            return self._small[key] == self.codec.encode(value, f"state[{key!r}]")
        if key not in self._logged:
            return True
        if key in self._lists:
            elements = self._elements(key, value, marks_of(value), self._lists[key]) if type(value) is list else None
            return self._lists[key].elements == elements
        return self._prints[key] == _print(self.codec.encode(value, f"state[{key!r}]"))

    # ── Bytes to values ────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, found: Found, where: str) -> dict[str, Any]:
        """Decode the values of a checkpoint that was read, and go on from it."""
        frame, seq = found.frame, found.row.seq
        decode = self.codec.decode
        values: dict[str, Any] = {key: decode(body, f"state[{key!r}] at {where}") for key, body in found.small.items()}
        for key, held in found.large.items():
            if isinstance(held, Logged):
                values[key] = self.codec.decode_list(held.elements, f"state[{key!r}] at {where}")
            else:
                values[key] = decode(held, f"state[{key!r}] at {where}")
        self._start, self._seq = frame.start, seq
        self._small, self._logged = dict(found.small), dict(frame.logged)
        self._base, self._since = (seq, {}) if frame.base is None else (frame.base, dict(frame.small))
        self._lists = {key: held for key, held in found.large.items() if isinstance(held, Logged)}
        self._marks = {key: marks_of(values[key]) for key in self._lists}
        self._prints = {key: _print(held) for key, held in found.large.items() if not isinstance(held, Logged)}
        return values


def _print(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()
