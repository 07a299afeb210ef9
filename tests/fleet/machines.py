"""A fleet of worker processes, some on machines of their own, that can be killed, stopped and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Self, TypedDict, Unpack

from tests.fleet.place import Place
from tests.fleet.programs import nursery
from tests.store.waiting import holds_at_last

SECONDS = 60


Options = Mapping[str, Any]
"""How a worker works, as `Bide.worker` takes it."""


class Lot(TypedDict, total=False):
    """What is different for a process."""

    machine: str
    """The name of its machine: nobody elsewhere can see whether it lives but by its lease."""
    network: str
    """The network that it lives in."""
    point: str
    """Where it dies."""
    trace: str
    """Where it writes down what it passes."""


class Fleet:
    """Processes that are born in one nursery, over one place."""

    def __init__(
        self, place: Place, graphs: str = "tests.fleet.parcel:build", environment: Mapping[str, str] | None = None
    ) -> None:
        self.place = place
        self.graphs = graphs
        self.pids: dict[int, int] = {}
        """Who lives: number and pid."""
        self.kills = 0
        self._talk = Lock()
        self._nursery = subprocess.Popen(
            [sys.executable, str(nursery.__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for number in list(self.pids):
            self.kill(number)
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.wait(SECONDS)
        self._nursery.stdout.close()

    # ── Being born ─────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, number: int, *, place: Place | None = None, options: Options, **lot: Unpack[Lot]) -> int:
        """Start a worker; `place` is ours as it is seen from where it lives."""
        return self.live("tests.fleet.lives:work", number, [place or self.place, self.graphs, options], **lot)

    def live(self, life: str, number: int, given: list[Any], **lot: Unpack[Lot]) -> int:
        """Start a process that does what is told in `tests/fleet`; return its pid."""
        says = str(Path(self.place.folder) / f"said-{number}.txt")
        pid = self.pids[number] = self._ask("born", {"life": life, "given": given, "says": says, **lot})
        return pid

    def _ask(self, *words: Any) -> Any:
        with self._talk:
            assert self._nursery.stdin is not None
            assert self._nursery.stdout is not None
            self._nursery.stdin.write(json.dumps(words) + "\n")
            return json.loads(self._nursery.stdout.readline())

    # ── Ending, and worse ──────────────────────────────────────────────────────────────────────────────────────────

    def kill(self, number: int) -> None:
        """End a process without a word."""
        os.kill(self.pids[number], signal.SIGKILL)
        self.wait(number)
        self.kills += 1

    def terminate(self, number: int) -> None:
        """Ask a worker to stop."""
        os.kill(self.pids[number], signal.SIGTERM)

    def freeze(self, number: int) -> None:
        """Stop a process in the middle of whatever it does."""
        os.kill(self.pids[number], signal.SIGSTOP)
        assert holds_at_last(lambda: self._state(number) == "T")

    def _state(self, number: int) -> str:
        stat = Path(f"/proc/{self.pids[number]}/stat").read_text(encoding="utf-8")
        return stat.rpartition(")")[2].split()[0]

    def thaw(self, number: int) -> None:
        """Let it go on as if nothing had been."""
        os.kill(self.pids[number], signal.SIGCONT)

    def wait(self, number: int) -> int:
        """Wait for the end of a process, and return how it ended; a signal is a negative number."""
        return int(self._ask("wait", self.pids.pop(number)))

    # ── What they said ─────────────────────────────────────────────────────────────────────────────────────────────

    def said(self, number: int) -> str:
        """Return what a worker has logged."""
        path = Path(self.place.folder) / f"said-{number}.txt"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def said_by_all(self) -> str:
        """Return what all have logged."""
        return "\n".join(path.read_text(encoding="utf-8") for path in Path(self.place.folder).glob("said-*.txt"))
