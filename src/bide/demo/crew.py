"""The demo's hand on its server: start one, see whether it lives, kill it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from bide.clock import elapsed
from bide.demo.api import Api, Refused
from bide.demo.server import SECRET

PATIENCE_SECONDS = 60.0


class ServerFailed(Exception):
    """A server ended by itself, where it should have gone on, or never began."""


class Death(NamedTuple):
    """How a server ended."""

    pid: int
    exit_code: int

    @property
    def is_kill(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.exit_code == -signal.SIGKILL


@dataclass(frozen=True)
class Files:
    """Where the demo lives: the database, the ledger of the outside world, and what servers complain about."""

    database: str
    ledger: str

    @property
    def log(self) -> str:
        """Where a server's own words go."""
        return f"{self.database}.server.log"


class Crew:
    """The one server of the demo, if it has one; each that follows listens at the same port."""

    def __init__(self, files: Files, port: int = 0) -> None:
        self.files = files
        self.api = Api(_free(port))
        self.secret = token_hex(16)
        self.deaths: list[Death] = []
        self._process: subprocess.Popen[bytes] | None = None

    def hire(self, pace: float, *, works: bool = True) -> int:
        """Start a server, a real process of its own, and wait until it is ready; return its number."""
        worker = "worker" if works else "none"
        command = [sys.executable, "-m", "bide.demo.server", self.files.database, self.files.ledger]
        command += [str(pace), str(self.api.port), worker]
        with open(self.files.log, "ab") as log:
            # In a session of its own: Ctrl-C reaches the demo alone, which then ends the server.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, SECRET: self.secret},
            )
        self._wait_until_ready()
        return self._process.pid

    def _wait_until_ready(self) -> None:
        deadline = elapsed() + PATIENCE_SECONDS
        while elapsed() < deadline:
            _ = self.pid
            try:
                self.api.get("/ready")
                return
            except (OSError, Refused):
                time.sleep(0.05)
        raise ServerFailed(f"The server was not ready within {PATIENCE_SECONDS:.0f} seconds. See {self.files.log}.")

    @property
    def death(self) -> Death | None:
        """How the server ended, if it has."""
        code = None if self._process is None else self._process.poll()
        return None if code is None or self._process is None else Death(self._process.pid, code)

    @property
    def pid(self) -> int | None:
        """The number of the server that lives; a server that ended by itself is an error."""
        death = self.death
        if death is not None:
            said = Path(self.files.log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise ServerFailed(
                f"Server {death.pid} ended by itself (exit code {death.exit_code}). {' '.join(said[-1:])}"
            )
        return None if self._process is None else self._process.pid

    def kill(self) -> Death:
        """Send SIGKILL, which no process can catch or prepare for."""
        assert self._process is not None, "there is nobody to kill"
        self._process.send_signal(signal.SIGKILL)
        return self.bury()

    def bury(self) -> Death:
        """Take note of a server that is gone, or about to be."""
        assert self._process is not None
        assert self._process.stdin is not None
        death = Death(self._process.pid, self._process.wait())
        self._process.stdin.close()
        self._process = None
        self.deaths.append(death)
        return death

    def dismiss(self) -> None:
        """Let the server end, gently at first; whatever happens, no process is left behind."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _free(wanted: int) -> int:
    """Return a port at which nobody listens: the one that is wanted, or any."""
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", wanted))
        except OSError:
            found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
