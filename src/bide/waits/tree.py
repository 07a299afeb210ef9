"""Whether a condition is satisfied by the leaves that are, and which of the others still matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bide.waits.wake import Wake

Satisfied = Mapping[int, Wake]
"""The leaves that are satisfied, by their numbers."""


def verdict(plain: Mapping[str, Any], satisfied: Satisfied) -> Wake | None:
    """Return what the wait comes to, or None as long as it is not satisfied.

    Of `any_of` it is the part that was satisfied first, by the instants of the leaves and then by their order, and
    `winner` is its label; where that part is itself an `any_of`, the labels of both, joined by a dot. Of `all_of` and
    `quorum`, `value` holds the Wake of each part that is satisfied. A single leaf is its own winner.
    """
    from bide.waits.judged_tree import judge_tree  # only those who wait for conditions pay for it
    from bide.waits.stored import from_plain

    return judge_tree(from_plain(plain), satisfied).wake


def open_leaves(plain: Mapping[str, Any], satisfied: Satisfied) -> set[int]:
    """Return the numbers of the leaves that may still matter: in no part that is satisfied already."""
    from bide.waits.judged_tree import judge_tree  # as above
    from bide.waits.stored import from_plain

    return judge_tree(from_plain(plain), satisfied).open
