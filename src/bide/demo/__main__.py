"""`python -m bide.demo`: tell the story once, and check it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bide import BideError, Store
from bide.demo.crew import Files, WorkerFailed
from bide.demo.story import Story
from bide.demo.terminal import BOLD, GREEN, Terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if every claim held."""
    given = _parser().parse_args(arguments)
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(errors="replace")  # type: ignore[union-attr]  # an ASCII terminal shows ? for ✓
    folder = None if given.db else Path(tempfile.mkdtemp(prefix="bide-demo-"))
    path = folder / "orders.db" if folder else Path(given.db).absolute()
    files = Files(str(path), f"{path}.ledger.jsonl")
    code = _tell(files, assume_yes=given.yes)
    if folder is not None and code != 1 and not given.keep:
        shutil.rmtree(folder)
        print("The database of this demo was removed; --keep keeps it, and --help shows more.")
    elif Path(files.ledger).exists():
        print(f"Kept: {files.database}\n      {files.ledger}")
    return code


def _tell(files: Files, *, assume_yes: bool) -> int:
    terminal = Terminal(unhurried=not assume_yes)
    try:
        Store.open(f"sqlite:///{files.database}").close()  # a path that cannot be used is told before any worker starts
        holds = Story(files, terminal, assume_yes=assume_yes).tell()
    except (BideError, WorkerFailed) as problem:
        print(f"\nThe demo could not go on: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has left, as `| head` does: nobody to tell
        return 141
    if not holds:
        print("\nSomething ran twice or was lost: see the lines marked ✗. This is a bug in Bide.", file=sys.stderr)
        return 1
    terminal.say(f"\n{terminal.paint('Killed twice: nothing was lost, and nothing was done twice.', BOLD, GREEN)}")
    terminal.say("Next: the 20 lines in README.md; docs/architecture.md tells how it works.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bide.demo",
        description="An order waits for a person; its workers are killed with SIGKILL on the way.",
    )
    parser.add_argument("--yes", action="store_true", help="approve the order without asking, and do not pause to read")
    parser.add_argument("--keep", action="store_true", help="keep the database and the ledger, and say where they are")
    parser.add_argument("--db", metavar="PATH", help="use this SQLite file, new or of an earlier demo, and keep it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
