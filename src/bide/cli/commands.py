"""The commands, in the order in which `bide --help` lists them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from bide.cli import (
    doctor,
    facts,
    following,
    inbox,
    keys,
    looking,
    migrating,
    moving,
    pruning,
    replaying,
    running,
    schedules,
    serving,
    showing,
    version,
    working,
)
from bide.cli.options import spread

app = typer.Typer(
    name="bide",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

PANELS: dict[str, dict[str, Callable[..., Any]]] = {
    "Run": {
        "serve": serving.serve,
        "start": running.start,
        "worker": working.worker,
        "retry": running.retry,
        "release": running.release,
        "cancel": running.cancel,
    },
    "Inbox": {
        "waits": inbox.waits,
        "answer": inbox.answer,
        "wake": inbox.wake,
        "deliver": facts.deliver,
        "deliveries": facts.deliveries,
        "explain": facts.explain,
    },
    "Look": {
        "threads": looking.threads,
        "show": showing.show,
        "follow": following.follow,
        "history": looking.history,
        "fork": replaying.fork,
        "graph": looking.graph,
    },
    "Look after": {
        "doctor": doctor.doctor,
        "migrate": migrating.migrate,
        "replay-check": replaying.replay_check,
        "prune": pruning.prune,
        "backup": moving.backup,
        "export": moving.export,
        "import": moving.import_,
        "version": version.version_,
    },
}

for panel, commands in PANELS.items():
    for name, one in commands.items():
        app.command(name, rich_help_panel=panel)(one)
    if panel == "Run":
        app.add_typer(schedules.group, name="schedules", rich_help_panel=panel)
        app.add_typer(keys.group, name="keys", rich_help_panel=panel)


@app.callback(epilog="Say it once: export BIDE_APP=shop.py:app. Every command takes --json. More: docs/cli.md.")
@spread
def bide(
    version: Annotated[
        bool, typer.Option("--version", callback=version.show_version, is_eager=True, help="Say which Bide this is.")
    ] = False,
) -> None:
    """Agents and workflows that pause for the world and resume exactly once."""


def run() -> None:
    """Run the command that was typed."""
    # Whoever reads a worker's words through a pipe, as service managers do, reads each line when it is said.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    app(prog_name="bide")
