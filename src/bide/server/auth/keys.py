"""API keys: `bide_<id>_<secret>`. Whoever is given one sees it once; the store keeps a hash.

The secret is 256 random bits, so a plain SHA-256 is as good as a slow hash: there is nothing to guess from.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Sequence
from hashlib import sha256
from secrets import token_hex

from bide.clock import Instant
from bide.errors import SettingsError
from bide.server.caller import READ, RESOLVE, RUN, SCOPES
from bide.store import Store
from bide.store.api_keys import ApiKeyRow

_FORM = re.compile(r"bide_([0-9a-f]{16})_([0-9a-f]{64})")
_NO_HASH = sha256(b"").hexdigest()
LONGEST_NAME = 200
DEFAULT_SCOPES = (READ, RUN, RESOLVE)


def create_key(
    store: Store,
    name: str,
    owner: str | None = None,
    scopes: Collection[str] = DEFAULT_SCOPES,
    expires: Instant | None = None,
) -> tuple[str, ApiKeyRow]:
    """Make a key; return it, which nobody can do again, and what is kept of it.

    Whoever calls with it acts for `owner`: by default the store's own. `expires` is the instant from which on it opens
    nothing.
    """
    said = frozenset([scopes] if isinstance(scopes, str) else scopes)
    unknown = sorted(said - set(SCOPES))
    if unknown or not said:
        raise SettingsError(f"A key is good for one or more of {', '.join(SCOPES)}; {unknown or 'nothing'} was said.")
    if not name or len(name) > LONGEST_NAME:
        raise SettingsError(f"Give the key a name of at most {LONGEST_NAME} characters: who is going to use it?")
    if expires is not None and expires <= store.clock.now():
        raise SettingsError("The key would have expired already: `expires` lies in the past. Nothing was made.")
    key_id, secret = token_hex(8), token_hex(32)
    key = f"bide_{key_id}_{secret}"
    owner = store.bodies.owner if owner is None else owner
    return key, store.add_api_key(key_id, hash_of(key), owner=owner, name=name, scopes=said, expires_at=expires)


def list_keys(store: Store, owner: str | None = None, *, after: str = "", most: int = 100) -> Sequence[ApiKeyRow]:
    """List what is kept of keys: of one owner, or of all; also those that were revoked."""
    return store.api_keys(owner, after=after, most=most)


def revoke_key(store: Store, key_id: str) -> bool:
    """Let a key open nothing any more, from the next request on; return whether it did until now."""
    return store.revoke_api_key(key_id)


def find_key(store: Store, key: str) -> ApiKeyRow | None:
    """Return what is kept of a key, if it opens anything at this moment."""
    form = _FORM.fullmatch(key)
    if form is None:
        return None
    row = store.api_key(form[1])
    # Compared in any case, and in the same time wherever the difference is: how long it takes tells nothing.
    is_same = hmac.compare_digest(hash_of(key), _NO_HASH if row is None else row.hash)
    return row if row is not None and is_same and row.is_good(store.clock.now()) else None


def hash_of(key: str) -> str:
    """Return what the store keeps of a key."""
    return sha256(key.encode()).hexdigest()
