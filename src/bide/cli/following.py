"""`bide follow`: what happens in a thread, while it happens."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from bide.cli.desk import Desk
from bide.cli.exits import Exit
from bide.cli.options import Thread, command

if TYPE_CHECKING:
    from bide.runtime.following import Until

ENDED = ("done", "failed", "cancelled")
NEXT_STEP = {"failed": "retry", "dead": "release", "blocked": "release"}
"""What puts a thread right that did not end well."""


class Stop(StrEnum):
    """When to stop looking."""

    END = "end"
    REST = "rest"
    NEVER = "never"


@command
def follow(
    desk: Desk,
    thread: Thread,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="Go on behind this event.")] = None,
    until: Annotated[
        Stop, typer.Option("--until", help="Stop when the thread ends, also when it waits (rest), or never.")
    ] = Stop.END,
) -> None:
    """Show what happens in a thread, live, from any machine. With --json: one document in each line."""
    from bide.cli.attending import note_if_nobody_works
    from bide.cli.finding import find_thread

    known: dict[Stop, Until] = {Stop.END: "end", Stop.REST: "rest", Stop.NEVER: None}
    thread_id = find_thread(desk, thread)
    if desk.app.get(thread_id).status not in ENDED:
        note_if_nobody_works(desk)
    show_events(desk, thread_id, after=after, until=known[until])


def show_events(desk: Desk, thread_id: str, *, after: str | None, until: Until) -> None:
    """Print events as they come; a thread that failed in the end is a command that failed."""
    from bide.cli.happenings import happening, is_worth_telling, questions, told
    from bide.cli.words import line

    for event in desk.app.follow(thread_id, after=after, until=until):
        if desk.as_json:
            desk.tell_line(event)
        elif is_worth_telling(event):
            asked = questions(desk.app, thread_id) if event.kind.startswith(("wait.", "run.waiting")) else {}
            desk.out.print(told(happening(event, asked)), soft_wrap=True)
    status = str(desk.app.get(thread_id).status)
    if status in NEXT_STEP:
        desk.note(f"Thread {line(thread_id)} is {status} → bide {NEXT_STEP[status]} {line(thread_id)}")
        raise typer.Exit(int(Exit.FAILED))
