"""The tour: what a newcomer clicks and types, while the server runs, and comes back however often it is killed."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from http.client import HTTPException

from bide.demo.agents import ASSIGNMENTS, PAYMENTS
from bide.demo.crew import ServerFailed
from bide.demo.desk import Desk
from bide.demo.terminal import BOLD, CYAN, DIM, RED

PACE_SECONDS = 20.0
"""How long a reader takes for a book: long enough to kill the server meanwhile."""
LOOK_SECONDS = 0.5


class Tour:
    """One visit."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def go(self) -> None:
        """Show somebody around, until they leave by Ctrl-C."""
        introduce(self.desk)
        self.desk.hire(PACE_SECONDS)
        self.desk.start_agents()
        self.show_stops()
        self.desk.terminal.say(f"\n{self.desk.terminal.paint('What happens (Ctrl-C leaves):', BOLD)}")
        while True:
            self.look_after()
            with suppress(OSError, HTTPException):  # it was killed this very moment: the next look finds out
                self.desk.show_news()
            time.sleep(LOOK_SECONDS)

    def look_after(self) -> None:
        """Start the server again when somebody has killed it."""
        death = self.desk.crew.death
        if death is None:
            return
        if not death.is_kill:
            _ = self.desk.crew.pid  # which tells why
            raise ServerFailed(f"Server {death.pid} ended by itself.")
        self.desk.crew.bury()
        self.desk.line("✗", RED, "kill -9", f"process {death.pid} is gone; it could not say a word")
        self.desk.hire(PACE_SECONDS)

    def show_stops(self) -> None:
        """Print what to click and what to type."""
        say, paint, url = self.desk.terminal.say, self.desk.terminal.paint, self.desk.api.url
        quote = self.desk.threads[0]
        mail = json.dumps(self.desk.mail_of(f"Re: your {quote}", "Yes, please!"))
        body, signature = self.desk.payment(quote)
        start = json.dumps({"assistant_id": "refund", "input": {"customer": "Grace", "amount": 7}})
        books = json.dumps({"graph": "research", "input": {"topics": ["stars", "clouds", "winters"]}})
        say(f"\n   {paint('Open', BOLD)}  {paint(f'{url}/', CYAN)}  the inbox; {url}/docs  the API")
        stops = (
            ("In the inbox, approve the refund. The thread goes on while you look.", ""),
            ("The customer answers: the quote was waiting for this mail.", f"curl {url}/deliveries --json '{mail}'"),
            (
                "The bank calls, signed. Without the signature it is refused; twice counts once.",
                f"curl {url}/hooks/{PAYMENTS} -H 'x-hub-signature-256: {signature}' --json '{body.decode()}'",
            ),
            (
                "Three more readers; kill the server in the middle of their books. It comes back here, and goes on.",
                f"curl {url}/conversations/weather -H 'Prefer: wait=2' --json '{books}'; kill -9 {self.desk.crew.pid}",
            ),
            ("Start another refund, and wait until it asks.", f"curl {url}/runs/wait --json '{start}'"),
            (
                "Look from outside.",
                f"curl {url}/waits; curl {url}/metrics; curl -N {url}/events -H accept:text/event-stream",
            ),
        )
        for number, (about, typed) in enumerate(stops, 1):
            say(f"\n   {paint(str(number), BOLD)}  {about}")
            if typed:
                say(f"      {paint(typed, DIM)}")


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
    say("nothing in memory. A server, a process of its own, drives those that can go on.\n")
    desk.terminal.breathe()
