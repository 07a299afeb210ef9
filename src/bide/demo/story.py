"""The story: what a visitor would do, done by itself, and every claim checked at the end."""

from __future__ import annotations

from collections.abc import Callable

from bide.demo.audit import Evidence, audit
from bide.demo.crew import WorkerFailed
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

    def tell(self) -> bool:
        """Tell it from beginning to end; return whether every claim held."""
        introduce(self.desk)
        self.desk.tidy()
        self.begin()
        self.kill_in_the_middle()
        self.answer_while_nobody_works()
        self.go_on()
        return self.check()

    # ── The chapters ───────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Start the agents and a worker, until two of them wait and the third is in the middle of its work."""
        self.chapter("The agents are started, and a worker drives them")
        self.desk.start_agents()
        self.desk.hire(pace=FOR_EVER)
        self.wait_until(lambda: len(self.desk.app.waits()) == 3 and self.books_begun() == 3, "the agents wait")
        self.desk.show_news()
        self.desk.show_inbox()

    def kill_in_the_middle(self) -> None:
        """Kill the worker inside the step of each reader."""
        self.chapter("Three readers are in the middle of a book. So:")
        self.desk.kill()
        self.desk.note("Nothing is lost: what they wait for was written before they waited.")

    def answer_while_nobody_works(self) -> None:
        """Let the world answer while there is no worker at all."""
        self.chapter("Nobody works, and the world answers all the same")
        self.desk.wrong_mail()
        self.desk.mail()
        (decision,) = [wait for wait in self.desk.answerable() if wait.thread_id in self.desk.threads]
        self.desk.answer(decision, "approve")
        self.desk.show_inbox()

    def go_on(self) -> None:
        """Let a new worker take over, to the end."""
        self.chapter("A new worker sees the dead one, and takes over")
        self.desk.hire(pace=0.0)
        self.wait_until(self.desk.is_over, "every agent is done")
        self.desk.show_news()
        self.desk.show_inbox()

    def check(self) -> bool:
        """Check what was claimed, against the database and the world outside."""
        self.chapter("Is it true?")
        app = self.desk.app
        evidence = Evidence(
            deaths=self.desk.crew.deaths,
            calls=calls_in(self.desk.files.ledger)[self.calls_before :],
            outcomes={thread_id: app.get(thread_id).values.get("outcome", "") for thread_id in self.desk.threads},
            logs={thread_id: [event.kind for event in app.store.events(thread_id)] for thread_id in self.family()},
            open_waits=sum(1 for wait in app.waits() if wait.thread_id in self.desk.threads),
        )
        findings = audit(evidence)
        for finding in findings:
            mark = ("✗", RED) if finding.problem else ("✓", GREEN)
            self.desk.terminal.say(f"   {self.desk.terminal.paint(*mark)} {finding.claim}")
            if finding.problem:
                self.desk.note(finding.problem)
        return not any(finding.problem for finding in findings)

    # ── On the way ─────────────────────────────────────────────────────────────────────────────────────────────────

    def family(self) -> list[str]:
        """Return the threads of this story, with their children."""
        return [*self.desk.threads, *(kid for each in self.desk.threads for kid in self.desk.app.children(each))]

    def books_begun(self) -> int:
        """Return how many books were opened."""
        return sum(call.what == "read" for call in calls_in(self.desk.files.ledger)[self.calls_before :])

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something that must come."""
        if not self.desk.until(holds):
            raise WorkerFailed(f"It took too long until {what}.")

    def chapter(self, title: str) -> None:
        """Begin a chapter."""
        self.chapters += 1
        self.desk.terminal.say(f"\n{self.desk.terminal.paint(f'{self.chapters}  {title}', BOLD)}")
        self.desk.terminal.breathe()
