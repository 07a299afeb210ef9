"""Is anybody there? What was accepted rests until a worker comes: better said than waited for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bide.cli.desk import Desk


def note_if_nobody_works(desk: Desk) -> None:
    """Say so when no worker is alive, and how to start one."""
    from bide.store.survey import workers

    if desk.as_json or any(one.is_alive for one in workers(desk.store)):
        return
    desk.note(f"Nobody works right now → {how_to_work(desk)}")


def how_to_work(desk: Desk) -> str:
    """Return the command that starts a worker for the application at hand."""
    app = desk.place.app or "shop.py:app"
    return "bide worker" if os.environ.get("BIDE_APP") == app else f"bide worker --app {app}"
