"""Words on the terminal: plain text, coloured only where a person looks at it."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Final

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
PATIENCE_SECONDS: Final = 1.0
"""How long a pipe may take to bring the answer."""

_YES = {"", "y", "yes"}
_NO = {"n", "no"}


class Terminal:
    """Where the story is told. It is unhurried only when a person reads along."""

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
            time.sleep(0.25)  # seven times in a telling

    def ask(self, question: str, *, assume_yes: bool) -> bool:
        """Ask a person for yes or no. Without a person the answer is taken from a pipe, or is yes, with a note."""
        prompt = f"   {question} [Y/n] "
        if assume_yes:
            self.say(f"{prompt}y   (--yes)")
            return True
        answer = self._read(prompt)
        while answer is not None and answer not in _YES | _NO:
            self.say("   Please answer y or n.")
            answer = self._read(prompt)
        if answer is None:
            self.say("   (nobody is there to answer: taking yes, as with --yes)")
        return answer not in _NO

    def _read(self, prompt: str) -> str | None:
        """Return a typed line, or None when nobody can type one."""
        print(prompt, end="", flush=True)
        if sys.stdin is not None and sys.stdin.isatty():
            line = sys.stdin.readline()
        else:
            line = _piped_line()
            self.say(line.strip())
        return line.strip().lower() if line else None


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
