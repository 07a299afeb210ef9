"""How far long work is, on stderr: for people, and only where they look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bide.cli.desk import Desk

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
