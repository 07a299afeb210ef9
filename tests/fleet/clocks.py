"""Processes whose wall clock is wrong, or jumps, while their time passes as it does for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Self

from tools.needs import FAKETIME

SECONDS = 60


def wrong_clock(file: Path) -> Mapping[str, str]:
    """Return an environment in which the wall clock is ahead by what a file says, such as `+3600` or `-3600`."""
    library = FAKETIME.find()
    assert library is not None, FAKETIME.advice
    return {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "NO_FAKE_STAT": "1",
        # Nobody sets the clock by which a process knows how much time has passed; a machine cannot, either.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


class Jumps:
    """A clock that is set again and again, by hours, forwards and backwards."""

    def __init__(self, file: Path, seed: int, hours: int) -> None:
        self.file = file
        self.dice = Random(seed)
        self.hours = hours
        self.count = 0
        self._stop = Event()
        self._thread = Thread(target=self._jump, name="jumps")

    def __enter__(self) -> Self:
        self.set(0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(SECONDS)

    def _jump(self) -> None:
        while not self._stop.wait(0.2):
            self.set(self.dice.randint(-3600 * self.hours, 3600 * self.hours))
            self.count += 1

    def set(self, seconds: int) -> None:
        """Set the clock to be wrong by so much; whoever reads sees the old value or the new one."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n", encoding="utf-8")
        new.chmod(0o644)
        new.rename(self.file)
