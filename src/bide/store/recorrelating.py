"""The keys of waits and facts once more, out of what they are about: for another store, or for another encryption.

A key that is a hash does not say what it was made of; but the wait or the fact does.
"""

from __future__ import annotations

from bide.errors import CodecError
from bide.store.bodies import Bodies
from bide.store.correlating import written_key
from bide.store.database import Transaction
from bide.store.facts import fact_of, read_delivery_row
from bide.store.needed import open_needs
from bide.waits.leaves import correlations_of, leaves


def keys_of_wait(bodies: Bodies, tx: Transaction, owner: str, wait_id: str, needs: bytes | None) -> dict[int, str]:
    """Return what is written down for each condition of a wait; nothing, if it cannot be read."""
    try:
        plain = open_needs(bodies, tx, wait_id, needs).condition
        found = () if plain is None else leaves(plain, 0)
    except CodecError:
        return {}
    return {leaf.number: written_key(bodies, owner, leaf.correlation) for leaf in found}


def rewrite_keys_of_wait(bodies: Bodies, tx: Transaction, thread_id: str, wait_id: str, needs: bytes) -> None:
    """Write the keys of a wait as they are written today."""
    thread = tx.one("inspect_thread", {"thread_id": thread_id})
    for number, key in keys_of_wait(bodies, tx, thread[2] if thread else "", wait_id, needs).items():
        tx.run("reseal_correlation", {"wait_id": wait_id, "number": number, "correlation": key})


def rewrite_keys_of_delivery(bodies: Bodies, tx: Transaction, delivery_id: str) -> None:
    """Write the keys of a fact as they are written today."""
    stored = tx.one("read_delivery", {"delivery_id": delivery_id})
    assert stored is not None, "it was written in this transaction"
    row = read_delivery_row(stored)
    keys = correlations_of(fact_of(bodies, tx, row))
    tx.run("drop_delivery_keys", {"delivery_id": delivery_id})
    for key in keys:
        params = {"correlation": written_key(bodies, row.owner, key), "now": row.received_at}
        tx.run("insert_delivery_key", {**params, "delivery_id": delivery_id})
