"""Runs: start, go on, take out of the way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import By, Thread, command

if TYPE_CHECKING:
    from bide.runtime.views import Run


class IfBusy(StrEnum):
    """What becomes of a start on a thread that has a live run."""

    REJECT = "reject"
    ENQUEUE = "enqueue"
    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"


@dataclass(frozen=True)
class When:
    """When a run is due."""

    delay: Annotated[str | None, typer.Option("--delay", metavar="2h30m", help="Start it so much later.")] = None
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="2026-03-02T12:00+02:00", help="Start it at this moment; say by which clock."),
    ] = None


@dataclass(frozen=True)
class Manner:
    """How a run is accepted."""

    key: Annotated[str | None, typer.Option("--key", help="However often it is typed, one key starts one run.")] = None
    if_busy: Annotated[IfBusy, typer.Option("--if-busy", help="What to do if the thread has a live run.")] = (
        IfBusy.REJECT
    )
    queue: Annotated[str, typer.Option("--queue", help="Which workers take it.")] = "default"
    priority: Annotated[int, typer.Option("--priority", help="Higher comes first.")] = 0


@command
def start(
    desk: Desk,
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="The name of a graph.", show_default=False)],
    when: When,
    manner: Manner,
    input: Annotated[
        str | None, typer.Argument(metavar="JSON", help="What it begins with: JSON, @file, or - for stdin.")
    ] = None,
    thread: Annotated[str | None, typer.Option("--thread", "-t", help="The thread's id. (default: a new one)")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show what happens, until it rests.")] = False,
) -> None:
    """Start a run, durably; a worker drives it."""
    from bide.cli.arguments import read_json, read_moment

    desk.need_graphs("bide start")
    given, at = read_json(input, "input"), read_moment(when.at, "--at")
    desk.known |= {} if thread is None else {"thread": thread}
    if desk.new_app.graphs.find(graph) is None:
        raise desk.unknown_graph(graph)
    run = desk.app.start(
        graph,
        given,
        thread_id=thread,
        key=manner.key,
        delay=when.delay,
        at=at,
        if_busy=manner.if_busy.value,
        queue=manner.queue,
        priority=manner.priority,
    )
    _started(desk, run, "started")
    if follow:
        from bide.cli.following import show_events

        show_events(desk, run.thread_id, after=None, until="rest")


def _started(desk: Desk, run: Run, verb: str) -> None:
    from rich.text import Text

    from bide.cli import words
    from bide.cli.attending import note_if_nobody_works
    from bide.cli.marks import OK

    due = f", due {words.until(run.due_at, desk.now)}" if run.status == "queued" and run.due_at else ""
    stands = f"{run.status}{due}"
    told = f" {verb}: {run.graph}, {stands}." if run.is_new else f" was started before under this key, and is {stands}."
    shown = Text.assemble((f"{OK} ", "green"), "Thread ", (words.line(run.thread_id), "bold"), told)
    desk.tell({"run": run}, shown)
    desk.note(f"See: bide show {words.line(run.thread_id)}")
    note_if_nobody_works(desk)


@command
def retry(desk: Desk, thread: Thread) -> None:
    """Go on with a thread whose last run failed or was cancelled; only what did not finish runs again."""
    from bide.cli.finding import find_thread

    thread_id = find_thread(desk, thread)
    found = desk.app.get(thread_id)
    if found.status in ("dead", "blocked"):
        _refuse(thread_id, str(found.status), f"bide release {thread_id}")
    if found.status not in ("failed", "cancelled"):
        _refuse(thread_id, str(found.status), f"bide show {thread_id}")
    _started(desk, desk.app.retry(thread_id), "goes on")


@command
def release(desk: Desk, thread: Thread) -> None:
    """Put a thread back into service whose run is dead or blocked."""
    from bide.cli.finding import find_thread

    thread_id = find_thread(desk, thread)
    status = str(desk.app.get(thread_id).status)
    if not desk.app.release(thread_id):
        command = "retry" if status in ("failed", "cancelled") else "show"
        _refuse(thread_id, status, f"bide {command} {thread_id}")
    _done(desk, {"thread_id": thread_id, "is_released": True}, f"Thread {thread_id} is ready again (it was {status}).")


@command
def cancel(
    desk: Desk,
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help="A thread: all of it.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="Only this run of it.")] = None,
    wait: Annotated[str | None, typer.Option("--wait", help="Only this wait: its node gets a WaitCancelled.")] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is kept in the thread's log.")] = "cancelled",
    by: By = None,
) -> None:
    """Cancel a thread with its questions and children, one of its runs, or one wait."""
    from bide.cli.arguments import who
    from bide.cli.finding import find_thread, find_wait

    if (thread is None) == (wait is None):
        raise CliError("Say what to cancel: bide cancel THREAD, or bide cancel --wait WAIT.", Exit.USAGE)
    more: dict[str, Any] = {"reason": reason, "by": who(by)}
    if wait is not None:
        found = find_wait(desk, wait)
        if not desk.app.cancel(wait_id=found.id, **more):
            raise CliError(
                f"Wait {found.id} was {found.status.value} before. Nothing was changed.",
                Exit.CONFLICT,
                hints=(f"bide show {found.thread_id}",),
            )
        _done(desk, {"wait_id": found.id, "is_cancelled": True}, f"Wait {found.id[:8]} is cancelled.")
        return
    thread_id = find_thread(desk, thread or "")
    status = str(desk.app.get(thread_id).status)
    if not desk.app.cancel(thread_id, run_id=run, **more):
        _refuse(thread_id, status, f"bide show {thread_id}")
    what = f"Thread {thread_id}" if run is None else f"Run {run} of thread {thread_id}"
    _done(desk, {"thread_id": thread_id, "run_id": run, "is_cancelled": True}, f"{what} is cancelled.")


def _refuse(thread_id: str, status: str, hint: str) -> None:
    raise CliError(f"Thread {thread_id} is {status}. Nothing was changed.", Exit.CONFLICT, hints=(hint,))


def _done(desk: Desk, document: dict[str, Any], told: str) -> None:
    from rich.text import Text

    from bide.cli.marks import OK
    from bide.cli.words import safe

    desk.tell(document, Text.assemble((f"{OK} ", "green"), safe(told)))
