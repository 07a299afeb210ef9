"""Signs and colours: the same everywhere, and never the only way to tell something."""

from __future__ import annotations

STYLES = {
    "queued": "dim",
    "ready": "blue",
    "running": "cyan",
    "waiting": "yellow",
    "blocked": "red",
    "dead": "bold red",
    "done": "green",
    "failed": "red",
    "cancelled": "dim",
    "open": "yellow",
    "answered": "green",
    "expired": "red",
    "matched": "green",
    "unmatched": "yellow",
    "pending": "blue",
}
"""How a status looks."""

OK, WARNING, FAILED, NOTE, NEXT = "✓", "!", "✗", "·", "→"


def style_of(status: object) -> str:
    """Return the colour of a status."""
    return STYLES.get(str(status), "")
