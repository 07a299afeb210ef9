"""`python -m bide.demo`: a server and a tour for a person, or the whole story by itself."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bide.demo.api import Refused
from bide.demo.crew import Files, ServerFailed
from bide.demo.desk import Desk
from bide.demo.story import Story
from bide.demo.terminal import BOLD, GREEN, Terminal
from bide.demo.tour import Tour
from bide.errors import BideError

PORT = 2024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if all went well and every claim held."""
    given = _parser().parse_args(arguments)
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(errors="replace")  # type: ignore[union-attr]  # an ASCII terminal shows ? for ✓
    folder = None if given.db else Path(tempfile.mkdtemp(prefix="bide-demo-"))
    path = folder / "bide.db" if folder else Path(given.db).absolute()
    files = Files(str(path), f"{path}.ledger.jsonl")
    code = _show(files, given.port, is_told=given.yes)
    if folder is not None and code != 1 and not given.keep:
        shutil.rmtree(folder)
        if code == 0:
            print("The database of this demo was removed; --keep keeps it, and --help shows more.")
    elif Path(files.ledger).exists():
        print(f"Kept: {files.database}\n      {files.ledger}")
    return code


def _show(files: Files, port: int | None, *, is_told: bool) -> int:
    terminal = Terminal(unhurried=not is_told)
    if not is_told and not terminal.is_anybody_there():
        terminal.say("(nobody is there to click: telling the whole story, as with --yes)\n")
        is_told = True
    try:
        desk = Desk(files, terminal, port if port is not None else 0 if is_told else PORT)
        return _with_a_desk(desk, is_told=is_told)
    except (BideError, ServerFailed, Refused, OSError) as problem:
        if isinstance(problem, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has left, as `| head` does: nobody to tell
            return 141
        print(f"\nThe demo could not go on: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def _with_a_desk(desk: Desk, *, is_told: bool) -> int:
    say, paint = desk.terminal.say, desk.terminal.paint
    try:
        if not is_told:
            return _shown_around(desk)
        holds = Story(desk).tell()
    finally:
        desk.close()
    if not holds:
        print("\nSomething ran twice or was lost: see the lines marked ✗. This is a bug in Bide.", file=sys.stderr)
        return 1
    done = "Killed in the middle: nothing was lost, and nothing was done twice."
    say(f"\n{paint(done, BOLD, GREEN)}")
    say("Next: `python3 dev.py run` to try it yourself, examples/, and docs/serving.md.")
    return 0


def _shown_around(desk: Desk) -> int:
    try:
        Tour(desk).go()
    except KeyboardInterrupt:
        desk.terminal.say("\nNext: the first lines of README.md, examples/, and docs/serving.md.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bide.demo",
        description="Three agents that wait for the world, their inbox in the browser, and a server to kill.",
    )
    parser.add_argument("--yes", action="store_true", help="tell the whole story without asking anybody, and check it")
    parser.add_argument("--keep", action="store_true", help="keep the database and the ledger, and say where they are")
    parser.add_argument("--db", metavar="PATH", help="use this SQLite file, new or of an earlier demo, and keep it")
    parser.add_argument("--port", type=int, metavar="PORT", help=f"serve at this port (default: {PORT}, if it is free)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
