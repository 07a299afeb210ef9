"""Going back, and looking ahead: forks of a thread, and whether paused threads fit the code of today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import Exit
from bide.cli.options import Thread, command

if TYPE_CHECKING:
    from bide.graph.replay_check import ReplayReport


@command
def fork(
    desk: Desk,
    thread: Thread,
    at: Annotated[
        str | None, typer.Option("--at", metavar="CHECKPOINT", help="Where to begin. (default: where it stands)")
    ] = None,
    values: Annotated[str | None, typer.Option("--values", metavar="JSON", help="Merge this into its state.")] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="VALUE", help="Answer what was asked there: JSON or text.")
    ] = None,
    start: Annotated[bool, typer.Option("--start", help="Go on there at once.")] = False,
) -> None:
    """Begin another branch of a thread at one of its checkpoints: the way to answer differently, after all."""
    from bide.cli.arguments import read_json, read_loosely
    from bide.cli.finding import find_thread

    desk.need_graphs("bide fork")
    thread_id = find_thread(desk, thread)
    graph = desk.graph_of(thread_id)
    place = {"thread_id": thread_id} | ({"checkpoint_id": at} if at is not None else {})
    more: dict[str, Any] = {} if answer is None else {"answers": read_loosely(answer)[0]}
    config = graph.fork({"configurable": place}, read_json(values, "state"), **more)
    checkpoint_id = config["configurable"]["checkpoint_id"]
    run = desk.app.start(graph.name, None, thread_id=thread_id) if start else None
    document = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "run": run}
    _forked(desk, document)


def _forked(desk: Desk, document: dict[str, Any]) -> None:
    from rich.text import Text

    from bide.cli.marks import OK
    from bide.cli.words import line

    told = f"Thread {line(document['thread_id'])} stands at the new checkpoint {document['checkpoint_id']}."
    desk.tell(document, Text.assemble((f"{OK} ", "green"), told))
    if document["run"] is None:
        desk.note(f"Go on there: bide start GRAPH --thread {line(document['thread_id'])}, or bide fork … --start")


@command
def replay_check(
    desk: Desk,
    threads: Annotated[
        list[str] | None, typer.Argument(metavar="[THREAD]...", help="These. Left out: all that wait.")
    ] = None,
    graph: Annotated[str | None, typer.Option("--graph", help="Only those of this graph.")] = None,
) -> None:
    """Before a deployment: would the threads that wait now go on with the code as it is now? Nothing is written."""
    from bide.cli.finding import find_thread

    desk.need_graphs("bide replay-check")
    chosen = [desk.graph(graph)] if graph is not None else [one.graph for one in desk.app.graphs]
    named = [find_thread(desk, one) for one in threads or ()]
    reports: list[ReplayReport] = []
    if named:
        for thread_id in named:
            reports += desk.graph_of(thread_id).replay_check([thread_id])
    else:
        for one in chosen:
            reports += one.replay_check()
    broken = [report for report in reports if report.breaks]
    desk.tell({"reports": reports, "breaks": len(broken)}, *_reported(desk, reports, broken))
    if broken:
        raise typer.Exit(int(Exit.FAILED))


def _reported(desk: Desk, reports: list[ReplayReport], broken: list[ReplayReport]) -> list[Any]:
    from rich.text import Text

    from bide.cli import words
    from bide.cli.marks import FAILED, OK
    from bide.cli.tables import Column, listing

    if not reports:
        return ["No thread of these graphs waits in a node of its own: nothing to replay."]
    rows: list[list[str | Text]] = [
        [
            Text(FAILED if one.breaks else OK, style="red" if one.breaks else "green"),
            words.line(one.thread_id),
            one.node,
            words.line(one.reason),
        ]
        for one in sorted(reports, key=lambda one: not one.breaks)
    ]
    columns = [Column(""), Column("thread"), Column("node"), Column("what the code of now does", is_whole=False)]
    told = (
        Text(f"\n{len(broken)} of {words.count(len(reports), 'paused task')} would break.", style="bold red")
        if broken
        else Text(f"\n{words.count(len(reports), 'paused task')} looked at: all would go on.", style="bold green")
    )
    return [listing(desk.out, columns, rows), told]
