"""Answers as people give them: which part of a wait they are for, and whether they fit."""

from __future__ import annotations

from typing import Any

from bide.errors import AmbiguousResumeError, InvalidAnswerError, UnknownInterruptError
from bide.shape import misfits
from bide.shape.plain import NotPlainError, to_plain
from bide.store.queue_rows import WaitView
from bide.waits.answers import answer_schema
from bide.waits.leaves import Leaf, leaves


def plain_of(value: Any) -> Any:
    """Return an answer as whoever has only the database can read it; the node makes its own types of it again."""
    try:
        return to_plain(value)
    except NotPlainError:
        return value  # the codec will say what is wrong with it


def leaf_for_people(row: WaitView, label: str | None) -> Leaf | None:
    """Find the decision that an answer is for; None when it is for the wait as a whole, whatever that waits for."""
    assert row.needs.condition is not None
    every = leaves(row.needs.condition, row.created_at)
    if label is not None:
        found = next((leaf for leaf in every if leaf.label == label), None)
        if found is None:
            raise UnknownInterruptError(
                f"Wait {row.wait_id} has no part {label!r}. It has: {', '.join(leaf.label for leaf in every)}."
            )
        return found
    decisions = [leaf for leaf in every if leaf.kind == "approval"]
    if len(decisions) > 1:
        raise AmbiguousResumeError(
            f"Wait {row.wait_id} needs several decisions: {', '.join(leaf.label for leaf in decisions)}. Say which one "
            f"this is: leaf='{decisions[0].label}'."
        )
    if not decisions and row.needs.condition.get("kind") in ("all_of", "quorum"):
        raise AmbiguousResumeError(
            f"Wait {row.wait_id} needs several parts, and one answer cannot stand for all of them. Say which part this "
            f"is: leaf='{every[0].label}'. It has: {', '.join(leaf.label for leaf in every)}."
        )
    return decisions[0] if decisions else None


def check_answer(row: WaitView, leaf: Leaf | None, value: Any) -> None:
    """Refuse an answer that does not fit what is asked for; the wait stays open."""
    schema = row.needs.schema if leaf is None else answer_schema(leaf.plain) if leaf.kind == "approval" else None
    found = misfits(value, dict(schema)) if schema is not None else []
    if found:
        listed = "\n".join(f"  - {problem}" for problem in found)
        raise InvalidAnswerError(
            f"The answer to wait {row.wait_id} (node {row.node!r}) does not fit:\n{listed}\n"
            f"Nothing was written; it is still open.",
            misfits=tuple(found),
        )
