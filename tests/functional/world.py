"""The world outside, which counts what was done to it; and short ways to answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bide import Command, Interrupt


class World:
    """Remembers every effect, in the order in which they happened."""

    def __init__(self) -> None:
        self.effects: list[str] = []

    def do(self, what: str) -> str:
        """Have an effect, and return something that tells it."""
        self.effects.append(what)
        return f"{what} done"

    @property
    def counts(self) -> Counter[str]:
        """How often each effect happened."""
        return Counter(self.effects)


def answers(*pairs: tuple[Interrupt, Any]) -> Command[Any]:
    """Answer these questions, each by its id."""
    return Command(resume={question.id: answer for question, answer in pairs})


def asked(result: Any) -> list[Any]:
    """What a paused call asks, in order."""
    return [question.value for question in result.interrupts]
