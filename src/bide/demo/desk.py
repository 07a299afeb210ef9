"""What a person can do in the demo, and what is shown of it: the same for the tour and for the story."""

from __future__ import annotations

import time
from collections.abc import Callable

from bide import Bide
from bide.clock import elapsed, uuid7
from bide.demo.agents import ASSIGNMENTS, CUSTOMER, agents
from bide.demo.crew import Crew, Files
from bide.demo.inbox import answerable, cut, table
from bide.demo.outside import Outside, calls_in
from bide.demo.terminal import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Terminal
from bide.runtime.views import Wait, Woken, moment

PATIENCE_SECONDS = 30.0
AT_WORK = ("ready", "running")


class Desk:
    """One demo: the application over its database, the worker beside it, and how much of the world was shown."""

    def __init__(self, files: Files, terminal: Terminal) -> None:
        self.files = files
        self.terminal = terminal
        self.app = Bide(f"sqlite:///{files.database}", agents(Outside(files.ledger)))
        self.crew = Crew(files)
        self.threads: list[str] = []
        self._calls_shown = len(calls_in(files.ledger))
        self._ended: set[str] = set()

    def close(self) -> None:
        """Let everything go."""
        self.crew.dismiss()
        self.app.close()

    # ── Doing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tidy(self) -> None:
        """Cancel what an earlier demo has left unfinished in the same file."""
        for thread in self.app.list(most=10_000):
            self.app.cancel(thread.thread_id, reason="an earlier demo")

    def start_agents(self) -> None:
        """Start each agent once more, on a thread with the next number."""
        for given in ASSIGNMENTS:
            number = 1 + len(self.app.list(graph=given.graph, most=10_000))
            run = self.app.start(given.graph, given.input, thread_id=f"{given.graph}-{number}")
            self.threads.append(run.thread_id)

    def hire(self, pace: float) -> None:
        """Start a worker."""
        pid = self.crew.hire(pace)
        self.line("▸", CYAN, "worker", f"process {pid} has begun to work")

    def kill(self) -> None:
        """Kill the worker."""
        pid = self.crew.pid
        if pid is None:
            self.note("There is no worker to kill. Type w for a new one.")
            return
        self.crew.kill()
        self.line("✗", RED, "kill -9", f"process {pid} is gone; it could not say a word")

    def mail(self, body: str = "Yes, please!") -> None:
        """Let the customer's mail arrive."""
        mail = {"from": f"Ada <{CUSTOMER}>", "subject": "Re: your quote", "body": body, "message_id": self._mail_id()}
        delivered = self.app.deliver("sales", mail, kind="email")
        self.line("✉", CYAN, "mail", f"from {CUSTOMER}: “{body}”")
        if delivered.threads:
            self.note(f"It was stored, and fits {delivered.threads[0]}, which is ready to go on.")
        else:
            self.note("Nobody waits for it now. It is kept: whoever begins to wait within a day gets it.")

    def wrong_mail(self) -> None:
        """Let a mail arrive that fits nobody, and tell why."""
        mail = {"from": f"Ada <{CUSTOMER}>", "subject": "Out of office", "message_id": self._mail_id()}
        delivered = self.app.deliver("sales", mail, kind="email")
        self.line("✉", YELLOW, "mail", f"from {CUSTOMER}: Out of office")
        self.note("It is no answer, and woke nobody. app.explain(delivery) says why:")
        for line in str(self.app.explain(delivered.id)).splitlines():
            self.note(f"  {cut(line, 72)}")

    def answer(self, wait: Wait, value: str) -> Woken:
        """Answer for a person."""
        woken = self.app.wake(wait.id, value, by="you", via="demo")
        self.line("✓", GREEN, "answer", f"{value}: {wait.title} ({wait.thread_id})")
        return woken

    def _mail_id(self) -> str:
        return f"<{uuid7(self.app.store.clock.now())}@example.org>"

    # ── Waiting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def until(self, holds: Callable[[], bool], patience: float = PATIENCE_SECONDS) -> bool:
        """Wait until something holds, and return whether it did in time. A worker that fails is an error at once."""
        deadline = elapsed() + patience
        while not holds():
            if elapsed() > deadline:
                return False
            _ = self.crew.pid
            time.sleep(0.05)
        return True

    def is_at_rest(self) -> bool:
        """Whether nothing can go on by itself."""
        return all(thread.status not in AT_WORK for thread in self.app.list(most=1000))

    def is_over(self) -> bool:
        """Whether every thread of this demo has ended."""
        return all(self.app.get(thread_id).status == "done" for thread_id in self.threads)

    # ── Showing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def waits(self) -> list[Wait]:
        """Return who waits, longest first, with what they have so far."""
        return [self.app.wait(wait.id) for wait in self.app.waits()]

    def answerable(self) -> list[Wait]:
        """Return those that have a number in the inbox."""
        return answerable(self.app.waits())

    def show_news(self) -> None:
        """Show what has happened since the last look: calls to the world outside, and threads that ended."""
        calls = calls_in(self.files.ledger)
        for call in calls[self._calls_shown :]:
            again = "" if call.has_effect else "  (same key as before: no second effect)"
            self.line("·" if call.has_effect else "↻", DIM, call.what, f"{call.about}{again}")
        self._calls_shown = len(calls)
        for thread_id in self.threads:
            thread = self.app.get(thread_id)
            if thread.status == "done" and thread_id not in self._ended:
                self._ended.add(thread_id)
                self.line("✓", GREEN, thread_id, thread.values["outcome"])

    def show_inbox(self) -> None:
        """Show who waits for what."""
        pid = self.crew.pid
        worker = "nobody works" if pid is None else f"worker: process {pid}"
        title = self.terminal.paint("Inbox", BOLD) + self.terminal.paint(f"{worker:>75}", DIM)
        self.terminal.say(f"\n{title}")
        waits = self.waits()
        now = moment(self.app.store.clock.now())
        assert now is not None
        head, *rows = table(waits, now)
        self.terminal.say(self.terminal.paint(head, DIM))
        for row in rows:
            self.terminal.say(row)
        if not rows:
            self.terminal.say("     nobody waits for anything")

    def show_log(self) -> None:
        """Show what the database remembers of this demo's threads."""
        for thread_id in self.threads:
            self.terminal.say(f"\n   {self.terminal.paint(thread_id, BOLD)}")
            for event in self.app.store.events(thread_id):
                at = moment(event.at)
                self.terminal.say(f"   {at:%H:%M:%S}  {event.kind}")

    def line(self, mark: str, colour: str, what: str, about: str) -> None:
        """Show one thing that has happened."""
        self.terminal.say(f"   {self.terminal.paint(mark, colour)} {what:<11} {cut(about, 62)}")

    def note(self, text: str) -> None:
        """Say something beside it."""
        self.terminal.say(self.terminal.paint(f"     {text}", DIM))
