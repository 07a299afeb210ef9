"""Schedules: runs that begin by the clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import command

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bide.runtime.scheduling import Schedule

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a schedule.", show_default=False)]


class Missed(StrEnum):
    """What becomes of times at which nobody was there."""

    ONCE = "once"
    SKIP = "skip"
    ALL = "all"


@dataclass(frozen=True)
class Timing:
    """When, and by whose clock."""

    timezone: Annotated[str, typer.Option("--timezone", "-z", help="By the clocks of, as Europe/Paris.")] = "UTC"
    missed: Annotated[
        Missed, typer.Option("--missed", help="If nobody was there when it was due: one run for all, none, or each.")
    ] = Missed.ONCE
    jitter: Annotated[str | None, typer.Option("--jitter", metavar="5m", help="Put each off by up to so much.")] = None


@command
def list_(desk: Desk) -> None:
    """List schedules, and when each is due next."""
    show_all(desk)


def show_all(desk: Desk) -> None:
    """Show all schedules."""
    found = all_of(desk)
    desk.tell({"schedules": found}, _table(desk, found) if found else "There are no schedules.")
    if not found:
        desk.note('Make one: bide schedules add nightly GRAPH "0 3 * * *"')


def all_of(desk: Desk) -> list[Schedule]:
    """Read all schedules, page by page."""
    found: list[Schedule] = []
    while page := desk.app.schedules(after=found[-1].name if found else None):
        found += page
    return found


def _table(desk: Desk, found: list[Schedule]) -> RenderableType:
    from bide.cli import words
    from bide.cli.tables import Column, listing

    now = desk.now
    columns = [
        *(Column("schedule"), Column("graph"), Column("cron"), Column("zone", from_width=100)),
        *(Column("next"), Column("last"), Column("in words", is_whole=False, from_width=120)),
    ]
    rows = [
        [
            words.line(one.name),
            one.graph,
            one.cron,
            one.timezone,
            "paused" if one.is_paused else words.until(one.next_at, now),
            words.ago(one.last_at, now),
            words.line(one.explained),
        ]
        for one in found
    ]
    return listing(desk.out, columns, rows)


@command
def add(
    desk: Desk,
    name: Name,
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="Which graph it starts.", show_default=False)],
    cron: Annotated[str, typer.Argument(metavar="CRON", help='When: "0 9 * * MON-FRI".', show_default=False)],
    timing: Timing,
    input: Annotated[
        str | None, typer.Argument(metavar="JSON", help="What each run begins with: JSON, @file, or -.")
    ] = None,
) -> None:
    """Start a graph by the clock, again and again; the same name changes the schedule."""
    from bide.cli.arguments import read_json

    desk.need_graphs("bide schedules add")
    if desk.new_app.graphs.find(graph) is None:
        raise desk.unknown_graph(graph)
    made = desk.app.schedule(
        name,
        graph,
        cron,
        read_json(input, "input"),
        timezone=timing.timezone,
        missed=timing.missed.value,
        jitter=timing.jitter,
    )
    desk.tell({"schedule": made}, _table(desk, [made]))


@command
def remove(desk: Desk, name: Name) -> None:
    """Remove a schedule; runs that it started go on."""
    _check_known(desk, name)
    desk.tell({"name": name, "is_removed": desk.app.unschedule(name)}, f"Schedule {name} is gone.")


@command
def pause(desk: Desk, name: Name) -> None:
    """Let a schedule rest: nothing is started until it is resumed."""
    _check_known(desk, name)
    desk.tell({"schedule": desk.app.pause_schedule(name)}, f"Schedule {name} is paused.")


@command
def resume(desk: Desk, name: Name) -> None:
    """Let a schedule go on; what came due while it was paused is not made up for."""
    _check_known(desk, name)
    found = desk.app.resume_schedule(name)
    desk.tell({"schedule": found}, _table(desk, [found]))


def _check_known(desk: Desk, name: str) -> None:
    from bide.errors import did_you_mean

    known = [one.name for one in all_of(desk)]
    if name not in known:
        told = f"There is no schedule {name!r}.{did_you_mean(name, known)}"
        raise CliError(told, Exit.NOT_FOUND, hints=("bide schedules",))


@command
def by_default(desk: Desk, context: typer.Context) -> None:
    """Runs that begin by the clock: list them, or add, remove, pause, resume one."""
    if context.invoked_subcommand is None:
        show_all(desk)


group = typer.Typer(invoke_without_command=True, callback=by_default)
group.command("list")(list_)
for _one in (add, remove, pause, resume):
    group.command(_one.__name__)(_one)
