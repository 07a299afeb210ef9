"""Waits in words: a row of the inbox, and a question with what can be answered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bide.cli import words
from bide.cli.finding import short
from bide.cli.tables import Column, facts, heading
from bide.cli.wanted import ways

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from bide.runtime.views import Wait


def columns() -> list[Column]:
    """Return the columns of the inbox."""
    return [
        Column("wait"),
        Column("thread"),
        Column("waiting for", is_whole=False),
        Column("who", from_width=110),
        Column("since"),
        Column("until"),
    ]


def row(wait: Wait, now: datetime) -> list[str | Text]:
    """Show a wait as a row of the inbox."""
    from rich.text import Text

    left = words.until(wait.deadline, now)
    return [
        Text(short(wait.id), style="bold"),
        words.line(wait.thread_id),
        words.line(wait.waiting_for),
        words.line(", ".join(wait.assignees)) or words.NOTHING,
        words.ago(wait.created_at, now),
        Text(left, style="red" if left.endswith("over") else ""),
    ]


def question(wait: Wait, now: datetime) -> RenderableType:
    """Show what is asked, what may be answered, and how to do it."""
    from rich.console import Group
    from rich.text import Text

    told: list[tuple[str, str | Text]] = [
        ("thread", f"{words.line(wait.thread_id)} ({wait.graph}, node {wait.node})"),
        ("waits for", words.line(wait.waiting_for)),
        ("since", words.ago(wait.created_at, now)),
    ]
    # What wait_for() asks is what it waits for, and that was told.
    if wait.question is not None and not (isinstance(wait.question, dict) and wait.question.keys() == {"waiting_for"}):
        told.append(("question", words.value(wait.question)))
    if wait.assignees:
        told.append(("for", words.line(", ".join(wait.assignees))))
    if wait.deadline is not None:
        told.append(("until", f"{words.stamp(wait.deadline)} ({words.until(wait.deadline, now)})"))
    if wait.status.value != "open":
        told.append(("status", f"{wait.status.value}, {words.ago(wait.answered_at, now)}"))
    leaves = decisions(wait)
    schema = schema_of(wait, None)
    if schema is not None:
        told.append(("an answer is", words.value(_in_words(schema))))
    if len(leaves) > 1:
        told.append(("decisions", ", ".join(leaf.label for leaf in leaves)))
    bring = ways(wait)
    if bring is None:
        how, lines = "Answer it", [Text.assemble(("bide answer ", "bold"), *_example(wait, schema, leaves))]
    else:
        how, lines = "It asks nobody", [Text(one, style="bold") for one in (*bring, f"bide explain {short(wait.id)}")]
    return Group(
        Text(wait.title or f"Wait {short(wait.id)}", style="bold"), facts(told, indent=2), heading(how), *lines
    )


def _in_words(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return "one of " + ", ".join(words.value(option) for option in schema["enum"])
    return schema


def _example(wait: Wait, schema: dict[str, Any] | None, leaves: Sequence[Any]) -> list[tuple[str, str]]:
    options = (schema or {}).get("enum") or []
    value = words.value(options[0]) if options else "VALUE"
    leaf = f" --leaf {leaves[0].label}" if len(leaves) > 1 else ""
    return [(f"{short(wait.id)} {value}{leaf}", "bold")]


def decisions(wait: Wait) -> list[Any]:
    """Return the parts of a wait that people decide."""
    if wait.condition is None:
        return []
    from bide.waits.leaves import leaves

    return [leaf for leaf in leaves(wait.condition, 0) if leaf.kind == "approval"]


def schema_of(wait: Wait, leaf: str | None) -> dict[str, Any] | None:
    """Return what an answer looks like, as JSON Schema; None when anything will do."""
    found = [one for one in decisions(wait) if leaf is None or one.label == leaf]
    if len(found) == 1:
        from bide.waits.answers import answer_schema

        return answer_schema(found[0].plain)
    return wait.schema


def fitting(wait: Wait, leaf: str | None, readings: Sequence[Any]) -> Any:
    """Return the first reading of what was typed that fits the question: `5` is a number, or the text of an option."""
    from bide.shape import problems

    schema = schema_of(wait, leaf)
    if schema is not None:
        for reading in readings:
            if not problems(reading, schema):
                return reading
    return readings[0]
