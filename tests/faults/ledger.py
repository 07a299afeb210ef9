"""The world outside the store: each effect and each acknowledgement is a line, on the disk before anyone goes on.

Whatever the database says afterwards, this is what has happened.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple


class Effect(NamedTuple):
    """A call that reached the outside."""

    order: str
    what: str
    how: str
    """`idempotent` or `once`."""
    key: str


class Acknowledged(NamedTuple):
    """What a caller was told, and may rely on from then on."""

    order: str
    told: list[str]
    is_done: bool


class Ledger:
    """A file to which lines are added, by any number of processes, and from which none is ever taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def add_effect(self, effect: Effect) -> None:
        self._add({"effect": effect})

    def acknowledge(self, order: str, told: list[str], *, is_done: bool) -> None:
        self._add({"acknowledged": Acknowledged(order, told, is_done)})

    def add_refusal(self, order: str, error: Exception) -> None:
        """Note that a caller was told of a failure, and not of a result."""
        self._add({"refused": [order, type(error).__name__, str(error)]})

    def knows(self, key: str) -> bool:
        return any(effect.key == key for effect in self.effects)

    @property
    def effects(self) -> list[Effect]:
        return [Effect(*line["effect"]) for line in self._lines() if "effect" in line]

    @property
    def acknowledged(self) -> list[Acknowledged]:
        return [Acknowledged(*line["acknowledged"]) for line in self._lines() if "acknowledged" in line]

    @property
    def refusals(self) -> list[tuple[str, str, str]]:
        return [tuple(line["refused"]) for line in self._lines() if "refused" in line]

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def _add(self, line: dict[str, Any]) -> None:
        # One write to a file that is open for appending is one line, whoever else writes at the same time.
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, (json.dumps(line) + "\n").encode())
            os.fsync(file)
        finally:
            os.close(file)
