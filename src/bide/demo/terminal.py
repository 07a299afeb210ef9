"""Words on the terminal: plain text, coloured only where a person looks at it."""

from __future__ import annotations

import os
import sys
import time

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"


class Terminal:
    """Where the demo is shown. It is unhurried only when a person reads along."""

    def __init__(self, *, unhurried: bool) -> None:
        self.unhurried = unhurried and sys.stdout.isatty()
        self.has_colours = (
            sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
        )

    def say(self, text: str = "") -> None:
        """Print a line at once."""
        print(text, flush=True)

    def paint(self, text: str, *codes: str) -> str:
        """Colour a text, if colours are wanted."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.has_colours else text

    def breathe(self) -> None:
        """Leave a moment to read."""
        if self.unhurried:
            time.sleep(0.25)

    def is_anybody_there(self) -> bool:
        """Whether somebody sits at a keyboard, and can leave by Ctrl-C."""
        return sys.stdin is not None and sys.stdin.isatty()
