"""The state that most complaints need, and the world outside, which notices every effect."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

from bide import Command, Interrupt


class State(TypedDict, total=False):
    name: Any
    colour: Any
    log: Annotated[list[Any], operator.add]


class World:
    """Remembers whatever was done to it."""

    def __init__(self) -> None:
        self.effects: list[Any] = []

    def do(self, what: Any) -> str:
        """Have an effect that cannot be taken back."""
        self.effects.append(what)
        return f"{what} done"

    @property
    def counts(self) -> Counter[Any]:
        """How often each effect was had."""
        return Counter(self.effects)


def answer(question: Interrupt, value: Any) -> Command:
    """The answer to one question, by its id."""
    return Command(resume={question.id: value})
