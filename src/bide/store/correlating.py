"""Under which keys waits and facts are written down and looked up, so that they find each other.

A key holds a part of what somebody waits for: `event:paid|order="17"`. Where bodies are hidden, it is written as a hash
that nobody can make without the encryption key. After a change of keys, what was written before is found as well: one
looks up under every key that is known.
"""

from __future__ import annotations

from bide.store.bodies import Bodies


def owned(owner: str, key: str) -> str:
    """Return a key as an owner's own: nobody's facts wake another's threads."""
    return f"{owner}\n{key}" if owner else key


def written_key(bodies: Bodies, owner: str, key: str) -> str:
    """Return what is written down for a correlation key; for none, nothing."""
    return bodies.seal.correlation(owned(owner, key)) if key else ""


def known_keys(bodies: Bodies, owner: str, key: str) -> tuple[str, ...]:
    """Return all that may have been written down for a correlation key, what is written today last.

    In this order nobody misses what `reseal()` is writing anew: it is there still, or it is there already.
    """
    return bodies.seal.correlations(owned(owner, key)) if key else ("",)
