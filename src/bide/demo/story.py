"""The story: what a visitor would do, done by itself over HTTP, and every claim checked at the end."""

from __future__ import annotations

from collections.abc import Callable

from bide.demo.audit import Evidence, audit
from bide.demo.crew import ServerFailed
from bide.demo.desk import Desk
from bide.demo.outside import calls_in
from bide.demo.terminal import BOLD, GREEN, RED
from bide.demo.tour import introduce

FOR_EVER = 3600.0


class Story:
    """One telling."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.chapters = 0
        self.calls_before = len(calls_in(desk.files.ledger))
        self.hooks: list[str] = []

    def tell(self) -> bool:
        """Tell it from beginning to end; return whether every claim held."""
        introduce(self.desk)
        self.begin()
        self.kill_in_the_middle()
        self.answer_while_nobody_works()
        self.go_on()
        return self.check()

    # ── The chapters ───────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Start the server and the agents, until two of them wait and the third is in the middle of its work."""
        self.chapter("A server is started, and three agents by POST /threads/…/runs")
        self.desk.hire(pace=FOR_EVER)
        self.desk.tidy()
        self.desk.start_agents()
        self.wait_until(lambda: len(self.desk.waits()) == 3 and self.books_begun() == 3, "the agents wait")
        self.desk.show_news()
        self.desk.show_inbox()

    def kill_in_the_middle(self) -> None:
        """Kill the server inside the step of each reader."""
        self.chapter("Three readers are in the middle of a book. So:")
        self.desk.kill()
        self.desk.note("Nothing is lost: what they wait for was written before they waited.")

    def answer_while_nobody_works(self) -> None:
        """Let the world answer where nobody drives anything, and let that server die as soon as it has said yes."""
        self.chapter("A server without a worker: the world answers all the same")
        self.desk.hire(pace=FOR_EVER, works=False)
        self.desk.wrong_mail()
        self.desk.mail(self.quote)
        if self.desk.forge(self.quote):
            self.hooks.append("forged")
        (decision,) = [wait for wait in self.desk.waits() if wait["kind"] == "approval"]
        self.desk.answer(decision, "approve")
        self.desk.show_inbox()
        self.desk.terminal.say()
        self.desk.kill()
        self.desk.note("Whatever it had said yes to is in the database.")

    def go_on(self) -> None:
        """Let a new server take over, to the end."""
        self.chapter("A new server sees the dead ones, and takes over")
        self.desk.hire(pace=0.0)
        quote, *others = self.desk.threads
        self.wait_until(lambda: self.desk.is_over(others), "the others are done")
        self.wait_until(self.waits_for_the_bank, "the quote waits for its payment")
        self.desk.show_news()
        self.desk.show_inbox()
        self.desk.terminal.say()
        self.hooks += [self.desk.pay(quote), self.desk.pay(quote)]
        self.wait_until(lambda: self.desk.is_over([quote]), "every agent is done")
        self.desk.show_news()
        self.desk.show_inbox()

    def check(self) -> bool:
        """Check what was claimed, against the database and the world outside."""
        self.chapter("Is it true?")
        family, log = self.family(), self.desk.log()
        evidence = Evidence(
            deaths=self.desk.crew.deaths,
            calls=calls_in(self.desk.files.ledger)[self.calls_before :],
            outcomes={thread_id: self.desk.outcome(thread_id) for thread_id in self.desk.threads},
            logs={thread_id: log.get(thread_id, []) for thread_id in family},
            hooks=self.hooks,
            open_waits=sum(1 for wait in self.desk.waits() if wait["thread_id"] in self.desk.threads),
        )
        findings = audit(evidence)
        for finding in findings:
            mark = ("✗", RED) if finding.problem else ("✓", GREEN)
            self.desk.terminal.say(f"   {self.desk.terminal.paint(*mark)} {finding.claim}")
            if finding.problem:
                self.desk.note(finding.problem)
        return not any(finding.problem for finding in findings)

    # ── On the way ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def quote(self) -> str:
        """The thread of the quote."""
        return self.desk.threads[0]

    def waits_for_the_bank(self) -> bool:
        """Whether the quote has come to its last wait."""
        return any(wait["thread_id"] == self.quote and wait["kind"] == "webhook" for wait in self.desk.waits())

    def family(self) -> list[str]:
        """Return the threads of this story, with their children."""
        children = [self.desk.api.get(f"/threads/{one}/children?limit=500")["threads"] for one in self.desk.threads]
        return [*self.desk.threads, *(kid["thread_id"] for kids in children for kid in kids)]

    def books_begun(self) -> int:
        """Return how many books were opened."""
        return sum(call.what == "read" for call in calls_in(self.desk.files.ledger)[self.calls_before :])

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something that must come."""
        if not self.desk.until(holds):
            raise ServerFailed(f"It took too long until {what}.")

    def chapter(self, title: str) -> None:
        """Begin a chapter."""
        self.chapters += 1
        self.desk.terminal.say(f"\n{self.desk.terminal.paint(f'{self.chapters}  {title}', BOLD)}")
        self.desk.terminal.breathe()
