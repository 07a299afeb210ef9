"""Whether a fact is what a leaf waits for, and why.

It fails closed: what is missing, of the wrong type, too long or damaged is no match, and the reasons say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bide.errors import CorruptDataError
from bide.waits.facts import Fact


class Match(NamedTuple):
    """Whether a fact fits, and a sentence for each thing that was looked at."""

    fits: bool
    reasons: tuple[str, ...]


def match(leaf_plain: Mapping[str, Any], fact: Fact) -> Match:
    """Put a stored leaf to a fact. Every criterion is looked at, because `explain` tells them all."""
    from bide.waits.judging import judge  # an eighth of the time of `import bide`, for those who wait for facts
    from bide.waits.stored import from_plain

    try:
        found = list(judge(from_plain(leaf_plain), fact))
    except CorruptDataError as error:
        return Match(False, (str(error),))
    except RecursionError:
        return Match(False, ("the fact nests too deep to be looked at",))
    return Match(bool(found) and all(fits for fits, _ in found), tuple(reason for _, reason in found))
