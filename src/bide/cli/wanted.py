"""Waits that ask nobody: what they wait for comes from outside, from the clock, or from a child."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bide.cli.exits import CliError, Exit
from bide.cli.finding import short

if TYPE_CHECKING:
    from bide.runtime.views import Wait


def ways(wait: Wait) -> list[str] | None:
    """Return what to type for a wait that asks nobody, an empty list where time does it; None when somebody decides."""
    if wait.condition is None or wait.kind == "pause":
        return None
    from bide.waits.leaves import leaves

    found = leaves(wait.condition, 0)
    if any(leaf.kind == "approval" for leaf in found):
        return None
    return [
        f"bide deliver {leaf.plain.get('name') or leaf.plain.get('mailbox') or 'NAME'} JSON"
        + ("" if leaf.kind == "event" else f" --kind {leaf.kind}")
        for leaf in found
        if leaf.kind in ("event", "webhook", "email")
    ]


def refuse_facts(wait: Wait) -> None:
    """Refuse to answer what no person was asked: an invented fact is rarely what was meant."""
    found = ways(wait)
    if found is None or wait.status.value != "open":
        return
    bring = f"Bring it: {found[0]}." if found else "It comes by itself."
    raise CliError(
        f"Thread {wait.thread_id} waits for {wait.waiting_for}, and asks nobody. {bring} To put an answer in its place "
        f"all the same, add --force. Nothing was written.",
        Exit.INVALID,
        hints=(*found, f"bide explain {short(wait.id)}"),
    )
