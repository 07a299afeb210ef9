"""Servers and workers in processes of their own, which a test kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tests.server.running import until

PROGRAM = Path(__file__).parent / "programs" / "nursery.py"


class Served(NamedTuple):
    """A server in a process."""

    pid: int
    url: str

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


class Nursery:
    """Gives birth to processes; all of them die with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._numbers = count()
        self._alive: set[int] = set()

    def server(self, database: str, *, port: int = 0, point: str = "", trace: str = "", **settings: Any) -> Served:
        """Start a server, and return when it can be called."""
        address = self.folder / f"address-{next(self._numbers)}"
        pid = self._born("be_a_server", [database, str(address), port, settings], point=point, trace=trace)
        until(address.exists, f"a server listens: {self.said()}", 60)
        return Served(pid, address.read_text(encoding="utf-8"))

    def worker(self, database: str) -> int:
        """Start a worker."""
        return self._born("be_a_worker", [database])

    def _born(self, life: str, given: list[Any], **more: str) -> int:
        told = {"life": f"tests.server.streams.lives:{life}", "given": given, "says": str(self._says), **more}
        pid = int(self._ask("born", told))
        self._alive.add(pid)
        return pid

    def kill(self, pid: int, number: int = signal.SIGKILL) -> int:
        """Send a signal, and return how the process ended."""
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        return self.ended(pid)

    def ended(self, pid: int) -> int:
        """Wait for the end of a process; a signal is a negative number."""
        self._alive.discard(pid)
        return int(self._ask("wait", pid))

    @property
    def _says(self) -> Path:
        return self.folder / "said.txt"

    def said(self) -> str:
        """What they had to say."""
        return self._says.read_text(encoding="utf-8")[-3000:] if self._says.exists() else ""

    def _ask(self, *words: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        return json.loads(self.process.stdout.readline())

    def leave(self) -> None:
        for pid in list(self._alive):
            self.kill(pid)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@contextmanager
def opened_nursery(folder: Path) -> Iterator[Nursery]:
    """A nursery, and at the end nobody is left of it."""
    nursery = Nursery(folder)
    try:
        yield nursery
    finally:
        nursery.leave()
