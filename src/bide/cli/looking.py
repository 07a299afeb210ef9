"""Looking at threads: the list of them, one's history, one's graph."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import Most, Thread, command
from bide.types import RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text

    from bide.picture import Picture
    from bide.types import StateSnapshot

NEVER = 2**31
"""The width of a terminal that nobody has."""


@command
def threads(
    desk: Desk,
    status: Annotated[
        str | None, typer.Option("--status", help="Only those that stand so: waiting, failed, done …")
    ] = None,
    graph: Annotated[str | None, typer.Option("--graph", help="Only those of this graph.")] = None,
    parent: Annotated[str | None, typer.Option("--parent", help="Only those that this thread has spawned.")] = None,
    most: Most = 50,
) -> None:
    """List threads, newest first."""
    from bide.cli import words
    from bide.cli.arguments import one_of
    from bide.cli.tables import Column, listing
    from bide.cli.tables import status as shown_status

    one_of(status, [one.value for one in RunStatus], "--status")
    found = desk.app.list(status=status, graph=graph, parent=parent, most=most)
    now = desk.now
    columns = [
        *(Column("thread"), Column("graph"), Column("status"), Column("began")),
        Column("changed", from_width=90),
        Column("error", is_whole=False, from_width=120 if any(one.error for one in found) else NEVER),
    ]
    rows: list[list[str | Text]] = [
        [
            words.line(one.thread_id),
            one.graph,
            shown_status(one.status or "new"),
            words.ago(one.created_at, now),
            words.ago(one.updated_at, now),
            words.line(one.error or ""),
        ]
        for one in found
    ]
    listed = [_listed(one) for one in found]
    desk.tell({"threads": listed}, listing(desk.out, columns, rows) if found else _none(desk, status, graph))
    if len(found) >= most:
        desk.note(f"There may be more: bide threads --most {most * 2}")


def _listed(thread: Any) -> dict[str, Any]:
    names = ("thread_id", "graph", "status", "created_at", "updated_at", "error", "parent")
    return {name: getattr(thread, name) for name in names}


def _none(desk: Desk, status: str | None, graph: str | None) -> str:
    which = " ".join(filter(None, [status, graph and f"of graph {graph}"]))
    return f"There are no threads{f' ({which})' if which else ''} in {desk.store.database.path}."


@command
def history(desk: Desk, thread: Thread, most: Most = 50) -> None:
    """The checkpoints of a thread, newest first: what to give to `bide fork --at`."""
    from itertools import islice

    from bide.cli import words
    from bide.cli.finding import find_thread
    from bide.cli.tables import Column, listing

    thread_id = find_thread(desk, thread)
    graph = desk.graph_of(thread_id)
    found = list(islice(graph.get_state_history({"configurable": {"thread_id": thread_id}}), most))
    columns = [
        *(Column("checkpoint"), Column("step", is_number=True), Column("source"), Column("next")),
        *(Column("asks", is_whole=False, from_width=100), Column("state", is_whole=False, from_width=120)),
    ]
    rows = [
        [
            _id(one),
            str((one.metadata or {}).get("step", "")),
            str((one.metadata or {}).get("source", "")),
            ", ".join(one.next) or words.NOTHING,
            "; ".join(words.value(ask.value) for task in one.tasks for ask in task.interrupts) or words.NOTHING,
            words.value(one.values),
        ]
        for one in found
    ]
    document = {"thread_id": thread_id, "checkpoints": [_checkpoint(one) for one in found]}
    desk.tell(document, listing(desk.out, columns, rows) if found else "It has no checkpoints yet.")


def _id(snapshot: StateSnapshot) -> str:
    return str(snapshot.config["configurable"].get("checkpoint_id", ""))


def _checkpoint(snapshot: StateSnapshot) -> dict[str, Any]:
    metadata = snapshot.metadata or {}
    asks = [{"id": ask.id, "node": task.name, "value": ask.value} for task in snapshot.tasks for ask in task.interrupts]
    return {
        "checkpoint_id": _id(snapshot),
        "created_at": snapshot.created_at,
        "step": metadata.get("step"),
        "source": metadata.get("source"),
        "run_id": metadata.get("run_id"),
        "next": snapshot.next,
        "asks": asks,
        "values": snapshot.values,
    }


class Format(StrEnum):
    """What a picture may be."""

    ASCII = "ascii"
    MERMAID = "mermaid"
    SVG = "svg"
    PNG = "png"


@command
def graph(
    desk: Desk,
    name: Annotated[str | None, typer.Argument(metavar="[GRAPH]", help="Its name; not needed if there is one.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", help="Show where this thread stands in it.")] = None,
    format: Annotated[Format | None, typer.Option("--format", help="What to draw. (default: ascii)")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there; .svg, .png, .mmd, .txt.")
    ] = None,
    xray: Annotated[bool, typer.Option("--xray", help="Open the graphs inside it, too.")] = False,
) -> None:
    """A picture of a graph, in the terminal or in a file."""
    desk.need_graphs("bide graph")
    if thread is None:
        desk.missing = "imagine"  # a picture of a graph needs no database
    chosen, config = _chosen(desk, name, thread)
    picture = chosen.get_graph(config, xray=xray)
    wanted = format or _by_ending(output)
    if wanted is Format.PNG and output is None:
        raise CliError("A PNG needs a file: bide graph --format png -o graph.png", Exit.USAGE)
    drawn = _drawn(picture, wanted)
    if output is not None:
        _write(output, drawn)
        desk.tell({"graph": chosen.name, "format": wanted.value, "file": output}, f"Written to {output}.")
        return
    document = {"graph": chosen.name, "format": wanted.value, "picture": drawn, **picture.to_dict()}
    if desk.as_json:
        desk.tell(document)
        return
    # Not through a table or a wrap: a picture is its characters, where they stand.
    desk.out.print(drawn, soft_wrap=True)


def _chosen(desk: Desk, name: str | None, thread: str | None) -> tuple[Any, dict[str, Any] | None]:
    if thread is not None:
        from bide.cli.finding import find_thread

        thread_id = find_thread(desk, thread)
        return desk.graph_of(thread_id), {"configurable": {"thread_id": thread_id}}
    if name is not None:
        return desk.graph(name), None
    known = list(desk.app.graphs)
    if len(known) != 1:
        listed = ", ".join(one.name for one in known)
        raise CliError(f"Say which graph: {listed}.", Exit.USAGE, hints=(f"bide graph {known[0].name}",))
    return known[0].graph, None


_ENDINGS = {".svg": Format.SVG, ".png": Format.PNG, ".mmd": Format.MERMAID, ".md": Format.MERMAID, ".txt": Format.ASCII}


def _by_ending(output: Path | None) -> Format:
    return Format.ASCII if output is None else _ENDINGS.get(output.suffix.lower(), Format.ASCII)


def _drawn(picture: Picture, wanted: Format) -> Any:
    draw: dict[Format, Callable[[], str | bytes]] = {
        Format.ASCII: picture.draw_ascii,
        Format.MERMAID: picture.draw_mermaid,
        Format.SVG: picture.draw_svg,
        Format.PNG: picture.draw_png,
    }
    return draw[wanted]()


def _write(output: Path, drawn: Any) -> None:
    try:
        output.write_bytes(drawn if isinstance(drawn, bytes) else f"{drawn}\n".encode())
    except OSError as problem:
        raise CliError(f"{str(output)!r} cannot be written: {problem}.") from problem
