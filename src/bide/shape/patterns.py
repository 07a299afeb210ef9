"""The patterns of a schema, run so that no answer can make them take long.

An answer is checked inside a database transaction, under a lock, and comes from outside: with Python's `re`, thirty
letters put to `^(a+)+$` would stop every worker for minutes. So patterns are run as automata, each character once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from bide.shape.regex_limits import Budget

if TYPE_CHECKING:
    from bide.shape.automaton import Automaton

MAX_PATTERN_LENGTH = 1_000
MAX_MATCHED_LENGTH = 10_000
"""Longer strings are refused where a pattern applies."""

# An escape, a character class, or a bare dollar: only the last one is to be changed.
_DOLLARS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)

# What pydantic before 2.14 writes for a Decimal of so many digits. Its first alternative fits every text, so that the
# second one, which looks ahead in the midst of it, says nothing more.
_DIGITS_OF_A_DECIMAL = re.compile(
    re.escape(r"^(?!^[-+.]*$)[+-]?0*(?:") + r"(?P<first>\\d\{0,[0-9]+\})" + re.escape(r"|(?=[\d.]{1,") + r"[^|]*\)"
)


class Pattern:
    """A pattern that is ready to be searched for."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[tuple[Automaton, bool], ...]) -> None:
        self._parts = parts
        """What must be found, and what must not."""

    def search(self, text: str, budget: Budget) -> bool:
        """Tell whether the pattern is found somewhere in the text; raises TooCostlyError when that takes too long."""
        for automaton, is_wanted in self._parts:
            budget.spend(len(text))
            if automaton.search(text, budget) is not is_wanted:
                return False
        return True


@lru_cache(maxsize=128)
def compile_pattern(pattern: str) -> Pattern:
    """Read a pattern of a schema, in which `$` means the very end; raises RegexError when it cannot be run.

    In Python alone `$` also fits before a last newline; elsewhere "yes\\n" does not fit "^yes$".
    """
    from bide.shape.automaton import Automaton  # most programs have no patterns
    from bide.shape.regex_syntax import programs_of

    pattern = _DIGITS_OF_A_DECIMAL.sub(lambda found: rf"^(?!^[-+.]*$)[+-]?0*{found['first']}", pattern)
    pattern = _DOLLARS.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern)
    return Pattern(tuple((Automaton(program), is_wanted) for program, is_wanted in programs_of(pattern)))
