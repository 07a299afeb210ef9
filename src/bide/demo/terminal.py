"""Words on the terminal: plain text, coloured only where a person looks at it."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Final

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
PATIENCE_SECONDS: Final = 1.0
"""How long a pipe may take to bring the next line."""


class Terminal:
    """Where the demo is shown. It is unhurried only when a person reads along."""

    def __init__(self, *, unhurried: bool) -> None:
        self.unhurried = unhurried and sys.stdout.isatty()
        self.has_colours = (
            sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
        )
        self._typed_ahead = ""

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
        """Whether somebody can type: at a keyboard, or through a pipe that has something to say."""
        if _is_keyboard():
            return True
        self._typed_ahead = _piped_line()
        return bool(self._typed_ahead)

    def read(self, prompt: str) -> str | None:
        """Return a typed line, or None when nobody can type one."""
        print(prompt, end="", flush=True)
        if _is_keyboard():
            line = sys.stdin.readline()
        else:
            line, self._typed_ahead = self._typed_ahead or _piped_line(), ""
            self.say(line.strip())
        return line.strip() if line else None


def _is_keyboard() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _piped_line() -> str:
    """Read one line of standard input; nothing if there is none, or if it stays silent: the demo must not hang."""
    line = b""
    if sys.stdin is None:
        return ""  # closed; the number 0 may by now belong to another file
    try:
        while not line.endswith(b"\n") and select.select([0], [], [], PATIENCE_SECONDS)[0]:
            letter = os.read(0, 1)
            if not letter:
                break
            line += letter
    except OSError:
        return ""
    return line.decode(errors="replace")
