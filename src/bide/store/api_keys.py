"""Keys of the server's API as the store keeps them: a hash, whose it is, what it is good for, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from bide.clock import Instant

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from bide.store.database import Row
    from bide.store.store import Store


class ApiKeyRow(NamedTuple):
    """A key as it stands. The key itself is known to nobody but who was given it."""

    key_id: str
    hash: str
    owner: str
    name: str
    scopes: tuple[str, ...]
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    used_at: Instant | None

    def is_good(self, now: Instant) -> bool:
        """Whether it opens anything at this moment."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class ApiKeys:
    """The part of a `Store` that keeps the keys of servers."""

    @property
    def _keeping(self) -> Store:
        return cast("Store", self)

    def add_api_key(
        self,
        key_id: str,
        hash_: str,
        *,
        owner: str,
        name: str,
        scopes: Collection[str],
        expires_at: Instant | None = None,
    ) -> ApiKeyRow:
        """Keep the hash of a new key."""
        store = self._keeping
        now = store.clock.now()
        row = ApiKeyRow(key_id, hash_, owner, name, tuple(sorted(scopes)), now, expires_at, None, None)
        said = {"key_id": key_id, "hash": hash_, "owner": owner, "name": name, "scopes": " ".join(row.scopes)}
        store.database.write(
            "add_key", lambda tx: tx.run("add_api_key", {**said, "now": now, "expires_at": expires_at})
        )
        return row

    def api_key(self, key_id: str) -> ApiKeyRow | None:
        """Read a key by its id, also one that was revoked."""
        row = self._keeping.database.read(lambda tx: tx.one("read_api_key", {"key_id": key_id}))
        return None if row is None else _row(row)

    def api_keys(self, owner: str | None = None, *, after: str = "", most: int = 100) -> Sequence[ApiKeyRow]:
        """List the keys of an owner, or all; go on behind the last one that was seen."""
        params = {"owner": owner, "after": after, "most": most}
        return [_row(row) for row in self._keeping.database.read(lambda tx: tx.all("list_api_keys", params))]

    def revoke_api_key(self, key_id: str) -> bool:
        """Let a key open nothing any more; return whether it did until now."""
        params = {"key_id": key_id, "now": self._keeping.clock.now()}
        return self._keeping.database.write("revoke_key", lambda tx: tx.run("revoke_api_key", params)) > 0

    def note_api_key_used(self, key_id: str) -> None:
        """Write down that a key was used a moment ago."""
        params = {"key_id": key_id, "now": self._keeping.clock.now()}
        self._keeping.database.write("use_key", lambda tx: tx.run("use_api_key", params))


def _row(row: Row) -> ApiKeyRow:
    return ApiKeyRow(*row)._replace(scopes=tuple(row[4].split()))
