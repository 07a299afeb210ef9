"""What a wait needs as a tree, with a tick at every part that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bide.runtime.views import Wait
from bide.runtime.words import waiting_for
from bide.waits.wake import Wake


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of what a wait needs."""

    label: str
    kind: str
    words: str
    is_done: bool
    by: str | None = None
    when: datetime | None = None
    parts: tuple[Branch, ...] = ()
    leaves: int = 1


_GROUPS = {"any_of": "the first of these", "all_of": "all of these"}


def tree_of(wait: Wait) -> Branch | None:
    """Return the tree of a wait that needs several things; None when it needs one."""
    condition = wait.condition
    if condition is None or not condition.get("of"):
        return None
    return _branch("", condition, wait.satisfied, 0, int(wait.created_at.timestamp() * 1000))


def _branch(label: str, plain: Mapping[str, Any], satisfied: Mapping[int, Wake], first: int, since: int) -> Branch:
    kind = str(plain.get("kind"))
    if "of" not in plain:
        wake = satisfied.get(first)
        words = waiting_for("call", None, plain, since)
        by, when = (None, None) if wake is None else (wake.by, wake.when)
        return Branch(label, "time" if kind in ("after", "at") else kind, words, wake is not None, by, when)
    parts: list[Branch] = []
    number = first
    for own, part in plain["of"]:
        parts.append(_branch(str(own), part, satisfied, number, since))
        number += parts[-1].leaves
    done = sum(part.is_done for part in parts)
    needed = {"any_of": 1, "all_of": len(parts)}.get(kind, plain.get("k", 1))
    words = _GROUPS.get(kind, f"{needed} of these {len(parts)}")
    return Branch(label, kind, words, done >= needed, parts=tuple(parts), leaves=number - first)
