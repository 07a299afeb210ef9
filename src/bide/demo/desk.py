"""What a person does in the demo, by the API, and what is shown of it: the same for the tour and for the story."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from bide.clock import SystemClock, elapsed, uuid7
from bide.demo.agents import ASSIGNMENTS, CUSTOMER, PAYMENTS
from bide.demo.api import Refused, signed
from bide.demo.crew import Crew, Files
from bide.demo.inbox import Wait, cut, table
from bide.demo.outside import calls_in
from bide.demo.terminal import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Terminal
from bide.runtime.views import moment

PATIENCE_SECONDS = 60.0
OVER = ("done", "failed", "cancelled")
PAGE = 500


class Desk:
    """One demo: the server, the threads that were started, and how much of the world was shown."""

    def __init__(self, files: Files, terminal: Terminal, port: int = 0) -> None:
        self.files = files
        self.terminal = terminal
        self.crew = Crew(files, port)
        self.api = self.crew.api
        self.threads: list[str] = []
        self._calls_shown = len(calls_in(files.ledger))
        self._ended: set[str] = set()

    def close(self) -> None:
        """Let everything go."""
        self.crew.dismiss()

    # ── Doing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tidy(self) -> None:
        """Cancel what an earlier demo has left unfinished in the same file; children follow."""
        for thread in self.api.get(f"/threads?limit={PAGE}")["threads"]:
            if thread["parent"] is None and thread["status"] not in OVER:
                self.api.post(f"/threads/{thread['thread_id']}/cancel", {"reason": "an earlier demo"})

    def start_agents(self) -> None:
        """Start each agent once more, on a thread with the next number."""
        for given in ASSIGNMENTS:
            number = 1 + len(self.api.get(f"/threads?graph={given.graph}&limit={PAGE}")["threads"])
            thread_id = f"{given.graph}-{number}"
            asked = {**given.input, **({"number": thread_id} if given.graph == "quote" else {})}
            body = {"assistant_id": given.graph, "input": asked, "if_not_exists": "create"}
            self.api.post(f"/threads/{thread_id}/runs", body)
            self.threads.append(thread_id)

    def hire(self, pace: float, *, works: bool = True) -> None:
        """Start a server."""
        pid = self.crew.hire(pace, works=works)
        what = "serves, and works" if works else "serves, and drives nothing"
        self.line("▸", CYAN, "server", f"process {pid} {what}")

    def kill(self) -> None:
        """Kill the server."""
        pid = self.crew.pid
        self.crew.kill()
        self.line("✗", RED, "kill -9", f"process {pid} is gone; it could not say a word")

    def mail_of(self, subject: str, body: str = "") -> dict[str, Any]:
        """Return what is sent to `POST /deliveries` when a customer's mail arrives."""
        mail = {"from": f"Ada <{CUSTOMER}>", "subject": subject, "body": body, "message_id": _mail_id()}
        return {"name": "sales", "kind": "email", "payload": mail}

    def mail(self, thread_id: str, body: str = "Yes, please!") -> None:
        """Let the customer's mail arrive."""
        delivered = self.api.post("/deliveries", self.mail_of(f"Re: your {thread_id}", body))
        self.line("✉", CYAN, "mail", f"from {CUSTOMER}: “{body}”")
        self.note(f"It was stored, and fits {delivered['threads'][0]}, which is ready to go on.")

    def wrong_mail(self) -> None:
        """Let a mail arrive that fits nobody, and tell why."""
        delivered = self.api.post("/deliveries", self.mail_of("Out of office"))
        self.line("✉", YELLOW, "mail", f"from {CUSTOMER}: Out of office")
        self.note("It is no answer, and woke nobody. GET /deliveries/… says why:")
        explained = self.api.get(f"/deliveries/{delivered['id']}")["explanation"]
        for verdict in [one for one in explained["verdicts"] if not one["fits"]][:1]:
            for reason in verdict["reasons"]:
                self.note(f"  {cut(reason, 72)}")

    def answer(self, wait: Wait, value: str) -> None:
        """Answer for a person."""
        self.api.post(f"/waits/{wait['id']}/answer", {"value": value})
        self.line("✓", GREEN, "answer", f"{value}: {wait['title']} ({wait['thread_id']})")

    def payment(self, thread_id: str) -> tuple[bytes, str]:
        """Return the bank's call about a quote, and its signature."""
        body = f'{{"quote": "{thread_id}", "amount": 90}}'.encode()
        return body, signed(self.crew.secret, body)

    def pay(self, thread_id: str) -> str:
        """Let the bank call; return what it is told."""
        said = self.api.hook(PAYMENTS, *self.payment(thread_id))
        self.line("↯", CYAN, "webhook", f"the bank: {thread_id} is paid ({said['status']})")
        return str(said["status"])

    def forge(self, thread_id: str) -> bool:
        """Let somebody call who is not the bank; return whether that was refused."""
        body, _ = self.payment(thread_id)
        try:
            self.api.hook(PAYMENTS, body, signed("a guess", body))
        except Refused as refused:
            self.line("✗", YELLOW, "webhook", f"not the bank: {refused.status}, nothing was stored")
            return refused.status == 401
        return False

    # ── Waiting ────────────────────────────────────────────────────────────────────────────────────────────────────

    def until(self, holds: Callable[[], bool], patience: float = PATIENCE_SECONDS) -> bool:
        """Wait until something holds, and return whether it did in time. A server that fails is an error at once."""
        deadline = elapsed() + patience
        while not holds():
            if elapsed() > deadline:
                return False
            _ = self.crew.pid
            time.sleep(0.1)
        return True

    def status(self, thread_id: str) -> str:
        """Return how a thread stands."""
        found = self.api.get(f"/threads?graph={thread_id.partition('-')[0]}&limit={PAGE}")["threads"]
        return next((str(one["status"]) for one in found if one["thread_id"] == thread_id), "unknown")

    def outcome(self, thread_id: str) -> str:
        """Return what a thread has come to."""
        return str(self.api.get(f"/threads/{thread_id}/state")["values"].get("outcome", ""))

    def is_over(self, thread_ids: Sequence[str]) -> bool:
        """Whether these threads have ended."""
        return all(self.status(thread_id) == "done" for thread_id in thread_ids)

    # ── Showing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def waits(self) -> list[Wait]:
        """Return who waits, longest first."""
        return list(self.api.get(f"/waits?limit={PAGE}")["waits"])

    def log(self) -> dict[str, list[str]]:
        """Return the kinds of the lines in the log of every thread."""
        found: dict[str, list[str]] = {}
        page: dict[str, Any] = {"cursor": "", "more": True}
        while page["more"]:
            page = self.api.get(f"/events?limit=1000&since={page['cursor']}")
            for event in page["events"]:
                found.setdefault(event["thread_id"], []).append(event["kind"])
        return found

    def show_news(self) -> None:
        """Show what has happened since the last look: calls to the world outside, and threads that ended."""
        calls = calls_in(self.files.ledger)
        for call in calls[self._calls_shown :]:
            again = "" if call.has_effect else "  (same key as before: no second effect)"
            self.line("·" if call.has_effect else "↻", DIM, call.what, f"{call.about}{again}")
        self._calls_shown = len(calls)
        for thread_id in self.threads:
            if thread_id not in self._ended and self.status(thread_id) == "done":
                self._ended.add(thread_id)
                self.line("✓", GREEN, thread_id, self.outcome(thread_id))

    def show_inbox(self) -> None:
        """Show who waits for what."""
        worker = "nobody listens" if self.crew.pid is None else f"server: process {self.crew.pid}"
        title = self.terminal.paint("Inbox", BOLD) + self.terminal.paint(f"{worker:>75}", DIM)
        self.terminal.say(f"\n{title}")
        now = moment(SystemClock().now())
        assert now is not None
        head, *rows = table(self.waits(), now)
        self.terminal.say(self.terminal.paint(head, DIM))
        for row in rows:
            self.terminal.say(row)
        if not rows:
            self.terminal.say("  nobody waits for anything")

    def line(self, mark: str, colour: str, what: str, about: str) -> None:
        """Show one thing that has happened."""
        self.terminal.say(f"   {self.terminal.paint(mark, colour)} {what:<11} {cut(about, 62)}")

    def note(self, text: str) -> None:
        """Say something beside it."""
        self.terminal.say(self.terminal.paint(f"     {text}", DIM))


def _mail_id() -> str:
    return f"<{uuid7(SystemClock().now())}@example.org>"
