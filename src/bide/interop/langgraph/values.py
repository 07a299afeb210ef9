"""The values of channels, where they are too large for their checkpoint's row: a log for each, lists as splices."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from bide.errors import CorruptDataError
from bide.interop.langgraph.packing import Packed
from bide.interop.langgraph.rows import Address, Number, Rows
from bide.store.frames import Spans
from bide.store.lists import Logged, LogRow, pack_value, read_rows, write_list

MOST_BYTES = 16 * 1024 * 1024
"""How much of the last lists a saver remembers. A list that it has forgotten is read again before it is added to."""

Key = tuple[str, str, str]
"""Thread, namespace and channel."""


class Held(NamedTuple):
    """Where a checkpoint has the value of a channel."""

    life: str
    """The life of the thread in which the checkpoint was put: numbers mean something only within one."""
    spans: Spans


class Remembered:
    """The newest list of each channel that was read or written. Rows mean the same for ever, so this stays true."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._size = 0
        self._lists: OrderedDict[Key, tuple[str, Logged]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, held: Held) -> Logged | None:
        """Return a list, if it is this one that is remembered."""
        with self._lock:
            life, logged = self._lists.get(key, ("", None))
            return logged if logged is not None and (life, logged.spans) == held else None

    def put(self, key: Key, life: str, logged: Logged) -> None:
        """Remember a list unless a newer one is, and forget those that were not used for longest."""
        with self._lock:
            known = self._lists.pop(key, None)
            if known is not None:
                self._size -= _size(known[1])
                if known[0] == life and known[1].spans[-1][1] > logged.spans[-1][1]:
                    logged = known[1]
            self._lists[key] = life, logged
            self._size += _size(logged)
            while self._size > self._most:
                self._size -= _size(self._lists.popitem(last=False)[1][1])


def _size(logged: Logged) -> int:
    return 64 + sum(map(len, logged.elements)) + 40 * len(logged.elements)


class ValueLog:
    """The logs of one graph's channels, in one transaction."""

    def __init__(self, rows: Rows, address: Address, remembered: Remembered) -> None:
        self._rows = rows
        self._thread_id, self._ns, _ = address
        self._remembered = remembered
        self._read: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
        self._written: list[tuple[Key, str, Logged]] = []

    def remember(self) -> None:
        """Remember the lists that were written, now that they are: a number that was rolled back is given again."""
        for key, life, logged in self._written:
            self._remembered.put(key, life, logged)

    def read(self, channel: str, held: Held) -> Packed:
        """Read a value."""
        found = self._logged(channel, held)
        return found.elements if isinstance(found, Logged) else found

    def write(self, channel: str, number: Number, value: Packed, before: Held | None) -> Spans:
        """Write a value that was, in this log, as it was `before`; return where it is now."""
        seq = number.seq
        if not isinstance(value, list):
            self._put(LogRow(channel, seq, pack_value(value)))
            return ((seq, seq),)
        known = None if before is None else self._logged(channel, before)
        old = known if isinstance(known, Logged) else None
        if old is not None and old.elements == value:
            return old.spans
        written, logged = write_list(channel, old, value, self._branch(channel, seq, old), seq)
        for row in written:
            self._put(row)
        self._written.append(((self._thread_id, self._ns, channel), number.life, logged))
        return logged.spans

    def _put(self, row: LogRow) -> None:
        self._rows.check_size(self._thread_id, row)
        if row.until is not None:
            self._rows.delete_values(self._thread_id, self._ns, row.channel, (row.seq, row.until))
        self._rows.write_value(self._thread_id, self._ns, row.channel, row.seq, row.body)

    def _branch(self, channel: str, seq: int, old: Logged | None) -> int:
        """Say from where on all rows of the log are this list's own: a fork may have written in between."""
        if old is None or not old.loose:
            return seq
        # The very row, and not only its number: it may stand for more rows by now, if a fork was deleted since.
        return old.spans[-1][1] if self._rows.newest_value(self._thread_id, self._ns, channel) == old.loose[-1] else seq

    def _logged(self, channel: str, held: Held) -> bytes | Logged:
        key = (self._thread_id, self._ns, channel)
        known = self._remembered.get(key, held)
        if known is not None:
            return known
        rows = [row for span in held.spans for row in self._span(channel, *span)]
        try:
            found = read_rows(held.spans, rows)
        except CorruptDataError as problem:
            raise CorruptDataError(
                f"The value of channel {channel!r} of thread {self._thread_id!r} cannot be read: {problem}."
            ) from problem
        if isinstance(found, Logged):
            self._remembered.put(key, held.life, found)
        return found

    def _span(self, channel: str, first: int, last: int) -> list[tuple[int, bytes]]:
        """Read the rows of a span; a history reads the longest first, and the shorter ones are part of it."""
        known = self._read.get((channel, first))
        if known is None or known[-1][0] < last:
            known = self._rows.values(self._thread_id, self._ns, channel, (first, last))
            if not known:
                return []
            self._read[channel, first] = known
        return [row for row in known if row[0] <= last]
