"""The inbox: who waits for what, and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import Exit
from bide.cli.options import By, Most, command

if TYPE_CHECKING:
    from bide.runtime.views import Wait, Woken

KINDS = ("approval", "question", "pause", "time", "event", "webhook", "email", "child", "all_of", "any_of", "quorum")
MANY = 1000

Waiting = Annotated[
    str, typer.Argument(metavar="WAIT", help="A wait: its id, how that begins, or its thread.", show_default=False)
]


@dataclass(frozen=True)
class Wanted:
    """Which waits to list."""

    thread: Annotated[str | None, typer.Option("--thread", help="Only those of this thread.")] = None
    assignee: Annotated[str | None, typer.Option("--assignee", help="Only those for this person.")] = None
    kind: Annotated[str | None, typer.Option("--kind", help="Only these: approval, question, time, event …")] = None
    graph: Annotated[str | None, typer.Option("--graph", help="Only those of this graph.")] = None
    tag: Annotated[str | None, typer.Option("--tag", help="Only those with this tag.")] = None


@dataclass(frozen=True)
class Saying:
    """Who answers, which part of the question, and what is said beside it."""

    by: By = None
    key: Annotated[str | None, typer.Option("--key", help="The same answer may be sent again under the same key.")] = (
        None
    )
    leaf: Annotated[
        str | None,
        typer.Option("--leaf", metavar="NAME", help="Where several decisions are needed: which one this is."),
    ] = None
    comment: Annotated[
        str | None, typer.Option("--comment", metavar="TEXT", help="Said beside a decision; the node hears it, too.")
    ] = None


@command
def waits(desk: Desk, wanted: Wanted, most: Most = 50) -> None:
    """The inbox: who waits, for what, since when and until when; longest first."""
    from bide.cli.arguments import one_of
    from bide.cli.finding import find_thread
    from bide.cli.inbox_words import columns, row

    one_of(wanted.kind, KINDS, "--kind")
    thread_id = None if wanted.thread is None else find_thread(desk, wanted.thread)
    others: dict[str, Any] = {"thread_id": thread_id, "kind": wanted.kind, "graph": wanted.graph, "tag": wanted.tag}
    found = desk.app.waits(**others, assignee=wanted.assignee, most=most)
    from bide.cli.tables import listing

    now = desk.now
    shown = listing(desk.out, columns(), [row(wait, now) for wait in found]) if found else _nobody(wanted)
    desk.tell({"waits": found}, shown)
    if len(found) >= most:
        desk.note(f"There may be more: bide waits --most {most * 2}")
    elif wanted.assignee is not None:
        _note_others(desk, len(desk.app.waits(**others, most=MANY)) - len(found))


def _nobody(wanted: Wanted) -> str:
    return "Nobody waits." if wanted.assignee is None else f"Nobody waits for {wanted.assignee}."


def _note_others(desk: Desk, count: int) -> None:
    if count > 0:
        desk.note(
            f"{count} more {'waits' if count == 1 else 'wait'} for others, or for nobody in particular: bide waits"
        )


@command
def answer(
    desk: Desk,
    saying: Saying,
    wait: Waiting,
    value: Annotated[
        str | None,
        typer.Argument(metavar="VALUE", help="JSON or text, @file, or - for stdin. Left out: show what is asked."),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Take the value as a text, also where it looks like JSON.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Answer also what waits for a fact, and asks nobody.")] = False,
) -> None:
    """Answer a question, or decide; its thread goes on, once. The first answer stands."""
    from bide.cli.arguments import read_loosely, read_text
    from bide.cli.finding import find_wait
    from bide.cli.inbox_words import fitting, question
    from bide.cli.wanted import refuse_facts

    found = find_wait(desk, wait)
    if value is None and found.kind != "pause":
        desk.tell({"wait": found}, question(found, desk.now))
        raise typer.Exit(int(Exit.USAGE))
    if not force:
        refuse_facts(found)
    given: Any = None
    if value is not None:
        given = read_text(value) if text else fitting(found, saying.leaf, read_loosely(value))
    woken = desk.app.wake(found.id, given, via="cli", **_said(saying))
    _tell(desk, found, woken, given)


@command
def wake(
    desk: Desk,
    saying: Saying,
    wait: Waiting,
    value: Annotated[
        str | None, typer.Argument(metavar="JSON", help="The answer as JSON, @file, or - for stdin. Left out: null.")
    ] = None,
    via: Annotated[str, typer.Option("--via", help="Through what the answer came.")] = "cli",
) -> None:
    """Answer for programs: the value is JSON and nothing else, and a key makes it safe to send again."""
    from bide.cli.arguments import read_json
    from bide.cli.finding import find_wait

    found = find_wait(desk, wait)
    given = read_json(value, "answer")
    woken = desk.app.wake(found.id, given, via=via, **_said(saying))
    _tell(desk, found, woken, given)


def _said(saying: Saying) -> dict[str, Any]:
    from bide.cli.arguments import who

    return {"by": who(saying.by), "key": saying.key, "leaf": saying.leaf, "comment": saying.comment}


def _tell(desk: Desk, wait: Wait, woken: Woken, given: Any) -> None:
    from rich.text import Text

    from bide.cli import words
    from bide.cli.attending import note_if_nobody_works
    from bide.cli.marks import OK
    from bide.cli.words import line

    if woken.is_new:
        told = "went on" if wait.kind == "pause" else f"answered with {words.value(given, 60)}"
    else:
        told = f"was {woken.status.replace('_', ' ')} before, under the same key; nothing was changed"
    shown = Text.assemble((f"{OK} ", "green"), f"Thread {line(wait.thread_id)}: {wait.node} {told}.")
    desk.tell({"woken": woken}, shown)
    desk.note(f"A worker goes on with it. See: bide show {line(wait.thread_id)}")
    note_if_nobody_works(desk)
