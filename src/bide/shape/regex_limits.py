"""What running regular expressions may cost, and how it is told that one cannot be run."""

from __future__ import annotations

MOST_WORK = 1_000_000
"""How many steps may be taken beside what is remembered, by one search for a `regex(…)`, or by all the searches in one
answer, where each character that is read counts as one, too: about half a second."""


class RegexError(Exception):
    """The regular expression cannot be read; it becomes the error of whoever asked."""


class TooCostlyError(Exception):
    """The search would take too long; it becomes the reason why nothing matches."""


class Budget:
    """How many steps are left for searches that belong together."""

    __slots__ = ("left",)

    def __init__(self, left: int = MOST_WORK) -> None:
        self.left = left

    def spend(self, steps: int) -> None:
        """Take some away; raises TooCostlyError when there are not so many left."""
        self.left -= steps
        if self.left < 0:
            raise TooCostlyError
