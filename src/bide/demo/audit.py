"""What the demo claims, checked against three witnesses: the workers' words, the store, the ledger outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bide.clock import Instant
from bide.demo.crew import Death
from bide.demo.shop import Call


class Step(NamedTuple):
    """One step that was committed: a checkpoint, and the nodes that led to it."""

    seq: int
    at: Instant
    ran: tuple[str, ...]


class LogLine(NamedTuple):
    """One event of the store's log, read."""

    seq: int
    at: Instant
    number: int
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """All that is known after the order has come to its end."""

    is_approved: bool
    begun: Counter[str]
    """How often the workers began each node."""
    deaths: Sequence[Death]
    steps: Sequence[Step]
    log: Sequence[LogLine]
    calls: Sequence[Call]
    state: Mapping[str, Any]
    open_questions: int

    @property
    def finished(self) -> Counter[str]:
        """How often each node finished, by the store's checkpoints."""
        return Counter(node for step in self.steps for node in step.ran)

    @property
    def killed_in(self) -> str:
        """The node whose step was cut short."""
        return "charge" if self.is_approved else "release"


class Finding(NamedTuple):
    """A claim, and what speaks against it; nothing if it holds."""

    claim: str
    problem: str = ""


def audit(evidence: Evidence) -> list[Finding]:
    """Check every claim."""
    checks = (_deaths, _finished, _replays, _effects, _retry, _state, _log)
    return [finding for check in checks for finding in check(evidence)]


def _deaths(evidence: Evidence) -> Iterator[Finding]:
    killed = [death for death in evidence.deaths if death.is_kill]
    yield Finding(
        "Two workers were killed with SIGKILL: one while waiting, one in a step.",
        "" if len(killed) == len(evidence.deaths) == 2 else f"Workers that died by SIGKILL: {len(killed)}, not 2.",
    )


def _finished(evidence: Evidence) -> Iterator[Finding]:
    expected = {"receive", "check_stock", "check_price", "reserve", "approve"}
    expected |= {"charge", "ship"} if evidence.is_approved else {"release"}
    yield Finding("Every node finished once.", _difference(evidence.finished, Counter(expected), "finished"))


def _replays(evidence: Evidence) -> Iterator[Finding]:
    replayed = {"approve", evidence.killed_in}
    expected = Counter({node: 2 if node in replayed else 1 for node in evidence.finished})
    yield Finding(
        f"Only 'approve', which asked, and {evidence.killed_in!r}, cut short, were begun twice.",
        _difference(evidence.begun, expected, "begun"),
    )


def _effects(evidence: Evidence) -> Iterator[Finding]:
    expected = Counter(["reserve", "charge", "ship"] if evidence.is_approved else ["reserve", "release"])
    effects = Counter(call.what for call in evidence.calls if call.has_effect)
    yield Finding("Every effect happened once in the world outside.", _difference(effects, expected, "effective"))


def _retry(evidence: Evidence) -> Iterator[Finding]:
    what = evidence.killed_in
    calls = [call for call in evidence.calls if call.what == what]
    keys = {call.key for call in calls}
    yield Finding(
        f"The second {what!r} came with the key of the first, and changed nothing.",
        "" if len(calls) == 2 and len(keys) == 1 else f"{what!r} was called {len(calls)} times with {len(keys)} keys.",
    )


def _state(evidence: Evidence) -> Iterator[Finding]:
    names = {"reserve": "reservation", "charge": "payment", "ship": "parcel"}
    receipts = {names[call.what]: call.receipt for call in evidence.calls if call.what in names}
    kept = {name: evidence.state[name] for name in names.values() if name in evidence.state}
    answer = evidence.state.get("approved")
    problem = "" if answer is evidence.is_approved else f"The answer {evidence.is_approved} became {answer}."
    if kept != receipts:
        problem = f"The state holds the receipts {kept}, the ledger {receipts}."
    yield Finding("The state holds the person's answer and every receipt: nothing is lost.", problem)


def _log(evidence: Evidence) -> Iterator[Finding]:
    numbers = [line.number for line in evidence.log]
    problem = "" if numbers == list(range(1, len(numbers) + 1)) else f"The log is numbered {numbers}."
    if not evidence.log or evidence.log[-1].kind != "run.done":
        problem = "The log does not end with 'run.done'."
    if evidence.open_questions:
        problem = f"Questions of the order that are still open: {evidence.open_questions}."
    yield Finding("The log has no gap and ends with run.done; no question is left open.", problem)


def _difference(found: Counter[str], expected: Counter[str], verb: str) -> str:
    """Name the first thing that did not happen as often as it should have."""
    for name in sorted({*found, *expected}):
        if found[name] != expected[name]:
            return f"{name!r} was {verb} {_times(found[name])}, and should have been {_times(expected[name])}."
    return ""


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
