"""A lock between processes: one of them writes to a SQLite file at a time.

SQLite before 3.51.3 can damage a database in WAL mode when one connection commits while another one runs a checkpoint
(the "WAL-reset bug"), and Debian 12 ships 3.40.1. So every process of Bide commits, checkpoints, opens and closes only
while it holds this gate. It also takes the place of SQLite's busy handler, which starves the unlucky: those who wait
here try again soon, and at random.
"""

from __future__ import annotations

import os
import random
import time
from threading import Lock, get_ident
from types import TracebackType

from bide.errors import StoreBusyError, StoreUnavailableError

try:
    import fcntl
except ImportError:  # pragma: no cover — Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE_SECONDS = 60.0
"""How long a writer waits for the others before it gives up."""


class Gate:
    """The lock file beside a database."""

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
        self._holder: int | None = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            raise StoreUnavailableError(
                f"Cannot write the lock file {path!r}: {problem.strerror}. The database's folder must exist and be "
                f"writable; check its permissions, or choose another path."
            ) from problem

    def __enter__(self) -> None:
        # A thread that finds itself inside was sent out by a signal before it could close the gate behind it.
        if self._holder != get_ident():
            self._mine.acquire()
            self._holder = get_ident()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_or_leave()
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._holder = None
            self._mine.release()

    def _wait_or_leave(self) -> None:
        try:
            self._wait()
        except BaseException:
            self._leave()
            raise

    def _wait(self) -> None:
        until = time.monotonic() + self.patience
        pause = 0.0002
        while time.monotonic() < until:
            # Random, so that several waiting processes do not knock in step.
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 1.5, 0.01)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                continue
        raise StoreBusyError(
            f"Another process has held {self.path!r} for {self.patience:.0f} seconds. Nothing was written. Look for a "
            f"stopped or very slow process that uses the same database; a step(effect='tx') must be short."
        )

    def close(self) -> None:
        """Let go of the lock file; it stays, because others may hold it."""
        os.close(self._file)
