"""The doorbell: tells whoever waits that something has become ready, so that it need not wait for its next look.

It is never the truth. A ring that is lost costs the time until the next look, and one too many a look for nothing.
Nothing here raises, and no ring is part of a transaction.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Condition
from typing import Protocol

from bide.clock import elapsed

LOOK_SECONDS = 0.05
"""How often a waiter looks whether another process has rung. To look takes 0.6 µs, to be woken for it a hundred times
that: together 0.2 % of a core. `PRAGMA data_version` would take 3.6 µs and a connection, and tell every checkpoint."""
MARK_BYTES = 8


class Doorbell(Protocol):
    """A bell that everybody who shares a database can ring, and hear.

    Whoever waits alone calls `wait(seconds)`, which also notices a ring since its last call. Where several wait, each
    remembers `rings` before it looks for work, and gives that to `wait`.
    """

    @property
    def rings(self) -> int:
        """How many rings were heard so far; several at once count as one."""
        ...

    def ring(self) -> None:
        """Wake all who wait, here and elsewhere. Call it after the commit."""
        ...

    def wait(self, seconds: float, after: int | None = None) -> bool:
        """Return True when it rings, or has rung since; False when so many seconds have passed."""
        ...

    def close(self) -> None:
        """Wake all who wait here, and let go of everything."""
        ...


class InnerDoorbell:
    """A bell that is heard by those who share one store object."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._rings = 0
        self._answered = 0
        """How many rings there had been when somebody last came back from waiting."""
        self._is_closed = False

    @property
    def rings(self) -> int:
        """How many rings were heard so far."""
        with self._changed:
            self._look()
            return self._rings

    def ring(self) -> None:
        """Wake all who wait."""
        self._sound()

    def _sound(self) -> None:
        with self._changed:
            self._rings += 1
            self._changed.notify_all()

    def wait(self, seconds: float, after: int | None = None) -> bool:
        """Wait for a ring."""
        until = elapsed() + seconds
        with self._changed:
            known = self._answered if after is None else after
            self._look()
            while self._rings == known and not self._is_closed and (left := until - elapsed()) > 0:
                self._changed.wait(min(left, self._longest_nap))
                self._look()
            if after is None:  # whoever remembers by itself must not make the others miss a ring
                self._answered = self._rings
            return self._rings != known

    _longest_nap = 60.0

    def _look(self) -> None:
        """Look whether somebody elsewhere has rung; the lock is held."""

    def close(self) -> None:
        """Wake all who wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class FileDoorbell(InnerDoorbell):
    """A bell for all processes that share a file: who rings writes a mark, who waits looks for a new one."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._mark = b""
        self._file = _opened(path)
        self._mark = self._read()

    def ring(self) -> None:
        """Wake all who wait here, and leave a mark for the others."""
        with self._changed:
            if not self._is_closed and self._file is not None:
                self._mark = os.urandom(MARK_BYTES)
                # If the disk is full, the others look by themselves before long.
                with suppress(OSError):
                    os.pwrite(self._file, self._mark, 0)
        self._sound()

    _longest_nap = LOOK_SECONDS

    def _look(self) -> None:
        found = self._read()
        if found != self._mark:
            self._mark = found
            self._rings += 1
            self._changed.notify_all()

    def _read(self) -> bytes:
        if self._is_closed or self._file is None:
            return self._mark
        try:
            return os.pread(self._file, MARK_BYTES, 0)
        except OSError:
            return self._mark

    def close(self) -> None:
        """Wake all who wait here, and close the file."""
        super().close()
        with self._changed:
            if self._file is not None:
                os.close(self._file)
                self._file = None


def _opened(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
