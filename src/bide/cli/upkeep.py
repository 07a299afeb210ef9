"""Looking after a store: its schema, what may go, copies of it, threads in and out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import command

Tick = Callable[[int, int | None], None]
"""Told how much is done, and of how much, where that is known."""


@contextmanager
def progress(desk: Desk, title: str) -> Iterator[Tick]:
    """Show on stderr how far long work is; nothing where nobody looks."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    hidden = desk.as_json or not desk.err.is_terminal
    parts = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*parts, console=desk.err, transient=True, disable=hidden) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@command
def migrate(
    desk: Desk,
    check: Annotated[bool, typer.Option("--check", help="Only say whether there is something to do.")] = False,
) -> None:
    """Make a database, or bring it to the schema of this Bide. Opening a store does the same."""
    from bide.store.migrate import FIRST, known_migrations
    from bide.store.opening import open_database
    from bide.store.store import Store

    if desk.loaded.app is not None or desk.loaded.store is not None:
        found: int | None = desk.store.version
        document = {"database": desk.store.database.path, "before": found, "now": found, "is_current": True}
        desk.tell(document, f"{desk.store.database.path}: schema {found}, which is current (the application opened it).")
        return
    steps = known_migrations()
    newest = steps[-1].version if steps else FIRST
    if check:
        desk._check_exists()
    database = open_database(desk.url, schema=desk.place.schema)
    try:
        before = _version(database)
    except BaseException:
        database.close()
        raise
    if check:
        database.close()
        told = "is current" if before == newest else f"is behind: this Bide has schema {newest}"
        document = {"database": database.path, "before": before, "now": before, "is_current": before == newest}
        desk.tell(document, f"{database.path}: schema {before or 'none'}, {told}.")
        if before != newest:
            raise typer.Exit(int(Exit.FAILED))
        return
    with Store(database) as store:
        document = {"database": database.path, "before": before, "now": store.version, "is_current": True}
        told = "was current" if before == store.version else "made" if before is None else f"brought here from {before}"
        desk.tell(document, f"{database.path}: schema {store.version}, {told}.")


def _version(database: Any) -> int | None:
    def read(tx: Any) -> int | None:
        row = tx.one("read_version", {}) if database.is_ours(tx) else None
        return None if row is None else row[0]

    found: int | None = database.read(read)
    return found


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

    if not any((going.keep_last, going.older_than, going.ttl, going.horizon)) and desk.store.retention is None:
        raise CliError(
            "Say what may go: --keep-last 50, --older-than 30d, --ttl 90d or --horizon CHECKPOINT. Nothing was deleted.",
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


@command
def backup(
    desk: Desk,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.", show_default=False)],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Copy a SQLite store while it is in use; the copy is whole, or not there."""
    _check_free(file, overwrite)
    with progress(desk, "copying") as tick:
        made = desk.store.backup(file, overwrite=overwrite, progress=lambda done, total: tick(done, total))
    desk.tell({"file": made}, f"Written to {made}.")


@command
def export(
    desk: Desk,
    threads: Annotated[
        list[str] | None, typer.Argument(metavar="THREAD...", help="Which threads.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file, or the folder for several. [default: here]")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every thread there is.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Write threads to files, one each, that any Bide store can import."""
    from bide.cli import words
    from bide.cli.finding import find_thread

    if bool(threads) == every:
        raise CliError("Say which threads: bide export THREAD…, or bide export --all.", Exit.USAGE)
    chosen = [row.thread_id for row in desk.store.threads(most=10**9)] if every else []
    chosen += [find_thread(desk, one) for one in threads or ()]
    files = _files(chosen, output, is_folder=every or len(chosen) > 1)
    for file in files:
        _check_free(file, overwrite)
    with progress(desk, "exporting") as tick:
        for number, (thread_id, file) in enumerate(zip(chosen, files, strict=True), 1):
            desk.store.export_thread(thread_id, file, overwrite=overwrite)
            tick(number, len(chosen))
    pairs = [{"thread_id": one, "file": file} for one, file in zip(chosen, files, strict=True)]
    shown = [f"{words.line(one)} → {file}" for one, file in zip(chosen, files, strict=True)]
    desk.tell({"exported": pairs}, *(shown if len(shown) <= 20 else [f"{words.count(len(shown), 'thread')} written."]))


def _files(threads: list[str], output: Path | None, *, is_folder: bool) -> list[Path]:
    if output is not None and not is_folder and not output.is_dir():
        return [output] * len(threads)
    folder = output or Path(".")
    folder.mkdir(parents=True, exist_ok=True)
    return [folder / f"{_as_name(one)}.bide" for one in threads]


def _as_name(thread_id: str) -> str:
    """Return a thread's id as a file may be called; nothing in it leads elsewhere."""
    from hashlib import blake2b

    kept = "".join(one if one.isalnum() or one in "-_." else "_" for one in thread_id)[:100].lstrip(".") or "_"
    # Two ids that look the same as names are still two files.
    return kept if kept == thread_id else f"{kept}-{blake2b(thread_id.encode(), digest_size=4).hexdigest()}"


def _check_free(file: Path, overwrite: bool) -> None:
    if file.exists() and not overwrite:
        raise CliError(
            f"{str(file)!r} exists already, and was left as it is.", Exit.CONFLICT, hints=("… --overwrite",)
        )


@command
def import_(
    desk: Desk,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What export wrote.", show_default=False)],
    new_id: Annotated[str | None, typer.Option("--as", metavar="THREAD", help="Under this id, not its own.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a thread that is there.")] = False,
) -> None:
    """Bring threads in that were exported: each one whole, or not at all."""
    from bide.cli import words

    if new_id is not None and len(files) > 1:
        raise CliError("--as names one thread, and there are several files.", Exit.USAGE)
    for file in files:
        if not file.is_file():
            raise CliError(f"There is no file {str(file)!r}. Nothing was imported.", Exit.NOT_FOUND)
    store, made = desk.new_app.store, []
    with progress(desk, "importing") as tick:
        for number, file in enumerate(files, 1):
            made.append(store.import_thread(file, new_id, replace=replace))
            tick(number, len(files))
    desk.tell({"imported": made}, *(f"{file} → {words.line(one.thread_id)}" for file, one in zip(files, made, strict=True)))
