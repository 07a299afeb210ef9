"""Links by which somebody may decide without an account: what each is good for, and what became of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from bide.clock import Instant
from bide.store.database import Row

if TYPE_CHECKING:
    from bide.store.store import Store

MOST_LISTED = 1000


class LinkRow(NamedTuple):
    """A link as it is stored."""

    link_id: str
    wait_id: str
    owner: str
    recipient: str
    """Who was sent it, and so who has decided."""
    actions: tuple[str, ...]
    """What may be decided with it; `*` is everything."""
    leaf: str
    """The part of the wait that it decides; "" when there is only one."""
    question: str
    """A digest of what was asked when it was made."""
    created_at: Instant
    expires_at: Instant
    used_at: Instant | None = None
    revoked_at: Instant | None = None


def put_link(store: Store, row: LinkRow) -> None:
    """Keep a new link."""
    said = {**row._asdict(), "actions": json.dumps(row.actions)}
    del said["used_at"], said["revoked_at"]
    store.database.write("put_link", lambda tx: tx.run("put_link", said))


def find_link(store: Store, link_id: str) -> LinkRow | None:
    """Read a link."""
    row = store.database.read(lambda tx: tx.one("read_link", {"link_id": link_id}))
    return None if row is None else _read(row)


def links_of(store: Store, wait_id: str) -> list[LinkRow]:
    """List the links of a wait, oldest first."""
    params = {"wait_id": wait_id, "most": MOST_LISTED}
    return [_read(row) for row in store.database.read(lambda tx: tx.all("list_links_of_wait", params))]


def use_link(store: Store, link_id: str) -> bool:
    """Note that a link has decided; return whether it had not before."""
    return _mark(store, "use_link", link_id)


def revoke_link(store: Store, link_id: str) -> bool:
    """Make a link useless; return whether it was still good for something."""
    return _mark(store, "revoke_link", link_id)


def _mark(store: Store, query: str, link_id: str) -> bool:
    params = {"link_id": link_id}
    return store.database.write(query, lambda tx: tx.run(query, {**params, "now": store.clock.now()})) == 1


def _read(row: Row) -> LinkRow:
    return LinkRow(*row)._replace(actions=tuple(json.loads(row[4])))
