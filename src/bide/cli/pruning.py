"""`bide prune`: what is old goes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import command


@dataclass(frozen=True)
class Going:
    """What may go."""

    keep_last: Annotated[
        int | None, typer.Option("--keep-last", min=1, help="Keep so many of the newest checkpoints of each thread.")
    ] = None
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="30d", help="Let checkpoints of this age go.")
    ] = None
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="90d", help="Delete threads in which nothing happened for so long.")
    ] = None
    horizon: Annotated[
        str | None, typer.Option("--horizon", metavar="CHECKPOINT", help="Let go what comes before this checkpoint.")
    ] = None


@command
def prune(
    desk: Desk,
    going: Going,
    thread: Annotated[str | None, typer.Option("--thread", help="Only of this thread.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Let old checkpoints and threads go. Where a thread stands and what it waits for always stays."""
    from bide.cli import words
    from bide.cli.finding import find_thread
    from bide.cli.progress import progress

    if not any((going.keep_last, going.older_than, going.ttl, going.horizon)) and desk.store.retention is None:
        raise CliError(
            "Say what may go: --keep-last 50, --older-than 30d, --ttl 90d or --horizon CHECKPOINT. Nothing was "
            "deleted.",
            Exit.USAGE,
        )
    thread_id = None if thread is None else find_thread(desk, thread)
    if not yes:
        _ask(desk, f"Delete for good, in {desk.store.database.path}?")
    with progress(desk, "letting go"):
        done = desk.store.prune(
            keep_last=going.keep_last,
            older_than=going.older_than,
            ttl=going.ttl,
            horizon=going.horizon,
            thread_id=thread_id,
        )
    left = [{"thread_id": one, "why": why} for one, why in done.failed]
    document = {"pruned": {**done._asdict(), "failed": left}}
    told = [words.count(done.threads, "thread"), words.count(done.checkpoints, "checkpoint")]
    desk.tell(
        document,
        f"Gone: {', '.join(told)} and {words.count(done.rows, 'other row')} ({words.size(done.bytes)}).",
        *(f"Left as it is: thread {words.line(one['thread_id'])}: {words.line(one['why'])}" for one in left),
    )
    if left:
        raise typer.Exit(int(Exit.FAILED))


def _ask(desk: Desk, question: str) -> None:
    if desk.as_json or not sys.stdin.isatty():
        raise CliError("This deletes for good, and nobody is here to ask. Say --yes if it is meant.", Exit.USAGE)
    if not typer.confirm(question):
        raise CliError("Nothing was deleted.", Exit.FAILED)
