"""The tour: a newcomer at the inbox, with ten minutes and a worker to kill."""

from __future__ import annotations

from collections.abc import Callable

from bide.demo.agents import ASSIGNMENTS
from bide.demo.desk import Desk
from bide.demo.terminal import BOLD, CYAN, DIM
from bide.errors import BideError
from bide.runtime.views import Wait

PACE_SECONDS = 6.0
"""How long a reader takes for a book: long enough to kill the worker meanwhile."""
SETTLE_SECONDS = 1.5

KEYS = """\
   1, 2 …  answer that one        k  kill -9 the worker     l  the log
   m  the customer's mail comes   w  start a worker         n  the agents again
   x  a mail that fits nobody     Enter  look again         q  leave"""

HINTS = (
    ("k", "Type k now: kill the worker in the middle of its work."),
    ("m", "Nobody works any more. Type m all the same: the customer's mail arrives."),
    ("1", "And decide on the refund: type its number."),
    ("w", "Now type w: a new worker takes over what the dead one left."),
    ("x", "Type n, and then x: a mail comes that does not fit, and is explained."),
    ("l", "Type l: what the database remembers."),
    ("n", "Type n to start the agents again, or q to leave."),
)


class Tour:
    """One visit."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.tried: set[str] = set()
        self._commands: dict[str, Callable[[], None]] = {
            "": lambda: None,
            "m": desk.mail,
            "x": desk.wrong_mail,
            "k": desk.kill,
            "w": self.hire,
            "l": desk.show_log,
            "n": desk.start_agents,
            "?": self.help,
        }

    def go(self) -> None:
        """Show somebody around, until they leave."""
        introduce(self.desk)
        self.desk.start_agents()
        self.desk.hire(PACE_SECONDS)
        self.help()
        while True:
            self._settle()
            self.desk.show_inbox()
            self._hint()
            typed = self.desk.terminal.read("\n> ")
            if typed is None or typed.lower() in ("q", "quit", "exit"):
                return
            self.do(typed)

    def do(self, typed: str) -> None:
        """Do what was typed; what cannot be done is said, and nothing is broken by it."""
        key = typed.lower()
        self.tried.add(key if not key.isdigit() else "1")
        try:
            if key.isdigit():
                self._answer(int(key))
            elif key in self._commands:
                self._commands[key]()
            else:
                self.desk.note(f"{typed!r:.20} is none of these:")
                self.help()
        except BideError as problem:
            self.desk.note(str(problem))

    def hire(self) -> None:
        """Start a worker, if there is none."""
        pid = self.desk.crew.pid
        if pid is None:
            self.desk.hire(PACE_SECONDS)
        else:
            self.desk.note(f"Process {pid} is at work. There could be many; here one is enough to kill.")

    def help(self) -> None:
        """Show what can be typed."""
        self.desk.terminal.say(f"\n{self.desk.terminal.paint(KEYS, DIM)}")

    def _answer(self, number: int) -> None:
        waits = self.desk.answerable()
        if not 1 <= number <= len(waits):
            self.desk.note(f"Nobody has the number {number}.")
            return
        wait = waits[number - 1]
        if wait.kind == "email":
            body = self.desk.terminal.read("  What does the customer write? ")
            self.desk.mail(body or "Yes, please!")
            return
        self._decide(wait)

    def _decide(self, wait: Wait) -> None:
        typed = self.desk.terminal.read(f"  {wait.title} [a]pprove or [r]eject? ")
        decision = {"a": "approve", "r": "reject"}.get((typed or "")[:1].lower())
        if decision is None:
            self.desk.note("Nothing was decided: it waits on. (a or r)")
        else:
            self.desk.answer(wait, decision)

    def _settle(self) -> None:
        """Give the worker a moment, so that the inbox shows what came of it."""
        if self.desk.crew.pid is not None:
            self.desk.until(self.desk.is_at_rest, SETTLE_SECONDS)
        self.desk.show_news()

    def _hint(self) -> None:
        for key, hint in HINTS:
            if key not in self.tried:
                self.desk.terminal.say(f"\n   {self.desk.terminal.paint(hint, CYAN)}")
                return


def introduce(desk: Desk) -> None:
    """Say what this is."""
    say, paint = desk.terminal.say, desk.terminal.paint
    say(paint("Bide: agents that wait for the world, and go on exactly once.", BOLD))
    say(paint(f"All that is known is in {desk.files.database}", DIM))
    say("\nThree agents, each a few lines of Python (src/bide/demo/agents.py):\n")
    for given in ASSIGNMENTS:
        first, *more = given.about.split("\n")
        say(f"   {paint(f'{given.title:<23}', BOLD)} {first}")
        for line in more:
            say(f"   {'':<23} {line}")
    say("\nThey are threads in a database. While one waits it is a few rows there, and")
    say("nothing in memory. A worker, a process of its own, drives those that can go on.\n")
    desk.terminal.breathe()
