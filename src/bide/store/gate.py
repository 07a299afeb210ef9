"""A lock between processes: one of them writes to a SQLite file at a time.

SQLite before 3.51.3 can damage a database in WAL mode when one connection commits while another one runs a checkpoint
(the "WAL-reset bug"), and Debian 12 ships 3.40.1. So every process of Bide commits, checkpoints, opens and closes only
while it is inside this gate. It also takes the place of SQLite's busy handler, which starves the unlucky.

There are two locks, so that everybody gets in. Whoever wants in takes the place in front of the gate first, waits there
for the gate, and gives the place up inside. A process that has just come out and wants in again finds the place taken,
and waits like the others: with eight busy processes the longest wait is 25 ms, where it was two seconds.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakSet

from bide.errors import StoreBusyError, StoreError, StoreUnavailableError

try:
    import fcntl
except ImportError:  # pragma: no cover — Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
"""How long a writer waits for the others before it gives up."""
IN_LINE_SECONDS = (0.0005, 0.002)
"""How long one who is not next waits before it looks again: at random, so that nobody is always too late."""
NEXT_SECONDS = (0.0001, 0.0002)
"""How long the next one waits before it looks again. Nobody else does so at that time, and a commit is short."""

_gates: WeakSet[Gate] = WeakSet()


def try_lock(file: int) -> None:
    """Lock an open file for this process, until it is closed; `BlockingIOError` if another one has it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class NoGate:
    """What stands in place of a gate where nobody else can come: around a database in memory."""

    def inside(self, work: Callable[..., T], *arguments: Any) -> T:
        """Call `work`."""
        return work(*arguments)

    def close(self) -> None:
        """There is nothing to let go of."""


class Gate:
    """The lock files beside a database: `path`, and `path` with `-next` before its last word."""

    def __init__(self, path: str, patience: float = PATIENCE_SECONDS) -> None:
        if fcntl is None:  # pragma: no cover — Windows
            raise StoreUnavailableError(
                "The SQLite store needs POSIX file locks, which this system lacks. Use ':memory:' here, or run under "
                "Linux, macOS or WSL."
            )
        self.path = path
        self.patience = patience
        # A file lock belongs to the open file, not to a thread: between threads it would let everybody in.
        self._mine = Lock()
        self._files: list[int] = []
        try:
            self._gate = self._open(path)
            self._place = self._open(self._database + "-next-lock")
        except BaseException:
            self._close_files()
            raise
        # These are called where Ctrl-C must not come between: it is noticed in Python's own functions, never on the
        # way from a `finally` into one that is written in C.
        self._leave_gate = partial(fcntl.flock, self._gate, fcntl.LOCK_UN)
        self._leave_place = partial(fcntl.flock, self._place, fcntl.LOCK_UN)
        _gates.add(self)

    def inside(self, work: Callable[..., T], *arguments: Any) -> T:
        """Call `work` while no other process and no other thread is inside.

        Not a context manager: Ctrl-C at the first line of an `__exit__` would leave the gate shut for everybody else.
        """
        with self._mine:
            if not self._files:
                raise StoreError(f"The store of {self.path!r} has been closed. Open it again: Store.open(…).")
            try:
                self._enter()
                return work(*arguments)
            finally:
                try:
                    self._leave_gate()
                except BaseException:
                    self._leave_gate()  # an audit hook of the program was stopped before the lock was let go
                    raise

    def _enter(self) -> None:
        try:
            self._take(self._place, IN_LINE_SECONDS)
            self._take(self._gate, NEXT_SECONDS)
        finally:
            try:
                self._leave_place()
            except BaseException:
                self._leave_place()  # as above
                raise

    def _take(self, file: int, pauses: tuple[float, float]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(file, pauses)

    def _wait(self, file: int, pauses: tuple[float, float]) -> None:
        until = time.monotonic() + self.patience
        while time.monotonic() < until:
            time.sleep(random.uniform(*pauses))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                continue
        raise StoreBusyError(
            f"Another process has held {self.path!r} for {self.patience:.0f} seconds. Nothing was written. Look for a "
            f"stopped or very slow process that uses the same database; a step(effect='tx') must be short."
        )

    @property
    def _database(self) -> str:
        return self.path.removesuffix("-lock")

    def _open(self, path: str) -> int:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            folder = os.path.dirname(os.path.abspath(path))
            if not os.path.isdir(folder):
                raise StoreUnavailableError(
                    f"There is no folder {folder!r} for the database {self._database!r}, and Bide makes none. Make it "
                    f"(mkdir -p), or choose another path."
                ) from problem
            raise StoreUnavailableError(
                f"Cannot write the lock file {path!r}: {problem.strerror}. The folder of a database must be writable; "
                f"check its permissions, or choose another path."
            ) from problem
        self._files.append(file)
        return file

    def close(self) -> None:
        """Let go of the lock files, when nobody is inside; they stay, because others may hold them."""
        with self._mine:
            self._close_files()

    def _close_files(self) -> None:
        while self._files:
            os.close(self._files.pop())


def _leave_to_parent() -> None:
    """In a forked child: a copy of an open lock file would hold the gate shut after the parent's death."""
    for gate in list(_gates):
        gate._mine = Lock()
        gate._close_files()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
