"""`bide follow`: what happens in a thread, while it happens."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import typer

from bide.cli.desk import Desk
from bide.cli.options import Thread, command

Until = Literal["end", "rest"] | None


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
    from bide.cli.finding import find_thread

    known: dict[Stop, Until] = {Stop.END: "end", Stop.REST: "rest", Stop.NEVER: None}
    show_events(desk, find_thread(desk, thread), after=after, until=known[until])


def show_events(desk: Desk, thread_id: str, *, after: str | None, until: Until) -> None:
    """Print events as they come."""
    from bide.cli.happenings import happening, is_worth_telling, questions, told

    for event in desk.app.follow(thread_id, after=after, until=until):
        if desk.as_json:
            desk.tell_line(event)
        elif is_worth_telling(event):
            asked = questions(desk.app, thread_id) if event.kind.startswith(("wait.", "run.waiting")) else {}
            desk.out.print(told(happening(event, asked)), soft_wrap=True)
