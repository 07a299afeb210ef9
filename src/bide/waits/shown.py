"""A condition as people see it in an inbox, and as it is told apart from another when its node runs again."""

from __future__ import annotations

from typing import Any

from bide.waits.conditions import Condition
from bide.waits.stored import to_plain

_MOMENTS = ("instant", "ms", "lookback", "exclusive")
"""What may well be another instant when the node runs again, though the question is the same."""


def shown(condition: Condition) -> dict[str, Any]:
    """Return what a thread waits for, without what changes from one replay to the next."""
    return {"waiting_for": _shown(to_plain(condition))}


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shown(part) for key, part in value.items() if key not in _MOMENTS}
    if isinstance(value, list):
        return [_shown(part) for part in value]
    return value
