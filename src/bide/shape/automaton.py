"""Runs a regular expression as an automaton, which stands in all its states at once.

Python's own `re` tries one way after another: `(a+)+b` on thirty letters takes minutes, and `.*.*x` on a long mail as
well. A fact is matched inside a database transaction, under a lock, so a mail must not be able to hold it. Here each
character is looked at once. What was worked out for a set of states and a character is kept, so that most characters
cost no more than finding that.
"""

from __future__ import annotations

import re
from typing import Any

from bide.shape.regex_limits import Budget
from bide.shape.regex_syntax import Program

_MOST_REMEMBERED = 100_000
"""How many states one automaton remembers, in all the sets of them: a few megabytes."""

States = frozenset[int]
_NOWHERE = ()
_Here = tuple[bool, ...]
"""What is known of a place between two characters."""


class _Reached:
    """What a set of states leads to without reading a character, and with those characters that were tried."""

    __slots__ = ("following", "is_found", "waiting")

    def __init__(self, is_found: bool, waiting: list[tuple[Any, int]]) -> None:
        self.is_found = is_found
        self.waiting = waiting
        """The characters that would lead on, by the number of their pattern, and where to."""
        self.following: dict[str, States] = {}


class Automaton:
    """Searches texts for one regular expression."""

    def __init__(self, program: Program) -> None:
        self._steps = program.steps
        self._ones = program.ones
        self._leads = tuple((step.what, number + 1) for number, step in enumerate(program.steps))
        self._is_multiline = bool(program.flags & re.MULTILINE)
        self._word = re.compile(r"\w", program.flags)
        places = {step.what for step in program.steps if step.kind == "place"}
        self._looks_around = bool(places)
        self._looks_at_words = not places.isdisjoint({r"\b", r"\B"})
        self._reached: dict[tuple[States, _Here], _Reached] = {}
        self._known: dict[States, States] = {}
        self._remembered = 0

    def search(self, text: str, budget: Budget) -> bool:
        """Tell whether the regular expression is found somewhere in the text; raises TooCostlyError past the budget."""
        states: States = frozenset({0})
        for position in range(len(text) + 1):
            here = self._place(text, position) if self._looks_around else _NOWHERE
            reached = self._reached.get((states, here))
            if reached is None:
                budget.spend(len(self._steps))
                reached = self._reached[states, here] = self._reach(states, here)
            if reached.is_found:
                return True
            if position == len(text):
                break
            following = reached.following.get(text[position])
            if following is None:
                budget.spend(len(reached.waiting) + 1)
                following = self._read(reached, text[position])
            states = following
        return False

    def _read(self, reached: _Reached, character: str) -> States:
        fitting = {number for number, _ in reached.waiting if self._ones[number].match(character)}
        # The first step is always among them: the expression may begin at any character.
        states = frozenset({0, *(to for number, to in reached.waiting if number in fitting)})
        self._remembered += len(states)
        if self._remembered > _MOST_REMEMBERED:
            self._reached.clear()
            self._known.clear()
            self._remembered = 0
        # The same object for equal sets: to find it again, nobody has to compare hundreds of states.
        reached.following[character] = same = self._known.setdefault(states, states)
        return same

    def _reach(self, states: States, here: _Here) -> _Reached:
        seen: set[int] = set()
        left = list(states)
        is_found = False
        waiting: list[tuple[Any, int]] = []
        while left:
            number = left.pop()
            if number in seen:
                continue
            seen.add(number)
            step = self._steps[number]
            if step.kind == "found":
                is_found = True
            elif step.kind == "one":
                waiting.append(self._leads[number])
            elif step.kind == "place":
                left += [number + 1] if here[_PLACES[str(step.what)]] else []
            else:
                left += [number + to for to in step.to]
        return _Reached(is_found, waiting)

    def _place(self, text: str, position: int) -> _Here:
        before, after = text[position - 1 : position], text[position : position + 1]
        is_start, is_end = position == 0, position == len(text)
        if self._is_multiline:
            opens, closes = is_start or before == "\n", is_end or after == "\n"
        else:
            opens, closes = is_start, is_end or (after == "\n" and position == len(text) - 1)
        is_edge = self._looks_at_words and bool(self._word.match(before)) != bool(self._word.match(after))
        return (opens, closes, is_start, is_end, is_edge, not is_edge and bool(text))


_PLACES = {"^": 0, "$": 1, r"\A": 2, r"\Z": 3, r"\b": 4, r"\B": 5}
