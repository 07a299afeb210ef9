"""The story: start an order, kill its worker while it waits, kill the next one inside a step, and arrive anyway."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from bide import StateSnapshot, Store
from bide.clock import Instant
from bide.codec import Codec
from bide.demo.audit import Evidence, LogLine, Step, audit
from bide.demo.crew import Death, Files, Worker, worker
from bide.demo.orders import order_graph
from bide.demo.shop import calls_of
from bide.demo.terminal import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Terminal

AFTER_ALL = 2**62
ORDER = {"item": "Teapot", "count": 3}
RESULTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "receive": lambda result: f"{ORDER['count']} × {result['item']}",
    "check_stock": lambda result: "on the shelf" if result["in_stock"] else "sold out",
    "check_price": lambda result: f"{result['total']} EUR",
    "reserve": lambda result: f"goods put aside: {result['reservation']}",
    "approve": lambda result: f"interrupt() returns {result['approved']}",
    "charge": lambda result: f"paid: {result['payment']}",
    "ship": lambda result: f"sent: {result['parcel']}",
    "release": lambda result: "goods are back on the shelf",
}


class Story:
    """One telling. It remembers what the workers said and how they died."""

    def __init__(self, files: Files, terminal: Terminal, *, assume_yes: bool) -> None:
        self.files = files
        self.terminal = terminal
        self.assume_yes = assume_yes
        self.order = f"order-{secrets.token_hex(3)}"
        self.config = {"configurable": {"thread_id": self.order}}
        self.begun: Counter[str] = Counter()
        self.deaths: list[Death] = []

    def tell(self) -> bool:
        """Tell it from beginning to end; return whether every claim held."""
        say, paint = self.terminal.say, self.terminal.paint
        say(paint("Bide: an order waits for a person, and two workers are killed on the way.", BOLD))
        say(paint(f"Everything it knows is in {self.files.database}", DIM))
        question = self.first_worker()
        is_approved = self.person(question)
        cut_short = "charge" if is_approved else "release"
        self.second_worker(cut_short, is_approved=is_approved)
        self.third_worker()
        evidence = self.evidence(is_approved=is_approved)
        self.show_timeline(evidence)
        self.show_ledger(evidence)
        return self.show_audit(evidence)

    # ── The chapters ───────────────────────────────────────────────────────────────────────────────────────────────

    def first_worker(self) -> str:
        """Start the order, and kill the worker while the thread waits. Return what the person is asked."""
        with worker(self.files, self.order, "start", json.dumps(ORDER)) as first:
            self.chapter(f"A worker starts {self.order}", first)
            question: str = self.follow(first, "waits")["question"]
            self.note("The thread is saved and waits; it needs no process any more. So:")
            self.kill(first)
        return question

    def person(self, question: str) -> bool:
        """Show the question as it lies in the database, and have it answered."""
        self.chapter("No worker is left. The question is in the database:")
        with Store.open(f"sqlite:///{self.files.database}") as store:
            for wait in store.open_waits():
                if wait.thread_id == self.order:
                    self.line("?", CYAN, wait.node, f"asks, thread {wait.thread_id}")
        return self.terminal.ask(question, assume_yes=self.assume_yes)

    def second_worker(self, cut_short: str, *, is_approved: bool) -> None:
        """Go on with the answer, and kill the worker inside a step."""
        words = (json.dumps(is_approved), "--stop-in", cut_short)
        with worker(self.files, self.order, "answer", *words) as second:
            self.chapter("A new process goes on with the answer", second)
            self.follow(second, "inside")
            done = "The card is charged" if cut_short == "charge" else "The goods are back"
            self.line("▸", YELLOW, cut_short, f"is inside its step. {done} …")
            self.note("… and before the worker can write that down:")
            self.kill(second)

    def third_worker(self) -> None:
        """Take over what the dead worker left, to the end."""
        with worker(self.files, self.order, "go-on") as third:
            self.chapter("A third process sees the dead worker and takes over", third)
            self.follow(third, "done")
            third.let_go()

    def follow(self, driver: Worker, until: str) -> dict[str, Any]:
        """Show what a worker does until it tells what is waited for."""
        told: dict[str, Any] = {}
        for told in driver.told(until):
            if told["what"] == "begun":
                self.begun[told["node"]] += 1
                if self.begun[told["node"]] > 1:
                    self.line("↻", YELLOW, told["node"], "runs again from its top")
            elif told["what"] == "called" and not told["has_effect"]:
                self.note("the same idempotency key as before: no second effect", indent=18)
            elif told["what"] == "finished":
                self.show_finished(told["node"], told["result"])
        return told

    def show_finished(self, node: str, result: Mapping[str, Any] | None) -> None:
        """Show that a node has finished, or that it asks: then it has written nothing."""
        if node == "approve" and not result:
            self.line("?", CYAN, node, "asks a person")
        else:
            self.line("✓", GREEN, node, RESULTS[node](result or {}))

    def kill(self, victim: Worker) -> None:
        """Kill a worker, visibly."""
        self.terminal.breathe()
        death = victim.kill()
        self.deaths.append(death)
        self.line("✗", RED, "kill -9", f"process {death.pid} is gone")
        self.terminal.breathe()

    # ── What came of it ────────────────────────────────────────────────────────────────────────────────────────────

    def evidence(self, *, is_approved: bool) -> Evidence:
        """Collect what the store and the world outside know."""
        with Store.open(f"sqlite:///{self.files.database}") as store:
            events = store.events(self.order)
            history = [*order_graph(store).get_state_history(self.config, order="asc")]
            waits = [wait for wait in store.open_waits(most=10_000) if wait.thread_id == self.order]
        return Evidence(
            is_approved=is_approved,
            begun=self.begun,
            deaths=self.deaths,
            steps=[_step(before, after) for before, after in pairwise(history)],
            log=[LogLine(event.seq, event.at, event.number, event.kind, _read_body(event.body)) for event in events],
            calls=calls_of(self.files.ledger, self.order),
            state=history[-1].values,
            open_questions=len(waits),
        )

    def show_timeline(self, evidence: Evidence) -> None:
        """Show the store's checkpoints and its log, with the two deaths where they happened."""
        self.heading("What the database remembers: checkpoints and store.events()")
        # A checkpoint comes before the events that were written with it.
        lines = [(step.at, step.seq, 0, "step", ", ".join(step.ran)) for step in evidence.steps]
        lines += [(line.at, line.seq, line.number, line.kind, _worded(line)) for line in evidence.log]
        lines += [(death.at, AFTER_ALL, 0, "kill -9", f"process {death.pid}") for death in evidence.deaths]
        start: Instant = min(line[0] for line in lines)
        for at, _, _, kind, text in sorted(lines):
            painted = self.terminal.paint(f"{kind:<15}", RED if kind == "kill -9" else CYAN)
            self.terminal.say(f"   {(at - start) / 1000:6.2f} s  {painted} {text}".rstrip())

    def show_ledger(self, evidence: Evidence) -> None:
        """Show what the world outside saw, call by call."""
        self.heading("What the world outside wrote down")
        for call in evidence.calls:
            effect = "done" if call.has_effect else "seen before, so no second effect"
            self.terminal.say(f"   {call.what:<8} key {call.key[:8]}…  {call.receipt:<10} {effect}")

    def show_audit(self, evidence: Evidence) -> bool:
        """Show every claim with its verdict."""
        self.heading("Checked")
        findings = audit(evidence)
        for finding in findings:
            mark = self.terminal.paint("✗", RED) if finding.problem else self.terminal.paint("✓", GREEN)
            self.terminal.say(f"   {mark} {finding.claim}")
            if finding.problem:
                self.terminal.say(f"     {self.terminal.paint(finding.problem, RED)}")
        return not any(finding.problem for finding in findings)

    # ── How it looks ───────────────────────────────────────────────────────────────────────────────────────────────

    def chapter(self, title: str, driver: Worker | None = None) -> None:
        """Begin a part of the story."""
        self.terminal.breathe()
        self.heading(title if driver is None else f"{title} (process {driver.pid})")

    def heading(self, title: str) -> None:
        """Show a title."""
        self.terminal.say(f"\n{self.terminal.paint(title, BOLD)}")

    def line(self, mark: str, colour: str, name: str, text: str) -> None:
        """Show one thing that happened."""
        self.terminal.say(f"   {self.terminal.paint(mark, colour)} {name:<12} {text}")

    def note(self, text: str, indent: int = 3) -> None:
        """Say something in the margin."""
        self.terminal.say(" " * indent + self.terminal.paint(text, DIM))


def _read_body(body: bytes) -> Mapping[str, Any]:
    read = Codec().decode(body, "event")
    assert isinstance(read, dict)
    return read


def _step(before: StateSnapshot, after: StateSnapshot) -> Step:
    """Read a finished step from two checkpoints: what stood next before it is what ran."""
    seq = int(after.config["configurable"]["checkpoint_id"].rpartition("-")[2])
    at = datetime.fromisoformat(after.created_at or "")
    return Step(seq, round(at.timestamp() * 1000), before.next)


def _worded(line: LogLine) -> str:
    body = line.body
    if line.kind == "run.started":
        return "next: " + ", ".join(body["next"])
    if line.kind == "run.waiting":
        return ", ".join(f"{ask['node']} asks" for ask in body["asks"])
    if line.kind == "run.resumed":
        return ", ".join(f"{node} is answered: {answer}" for node, answer in body["answers"].items())
    return f"from the dead worker (epoch {body['epoch']})" if line.kind == "run.taken_over" else ""
