"""Goes through the tree of a condition, and says of each part what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from bide.waits.conditions import Condition
from bide.waits.groups import AnyOf, Group
from bide.waits.wake import Wake


class Judged(NamedTuple):
    """What became of a part of the tree."""

    wake: Wake | None
    open: set[int]
    size: int
    """How many leaves it has."""


def judge_tree(condition: Condition, satisfied: Mapping[int, Wake], label: str = "", first: int = 0) -> Judged:
    """Say what a part comes to whose first leaf has this number."""
    if not isinstance(condition, Group):
        wake = satisfied.get(first)
        found = None if wake is None else replace(wake, winner=label or condition.kind)
        return Judged(found, {first} if found is None else set(), 1)
    judged: list[Judged] = []
    number = first
    for own, part in condition.parts:
        judged.append(judge_tree(part, satisfied, own, number))
        number += judged[-1].size
    wake = _wake_of(condition, [one.wake for one in judged])
    still = set().union(*(one.open for one in judged)) if wake is None else set()
    return Judged(wake, still, number - first)


def _wake_of(group: Group, wakes: list[Wake | None]) -> Wake | None:
    """Return what a group comes to, given what its parts came to."""
    there = [(label, part, wake) for (label, part), wake in zip(group.parts, wakes, strict=True) if wake is not None]
    if len(there) < group.needed:
        return None
    there_first = sorted(there, key=lambda one: _moment(one[2]))  # stable: of one instant, the earlier part
    if isinstance(group, AnyOf):
        label, part, wake = there_first[0]
        return replace(wake, winner=f"{label}.{wake.winner}" if isinstance(part, AnyOf) else label)
    decisive = there_first[group.needed - 1][2]
    return Wake({label: wake for label, _, wake in there}, kind=group.kind, at=decisive.at)


def _moment(wake: Wake) -> tuple[bool, int]:
    return wake.at is None, wake.at or 0
