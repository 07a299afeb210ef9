"""The parent's hand on its workers: start one, hear what it tells, kill it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from bide.clock import Instant, SystemClock


class WorkerFailed(Exception):
    """A worker ended by itself, where it should have told something more."""


class Death(NamedTuple):
    """How a worker ended, and when."""

    pid: int
    at: Instant
    exit_code: int

    @property
    def is_kill(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.exit_code == -signal.SIGKILL


@dataclass(frozen=True)
class Files:
    """Where an order lives: the database, and the ledger of the outside world."""

    database: str
    ledger: str


class Worker:
    """A real child process that drives one order."""

    def __init__(self, files: Files, order: str, what: str, *words: str) -> None:
        command = [sys.executable, "-m", "bide.demo.worker", files.database, files.ledger, order, what, *words]
        # In a session of its own: Ctrl-C reaches the parent alone, which then ends the worker.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self.process.pid

    def told(self, *until: str) -> Iterator[dict[str, Any]]:
        """Yield what the worker tells, up to and including the first of the kinds in `until`."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told = json.loads(line)
            yield told
            if told["what"] in until:
                return
        code = self.process.wait()
        raise WorkerFailed(f"Worker {self.pid} ended with exit code {code} before it told: {' or '.join(until)}.")

    def kill(self) -> Death:
        """Send SIGKILL, which no process can catch or prepare for."""
        self.process.send_signal(signal.SIGKILL)
        code = self.process.wait()
        return Death(self.pid, SystemClock().now(), code)

    def let_go(self) -> None:
        """Close the pipe it waits on, so that it ends by itself."""
        try:
            self.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            raise WorkerFailed(f"Worker {self.pid} was done and did not end.") from None
        if self.process.returncode != 0:
            raise WorkerFailed(f"Worker {self.pid} was done and ended with exit code {self.process.returncode}.")


@contextmanager
def worker(files: Files, order: str, what: str, *words: str) -> Iterator[Worker]:
    """Run a worker for the length of a block; whatever happens, no process is left behind."""
    started = Worker(files, order, what, *words)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.process.wait()
        for pipe in (started.process.stdin, started.process.stdout):
            assert pipe is not None
            pipe.close()
