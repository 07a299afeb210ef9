"""The links of a wait, as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bide.clock import Instant
from bide.runtime.views import moment
from bide.store import Store
from bide.store.signed_links import LinkRow, links_of


@dataclass(frozen=True, slots=True)
class LinkShown:
    """A link as the page of its wait shows it; its address was told once, and is not known any more."""

    id: str
    recipient: str
    leaf: str
    status: str
    expires_at: datetime | None


def links_shown(store: Store, wait_id: str) -> list[LinkShown]:
    """Return the links of a wait, newest first."""
    now = store.clock.now()
    return [
        LinkShown(row.link_id, row.recipient, row.leaf, _status(row, now), moment(row.expires_at))
        for row in reversed(links_of(store, wait_id))
    ]


def _status(row: LinkRow, now: Instant) -> str:
    if row.revoked_at is not None:
        return "withdrawn"
    if row.used_at is not None:
        return "used"
    return "expired" if row.expires_at <= now else "open"
