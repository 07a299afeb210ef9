"""How a misfit is told: where it is, what was expected there, and what was given."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bide.errors import InvalidAnswerError


@dataclass(frozen=True, slots=True)
class KeyName:
    """The step of a path that means the key itself, not what lies under it."""

    name: str


Path = tuple[str | int | KeyName, ...]
Kind = Literal["type", "choice", "other"]

_WORDS = {None: "null", True: "true", False: "false"}
_SHOWN_CHARACTERS = 80


class _Short(reprlib.Repr):
    """A repr that stays one short line, whatever it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _SHOWN_CHARACTERS
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to print integers of more than 4300 digits: a hostile answer must not break its own refusal.
        return super().repr_int(x, level) if abs(x) < 10**_SHOWN_CHARACTERS else "a very long integer"


def show(value: object) -> str:
    """Show a value in one short line, as the person who answers would write it."""
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return _Short().repr(value)


def place(path: Path) -> str:
    """Write a path as `answer.lines[0].price`."""
    return "answer" + "".join(_step(step) for step in path)


def _step(step: str | int | KeyName) -> str:
    if isinstance(step, KeyName):
        return f" (key {show(step.name)})"
    if isinstance(step, str) and step.isidentifier() and len(step) <= _SHOWN_CHARACTERS:
        return f".{step}"
    return f"[{show(step)}]"


@dataclass(frozen=True, slots=True)
class Problem:
    """One way in which an answer does not fit."""

    path: Path
    text: str
    got: str = ""
    kind: Kind = "other"

    def __str__(self) -> str:
        return f"{place(self.path)}: {self.said}"

    @property
    def said(self) -> str:
        """What was expected, and what was given."""
        return f"{self.text}, got {self.got}" if self.got else self.text

    @property
    def pointer(self) -> str:
        """Where it is, as a JSON Pointer: `/lines/0/price`."""
        names = (step.name if isinstance(step, KeyName) else str(step) for step in self.path)
        return "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in names)


def refusal(problems: Iterable[object]) -> InvalidAnswerError:
    """Make the error that lists every problem, one per line."""
    lines = "".join(f"\n- {problem}" for problem in problems)
    return InvalidAnswerError(f"The answer does not fit what the question asks for; give one that does:{lines}")
