"""Who waits for something like a fact: the same event with another amount, a mail from somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bide.runtime.explaining import Explanation, Verdict

if TYPE_CHECKING:
    from bide.runtime import Bide

LOOKED_AT = 2000
"""How many who wait are looked at."""
MOST = 20


def with_near_misses(app: Bide, explanation: Explanation, name: str, payload: Any, kind: str) -> Explanation:
    """Add to an explanation those who wait under other keys for facts of the same kind and name, and why it fits not."""
    from bide.waits.facts import Fact, check_fact
    from bide.waits.leaves import leaves
    from bide.waits.matching import match

    fact = check_fact(Fact(kind, name, payload, "dry-run", "dry-run", app.store.clock.now()))
    told = {(one.wait_id, one.leaf) for one in explanation.verdicts}
    near: list[Verdict] = []
    for wait in app.waits(most=LOOKED_AT):
        for leaf in () if wait.condition is None else leaves(wait.condition, 0):
            is_like = leaf.kind == kind and (kind == "email" or leaf.plain.get("name") == name)
            if is_like and (wait.id, leaf.label) not in told and len(near) < MOST:
                found = match(leaf.plain, fact)
                near.append(Verdict(wait.id, wait.thread_id, leaf.label, found.fits, found.reasons))
    if not near or explanation.verdicts:
        return Explanation(explanation.summary, (*explanation.verdicts, *near))
    waiting = "1 condition waits" if len(near) == 1 else f"{len(near)} conditions wait"
    return Explanation(f"The {kind} {name!r} fits nobody; {waiting} for one like it.", tuple(near))
