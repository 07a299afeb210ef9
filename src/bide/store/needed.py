"""What a wait needs, in and out of its row; in the codec of what is nobody's own type."""

from __future__ import annotations

from typing import Any, cast

from bide.codec import Codec
from bide.store.bodies import Bodies
from bide.store.database import Transaction
from bide.store.reads import noticing_damage
from bide.store.seal import place_of
from bide.waits.needs import Needs, read_needs

PLAIN = Codec()
"""The codec of what is nobody's own type: whoever has the database can read it, without any graph."""


def needs_place(wait_id: str) -> str:
    """Return the place of what a wait needs."""
    return place_of("waits", wait_id, "needs")


def close_needs(bodies: Bodies, wait_id: str, needs: Needs) -> bytes | None:
    """Return what is stored of what a wait needs; nothing, when nothing was said."""
    plain = needs.plain()
    if not plain:
        return None
    return bodies.close_small(needs_place(wait_id), PLAIN.encode(plain, "what the wait needs"))


def open_needs(bodies: Bodies, tx: Transaction, wait_id: str, stored: bytes | None) -> Needs:
    """Read what a wait needs."""
    if stored is None:
        return Needs()
    place = needs_place(wait_id)
    opened = bodies.open(tx, place, stored)
    with noticing_damage(place):
        return read_needs(cast("dict[str, Any]", PLAIN.decode(opened, "needs")))
