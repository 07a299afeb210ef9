"""What the story claims, checked against two witnesses: the database, and the ledger of the world outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bide.demo.crew import Death
from bide.demo.outside import Call

EFFECTS = Counter({"mail": 1, "order": 1, "pay": 1, "read": 3, "publish": 1})
"""How often each thing is to happen in the world outside."""


@dataclass(frozen=True)
class Evidence:
    """All that is known after the story has come to its end."""

    deaths: Sequence[Death]
    calls: Sequence[Call]
    outcomes: Mapping[str, str]
    """What each of the three threads ended with."""
    logs: Mapping[str, Sequence[str]]
    """The kinds of the lines in the log of each thread, those of children too."""
    hooks: Sequence[str]
    """What the webhook was told, call by call."""
    open_waits: int


class Finding(NamedTuple):
    """A claim, and what speaks against it; nothing if it holds."""

    claim: str
    problem: str = ""


def audit(evidence: Evidence) -> list[Finding]:
    """Check every claim."""
    checks = (_death, _effects, _retries, _outcomes, _hooks, _logs, _inbox)
    return [finding for check in checks for finding in check(evidence)]


def _death(evidence: Evidence) -> Iterator[Finding]:
    killed = [death for death in evidence.deaths if death.is_kill]
    reaped = sum("run.reaped" in kinds for kinds in evidence.logs.values())
    problem = "" if len(killed) == len(evidence.deaths) == 2 else f"Servers that died by SIGKILL: {len(killed)}, not 2."
    if not problem and reaped != 3:
        problem = f"Threads that were taken over: {reaped}, not 3."
    yield Finding("Two servers were killed, one amid three steps; a third took over.", problem)


def _effects(evidence: Evidence) -> Iterator[Finding]:
    happened = Counter(call.what for call in evidence.calls if call.has_effect)
    different = [what for what in sorted({*happened, *EFFECTS}) if happened[what] != EFFECTS[what]]
    problem = "" if not different else f"{different[0]!r} happened {happened[different[0]]} times."
    yield Finding("Every mail, payment, order and book happened once in the world outside.", problem)


def _retries(evidence: Evidence) -> Iterator[Finding]:
    keys = Counter(call.key for call in evidence.calls)
    repeated = Counter(call.what for call in evidence.calls if keys[call.key] > 1 and call.has_effect)
    problem = "" if repeated == Counter({"read": 3}) else f"What was called again: {dict(repeated) or 'nothing'}."
    yield Finding("Only what was cut short was called again, each time with its first key.", problem)


def _outcomes(evidence: Evidence) -> Iterator[Finding]:
    said = " ".join(evidence.outcomes.values())
    missing = [word for word in ("Yes, please!", "and paid", "120 EUR back", "published:") if word not in said]
    problem = "" if not missing else f"No thread knows of {missing[0]!r}."
    yield Finding("What came while nobody worked was heard: the mail, and the decision.", problem)


def _hooks(evidence: Evidence) -> Iterator[Finding]:
    told = list(evidence.hooks)
    problem = "" if told == ["forged", "delivered", "duplicate"] else f"The webhook was told {told}."
    yield Finding("The bank's call counted once; the forged one not at all.", problem)


def _logs(evidence: Evidence) -> Iterator[Finding]:
    unfinished = [thread_id for thread_id, kinds in evidence.logs.items() if list(kinds[-1:]) != ["run.done"]]
    answered = sum(list(kinds).count("wait.answered") for kinds in evidence.logs.values())
    problem = "" if not unfinished else f"The log of {unfinished[0]} does not end with run.done."
    if not problem and answered != 4:
        problem = f"Waits that were answered: {answered}, not 4."
    yield Finding("Every wait was answered once, and every thread came to its end.", problem)


def _inbox(evidence: Evidence) -> Iterator[Finding]:
    problem = "" if not evidence.open_waits else f"Still open: {evidence.open_waits}."
    yield Finding("Nobody waits any more.", problem)
