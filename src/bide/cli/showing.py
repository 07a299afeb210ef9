"""`bide show`: a thread as it stands, what it waits for, and how it came there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bide.cli import words
from bide.cli.desk import Desk
from bide.cli.options import Thread, command

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from bide.cli.happenings import Happening
    from bide.runtime.views import Thread as ThreadView
    from bide.runtime.views import Wait


@command
def show(
    desk: Desk,
    thread: Thread,
    most: Annotated[int, typer.Option("--most", "-n", min=1, help="Show the newest so many lines.")] = 200,
) -> None:
    """A thread: how it stands, what it waits for, and its timeline of steps, waits, answers and errors."""
    from bide.cli.finding import find_thread
    from bide.cli.happenings import timeline

    app = desk.app
    thread_id = find_thread(desk, thread)
    found = app.get(thread_id)
    lines = timeline(app, thread_id, most=most)
    children = list(app.children(thread_id))
    document = {"thread": found, "runs": app.runs(thread_id), "children": children, "timeline": lines}
    if desk.as_json:
        desk.tell(document)
        return
    desk.tell(document, *_head(found, children, desk.now), *_open(found, desk.now), *_lines(lines), *_next(found))


def _head(found: ThreadView, children: Sequence[str], now: datetime) -> list[RenderableType]:
    from rich.text import Text

    from bide.cli.tables import facts, status

    title = Text.assemble((words.line(found.thread_id), "bold"), " · ", found.graph, " · ", status(found.status))
    told: list[tuple[str, str | Text]] = [
        ("began", f"{words.stamp(found.created_at)} ({words.ago(found.created_at, now)})")
    ]
    if found.updated_at is not None and found.updated_at != found.created_at:
        told.append(("changed", f"{words.stamp(found.updated_at)} ({words.ago(found.updated_at, now)})"))
    told += _run_facts(found, now)
    if isinstance(found.values, Mapping):
        told += [
            ("state" if not number else "", f"{key} = {words.value(value, 200)}")
            for number, (key, value) in enumerate(found.values.items())
        ]
    if found.next:
        told.append(("next", ", ".join(found.next)))
    if found.parent:
        told.append(("parent", words.line(found.parent)))
    if children:
        told.append(("children", words.line(", ".join(children))))
    if found.error:
        told.append(("error", Text(words.safe(found.error), style="red")))
    return [title, facts(told, indent=2)]


def _run_facts(found: ThreadView, now: datetime) -> list[tuple[str, str | Text]]:
    run = found.run
    if run is None:
        return []
    told: list[tuple[str, str | Text]] = []
    if run.status == "queued" and run.due_at is not None:
        told.append(("due", f"{words.stamp(run.due_at)} ({words.until(run.due_at, now)})"))
    if run.queue != "default" or run.version or run.priority:
        parts = [run.queue, f"version {run.version}" if run.version else "", f"priority {run.priority}"]
        told.append(("queue", ", ".join(filter(None, parts))))
    if run.crashes:
        told.append(("crashes", f"{run.crashes} of its workers were lost"))
    return told


def _open(found: ThreadView, now: datetime) -> list[RenderableType]:
    """Show what it waits for, and how to answer."""
    from bide.cli.tables import aligned, heading

    rows = [row for wait in found.waits for row in _wait(wait, now)]
    return [heading("Waits for"), aligned(rows, indent=2)] if rows else []


def _wait(wait: Wait, now: datetime) -> list[list[str | Text]]:
    from rich.text import Text

    from bide.cli.finding import short

    until = f", {words.until(wait.deadline, now)}" if wait.deadline else ""
    who = f", asked: {words.line(', '.join(wait.assignees))}" if wait.assignees else ""
    told = f"{wait.node}: {words.line(wait.waiting_for)}{who}{until}"
    return [[Text(f"{short(wait.id)} ", style="bold"), told], ["", Text(f"→ {_how(wait)}", style="dim")]]


def _how(wait: Wait) -> str:
    from bide.cli.finding import short
    from bide.cli.inbox_words import schema_of

    if wait.kind == "pause":
        return f"bide answer {short(wait.id)}"
    if wait.kind in ("question", "approval"):
        options = (schema_of(wait, None) or {}).get("enum")
        return f"bide answer {short(wait.id)} {words.value(options[0]) if options else 'VALUE'}"
    return f"bide explain {short(wait.id)}"


def _lines(lines: Sequence[Happening]) -> list[RenderableType]:
    """Show the timeline; a day is named when it begins."""
    from itertools import groupby

    from rich.text import Text

    from bide.cli.happenings import parts
    from bide.cli.tables import aligned, heading

    shown: list[RenderableType] = []
    for day, those in groupby(lines, key=lambda one: one.at.astimezone().date()):
        shown.append(heading(f"Timeline, {day}") if not shown else Text(f"  {day}", style="dim"))
        shown.append(aligned((parts(one) for one in those), indent=2))
    return shown


def _next(found: ThreadView) -> list[RenderableType]:
    """Say what can be done about a thread that stays where it is."""
    from rich.text import Text

    thread_id = words.line(found.thread_id)
    hint = {
        "failed": f"bide retry {thread_id}",
        "cancelled": f"bide retry {thread_id}",
        "dead": f"bide release {thread_id}",
        "blocked": f"bide release {thread_id}",
        "ready": "bide worker",
    }.get(str(found.status))
    return [Text.assemble("\n", ("→ ", "dim"), (hint, "bold"))] if hint else []
