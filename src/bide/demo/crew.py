"""The demo's hand on its worker: start one, see whether it lives, kill it."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class WorkerFailed(Exception):
    """A worker ended by itself, where it should have worked on."""


class Death(NamedTuple):
    """How a worker ended."""

    pid: int
    exit_code: int

    @property
    def is_kill(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.exit_code == -signal.SIGKILL


@dataclass(frozen=True)
class Files:
    """Where the demo lives: the database, the ledger of the outside world, and what workers complain about."""

    database: str
    ledger: str

    @property
    def log(self) -> str:
        """Where a worker's own words go."""
        return f"{self.database}.worker.log"


class Crew:
    """The one worker of the demo, if it has one."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.deaths: list[Death] = []
        self._process: subprocess.Popen[bytes] | None = None

    def hire(self, pace: float) -> int:
        """Start a worker, a real process of its own; return its number."""
        command = [sys.executable, "-m", "bide.demo.worker", self.files.database, self.files.ledger, str(pace)]
        with open(self.files.log, "ab") as log:
            # In a session of its own: Ctrl-C reaches the demo alone, which then ends the worker.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=log, start_new_session=True)
        return self._process.pid

    @property
    def pid(self) -> int | None:
        """The number of the worker that lives; a worker that ended by itself is an error."""
        if self._process is None:
            return None
        code = self._process.poll()
        if code is not None:
            said = Path(self.files.log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise WorkerFailed(f"Worker {self._process.pid} ended by itself (exit code {code}). {' '.join(said[-1:])}")
        return self._process.pid

    def kill(self) -> Death:
        """Send SIGKILL, which no process can catch or prepare for."""
        assert self._process is not None, "there is nobody to kill"
        self._process.send_signal(signal.SIGKILL)
        death = Death(self._process.pid, self._process.wait())
        self._close()
        self.deaths.append(death)
        return death

    def dismiss(self) -> None:
        """Let the worker end, gently at first; whatever happens, no process is left behind."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process = None
