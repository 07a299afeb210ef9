"""Copies of a store, and threads in and out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import command


@command
def backup(
    desk: Desk,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.", show_default=False)],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Copy a SQLite store while it is in use; the copy is whole, or not there."""
    from bide.cli.progress import progress

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
        Path | None, typer.Option("--output", "-o", help="The file, or the folder for several. (default: here)")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every thread there is.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
) -> None:
    """Write threads to files, one each, that any Bide store can import."""
    from bide.cli import words
    from bide.cli.finding import find_thread
    from bide.cli.progress import progress

    if bool(threads) == every:
        raise CliError("Say which threads: bide export THREAD…, or bide export --all.", Exit.USAGE)
    chosen = _everything(desk) if every else []
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


def _everything(desk: Desk) -> list[str]:
    """Name every thread, page by page."""
    found: list[str] = []
    while page := desk.app.list(after=found[-1] if found else None, most=1000):
        found += [one.thread_id for one in page]
    return found


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
        raise CliError(f"{str(file)!r} exists already, and was left as it is.", Exit.CONFLICT, hints=("… --overwrite",))


@command
def import_(
    desk: Desk,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What export wrote.", show_default=False)],
    new_id: Annotated[str | None, typer.Option("--as", metavar="THREAD", help="Under this id, not its own.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a thread that is there.")] = False,
) -> None:
    """Bring threads in that were exported: each one whole, or not at all."""
    from bide.cli import words
    from bide.cli.progress import progress

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
    desk.tell(
        {"imported": made}, *(f"{file} → {words.line(one.thread_id)}" for file, one in zip(files, made, strict=True))
    )
