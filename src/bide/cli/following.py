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
    from rich.text import Text

    from bide.cli.happenings import detail_of, mark_of, questions, style_of, word_of
    from bide.cli.words import line

    for event in desk.app.follow(thread_id, after=after, until=until):
        if desk.as_json:
            desk.tell_line(event)
            continue
        data = event.data if isinstance(event.data, dict) else {}
        asked = questions(desk.app, thread_id) if event.kind.startswith(("wait.", "run.waiting")) else {}
        at = event.at.astimezone()
        desk.out.print(
            Text.assemble(
                (f"{at:%H:%M:%S}.{at.microsecond // 1000:03}  ", "dim"),
                (f"{mark_of(event.kind)} {word_of(event.kind):<12}", style_of(event.kind)),
                f" {line(detail_of(event.kind, data, asked))}",
            )
        )
