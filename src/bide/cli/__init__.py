"""The command line: `bide`.

    commands    the list of them                      options     what they have in common, and how one is made
    desk        what a command has at hand            loading     where graphs come from
    exits       exit codes, and what to type next     arguments   JSON, @files and text that people type
    plain       values as JSON                        words       times, sizes and values for people
    tables      listings that fit the terminal        marks       signs and colours

Each other file is a small group of commands. Whatever is heavy is imported inside them: `bide --help` is fast.
"""

from __future__ import annotations

import sys

NEEDED = ("typer", "rich")
EXTRA = 'The command line needs packages that are not installed ({name} is missing): pip install "bide[cli]"\n'


def main() -> None:
    """Run the command that was typed."""
    try:
        import rich  # noqa: F401 — typer can do without, and we cannot

        from bide.cli.commands import run
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.partition(".")[0] not in NEEDED:
            raise
        sys.stderr.write(EXTRA.format(name=problem.name))
        raise SystemExit(1) from None
    run()
