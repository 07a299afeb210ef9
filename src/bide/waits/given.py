"""What the arguments of conditions may be: each is returned as it is kept, or refused with what to give instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bide.errors import InterruptError
from bide.waits.addresses import only_address_of
from bide.waits.durations import milliseconds
from bide.waits.globs import LONGEST_GLOB
from bide.waits.patterns import Regex, checked_regex, regex
from bide.waits.texts import LONGEST_NAME, is_name

Pattern = str | Regex
"""A glob, or a regular expression."""
GivenPattern = str | Regex | re.Pattern[str]

LONGEST_ID = 1000
MOST_OPTIONS = 100


def pattern_of(given: GivenPattern | None, what: str) -> Pattern | None:
    """Return a pattern for a part of a mail."""
    if given is None:
        return None
    if isinstance(given, Regex):
        return checked_regex(given)
    if isinstance(given, re.Pattern):
        return regex(given)
    if not isinstance(given, str) or not given or len(given) > LONGEST_GLOB:
        raise InterruptError(
            f"email({what}={given!r:.100}) is no pattern. Give a glob of 1 to {LONGEST_GLOB} characters such as "
            f"'Re: *', or regex('…')."
        )
    return given


def address_pattern_of(given: GivenPattern | None, what: str) -> Pattern | None:
    """Return a pattern for an address of a mail."""
    pattern = pattern_of(given, what)
    if not isinstance(pattern, str) or not any(sign in pattern for sign in '<>" '):
        return pattern
    # "Ann <ann@example.org>", as programs keep it: the name is not looked at in mails, so it is not asked for either.
    address = only_address_of(pattern)
    if address is None:
        raise InterruptError(
            f"email({what}={pattern!r}) holds no single address. Give a bare address or a glob of one, such as "
            f"'ann@example.org' or '*@example.org'; display names are not looked at, since anybody may write anything "
            f"there."
        )
    return address


def message_id_of(given: object) -> str:
    """Return the id of a mail, without its angle brackets."""
    if not isinstance(given, str) or not is_name(given, LONGEST_ID) or not bare_id(given):
        raise InterruptError(f"email(in_reply_to={given!r:.100}) is no Message-ID, such as '<1234@example.org>'.")
    return bare_id(given)


def bare_id(given: str) -> str:
    """Return a Message-ID without its angle brackets."""
    return given.strip().removeprefix("<").removesuffix(">").strip()


def name_of(given: object, what: str) -> str:
    """Return the name of an event or a webhook."""
    if not isinstance(given, str) or not is_name(given):
        raise InterruptError(
            f"{what}({given!r:.100}) has no name that could be waited for. Give a text of 1 to {LONGEST_NAME} "
            f"characters without control characters, such as {what}('order.paid')."
        )
    return given


def names_of(given: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the options or the people of an approval."""
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not is_name(name):
            raise InterruptError(
                f"approval({what}=…) holds {name!r:.100}; give short texts without control characters."
            )
    if len(set(names)) < len(names) or len(names) > MOST_OPTIONS:
        raise InterruptError(
            f"approval({what}={names!r:.200}) says something twice, or more than {MOST_OPTIONS} things."
        )
    return names


def lookback_of(given: object) -> int:
    """Return how far back a condition looks, in milliseconds."""
    return 0 if given is None else milliseconds(given, "lookback")


def yes_or_no(given: object) -> bool:
    """Return whether a fact is for one alone."""
    if not isinstance(given, bool):
        raise InterruptError(f"exclusive={given!r} must be True or False.")
    return given


def schema_of(given: object) -> dict[str, Any]:
    """Return a type or a JSON Schema as the latter."""
    # A quarter of the time of `import bide`, which those who wait for a clock need not spend.
    from bide.shape import json_schema

    return json_schema(given)
