"""Regular expressions and choices that a condition may ask for, where it does not ask for an equal value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bide.errors import InterruptError
from bide.shape.automaton import Automaton
from bide.shape.regex_limits import Budget, RegexError
from bide.shape.regex_syntax import program_of

FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
"""The flags that a regular expression may have, by the letters that `(?ims)` uses for them."""

LONGEST_REGEX = 1000


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression that is searched for in a text; `flags` holds some of the letters a, i, m, s."""

    pattern: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any of some values."""

    values: tuple[Any, ...]


def regex(pattern: str | re.Pattern[str], flags: int = 0) -> Regex:
    r"""Ask for a text in which the regular expression is found, as `re.search` finds it.

    Flags are those of `re`: ASCII, IGNORECASE, MULTILINE and DOTALL. It is run in a time that grows with the text and
    no faster, whatever the pattern and the text are. So it cannot have back references, `(?=…)`, `(?<=…)` and the like.

    >>> regex(r"order [0-9]{4}", re.IGNORECASE)
    Regex(pattern='order [0-9]{4}', flags='i')
    """
    if isinstance(pattern, re.Pattern):
        flags |= pattern.flags
        pattern = pattern.pattern
    if not isinstance(pattern, str):
        raise InterruptError(f"A regular expression must be a text, not {type(pattern).__name__}.")
    unknown = re.RegexFlag(flags) & ~(re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.UNICODE)
    if unknown:
        raise InterruptError(
            f"The regular expression {pattern!r} has the flags {unknown!r}, which a condition cannot have. Use ASCII, "
            f"IGNORECASE, MULTILINE and DOTALL alone."
        )
    return checked_regex(Regex(pattern, "".join(letter for letter, flag in FLAGS.items() if flags & flag)))


def checked_regex(found: Regex) -> Regex:
    """Return the regular expression, or raise InterruptError when it cannot be run."""
    if len(found.pattern) > LONGEST_REGEX:
        raise InterruptError(f"A regular expression may have {LONGEST_REGEX} characters, not {len(found.pattern)}.")
    try:
        _automaton(found.pattern, found.flags)
    except RegexError as error:
        raise InterruptError(f"The regular expression {found.pattern!r} cannot be used: {error}.") from None
    return found


def searched(wanted: Regex, text: str) -> bool:
    """Tell whether the regular expression is found in the text; raises TooCostlyError when that takes too long."""
    return _automaton(wanted.pattern, wanted.flags).search(text, Budget())


def one_of(*values: Any) -> OneOf:
    """Ask for any of some values: `event("paid", match={"currency": one_of("EUR", "CHF")})`."""
    if not values:
        raise InterruptError("one_of() holds no value, so nothing could ever fit. Give the values, one_of('a', 'b').")
    return OneOf(values)


@lru_cache(maxsize=128)
def _automaton(pattern: str, flags: str) -> Automaton:
    return Automaton(program_of(pattern, flags))
