"""Why a fact did or did not wake somebody, and what a wait still needs. Nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass

from bide.runtime.reading import wait_of
from bide.runtime.registered import Graphs
from bide.store import Store
from bide.store.queue_rows import WaitView
from bide.types import WaitStatus
from bide.waits.facts import Fact
from bide.waits.leaves import Leaf, correlations_of, leaves
from bide.waits.matching import match


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one condition says to one fact."""

    wait_id: str
    thread_id: str
    leaf: str
    fits: bool
    reasons: tuple[str, ...]
    delivery_id: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why something happened, or did not."""

    summary: str
    verdicts: tuple[Verdict, ...] = ()

    def __str__(self) -> str:
        lines = [self.summary]
        for verdict in self.verdicts:
            mark = "✓" if verdict.fits else "✗"
            lines.append(f"  {mark} thread {verdict.thread_id}, wait {verdict.wait_id} ({verdict.leaf})")
            lines += [f"      {reason}" for reason in verdict.reasons]
        return "\n".join(lines)


MOST = 50
"""How many are told about at most."""


def explain_fact(store: Store, fact: Fact, delivery_id: str | None, owner: str | None = None) -> Explanation:
    """Say who waits for facts of this kind, and why it fits them or not; of a stored one, also whom it woke."""
    verdicts: list[Verdict] = []
    for row, leaf in store.waiting_for(fact, MOST, owner):
        verdicts.append(_verdict(row, leaf, fact, delivery_id))
    woken = [] if delivery_id is None else store.woken_by(delivery_id)
    told = [
        Verdict(wait_id, thread_id, f"#{number}", True, ("this fact satisfied it",), delivery_id)
        for wait_id, number, thread_id in woken
    ]
    keys = ", ".join(correlations_of(fact)[:5])
    fitting = sum(verdict.fits for verdict in verdicts)
    if told:
        summary = f"The {fact.kind} {fact.name!r} satisfied {len(told)} condition(s)."
    elif fitting:
        summary = (
            f"The {fact.kind} {fact.name!r} fits {fitting} of {len(verdicts)} condition(s) that wait for its kind."
        )
    elif verdicts:
        summary = f"The {fact.kind} {fact.name!r} fits none of the {len(verdicts)} condition(s) that wait for its kind."
    else:
        summary = f"Nobody waits for the {fact.kind} {fact.name!r} (looked under {keys})."
    return Explanation(summary, (*told, *verdicts))


def _verdict(row: WaitView, leaf: Leaf, fact: Fact, delivery_id: str | None) -> Verdict:
    found = match(leaf.plain, fact)
    return Verdict(row.wait_id, row.thread_id, leaf.label, found.fits, found.reasons, delivery_id)


def explain_wait(store: Store, graphs: Graphs, wait_id: str) -> Explanation:
    """Say what a wait needs, what of it is there, and how the last facts of its kind do not fit."""
    row = store.wait(wait_id)
    assert row is not None, "the caller has looked"
    wait = wait_of(graphs, row)
    if row.status is not WaitStatus.OPEN or row.is_consumed:
        who = f" by {row.answered_by}" if row.answered_by else ""
        how = f" through {row.answered_via}" if row.answered_via else ""
        return Explanation(f"Wait {wait_id} of thread {row.thread_id} was {row.status.value}{who}{how}.")
    until = f", until {wait.deadline:%Y-%m-%d %H:%M:%S %Z}" if wait.deadline else ""
    summary = f"Wait {wait_id} of thread {row.thread_id} needs {wait.waiting_for}{until}."
    if row.needs.condition is None:
        return Explanation(summary)
    open_numbers, satisfied = store.satisfied(wait_id)
    verdicts: list[Verdict] = []
    for leaf in leaves(row.needs.condition, row.created_at):
        if leaf.number in satisfied:
            wake = satisfied[leaf.number]
            reasons = (f"satisfied {wake.when:%Y-%m-%d %H:%M:%S %Z}" if wake.when else "satisfied",)
            verdicts.append(Verdict(wait_id, row.thread_id, leaf.label, True, reasons, wake.delivery))
        elif leaf.number in open_numbers:
            verdicts += _why_not(store, row, leaf)
    return Explanation(summary, tuple(verdicts))


def _why_not(store: Store, row: WaitView, leaf: Leaf) -> list[Verdict]:
    if not leaf.correlation:
        what = "a decision" if leaf.kind == "approval" else "its time"
        return [Verdict(row.wait_id, row.thread_id, leaf.label, False, (f"waits for {what}",))]
    facts = store.facts_under(row.owner, leaf.correlation, 5)
    if not facts:
        reason = f"no fact came under {leaf.correlation!r}"
        return [Verdict(row.wait_id, row.thread_id, leaf.label, False, (reason,))]
    return [_verdict(row, leaf, fact, delivery_id) for delivery_id, fact in facts]
