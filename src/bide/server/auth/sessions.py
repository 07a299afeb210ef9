"""Sessions of browsers: the credential that somebody has signed in with, encrypted into a cookie.

Nothing is kept on the server but the key that the servers of one database share. Each request is checked as if it had
brought the credential itself, so a session never outlives a key that was revoked or a token that has expired.
"""

from __future__ import annotations

import binascii
import hmac
import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from http.cookies import CookieError, SimpleCookie

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from starlette.datastructures import Headers
from starlette.types import Scope

from bide.server.auth.credentials import Credential
from bide.store import Store
from bide.store.keys import derive
from bide.store.secret_keys import SecretKeys

COOKIE = "bide_session"
LASTS = 12 * 3600
"""Seconds after which somebody must sign in again."""
LARGEST = 3800
"""Browsers keep no cookie of more than 4096 bytes, name and all."""
_NONCE = 12


class Sessions:
    """Makes and reads the cookies of one store. Its calls touch the database: they belong into a thread."""

    def __init__(self, store: Store) -> None:
        self.clock = store.clock
        self.keys = SecretKeys(store, "sessions")

    def made(self, credential: str) -> str | None:
        """Return a cookie for whoever has shown this credential; None if no browser would keep one so large."""
        kid, key = self.keys.current()
        nonce = os.urandom(_NONCE)
        said = json.dumps([credential, self.clock.now() + LASTS * 1000]).encode()
        sealed = nonce + AESGCM(derive(key, b"session")).encrypt(nonce, said, kid.encode())
        cookie = f"{kid}.{urlsafe_b64encode(sealed).decode().rstrip('=')}"
        return cookie if len(cookie) <= LARGEST else None

    def opened(self, cookie: str) -> Credential | None:
        """Return the credential in a cookie of ours whose time is not over."""
        kid, _, text = cookie.partition(".")
        key = self.keys.find(kid)
        if key is None:
            return None
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            said = AESGCM(derive(key, b"session")).decrypt(sealed[:_NONCE], sealed[_NONCE:], kid.encode())
        except (InvalidTag, binascii.Error, ValueError):
            return None
        credential, expires_at = json.loads(said)
        if self.clock.now() >= expires_at:
            return None
        csrf = hmac.digest(derive(key, b"csrf"), sealed[:_NONCE], "sha256").hex()
        return Credential(credential, is_ambient=True, csrf=csrf, ends_at=expires_at)


def cookie_of(scope: Scope) -> str:
    """Return the cookie of a session that a request has brought, or nothing."""
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load("; ".join(Headers(scope=scope).getlist("cookie")))
    except CookieError:
        return ""
    return jar[COOKIE].value if COOKIE in jar else ""
