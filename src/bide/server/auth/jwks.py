"""Public keys of whoever issues tokens: from a URL or a file, kept for a while, and read again when they change."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from bide.clock import Clock, Instant
from bide.errors import SettingsError
from bide.server.auth.binding import is_loopback
from bide.server.auth.refusal import Refused

FRESH = 300_000
"""Milliseconds for which keys are believed without a look."""
PATIENCE = 10_000
"""Between two looks for a key that nobody knows: whoever invents ids must not make us ask the issuer each time."""
STALE = 3_600_000
"""For so long the keys that are known still count while the issuer cannot be reached."""
TIMEOUT = 5.0
LARGEST = 1024 * 1024

logger = logging.getLogger("bide.auth")


class Jwks:
    """A set of keys by their ids. Calls may wait for a network: they belong into a thread."""

    def __init__(self, source: str, clock: Clock) -> None:
        self.source = source
        self.clock = clock
        self.is_url = "://" in source
        if self.is_url:
            _check_url(source)
        self._lock = Lock()
        self._keys: Mapping[str, Mapping[str, Any]] = {}
        self._made: dict[tuple[str, str], PyJWK] = {}
        self._read_at: Instant | None = None
        self._tried_at: Instant | None = None

    def key(self, key_id: str, algorithm: str) -> PyJWK | None:
        """Return the key with an id, if it may be used with an algorithm."""
        self._look_again(key_id)
        self._check_age()
        said = self._keys.get(key_id)
        if said is None or said.get("alg", algorithm) != algorithm:
            return None
        try:
            return self._made.setdefault((key_id, algorithm), PyJWK(dict(said), algorithm))
        except PyJWTError as problem:
            logger.warning("Key %r of %r cannot be used with %s: %s", key_id, self.source, algorithm, problem)
            return None

    def _look_again(self, key_id: str) -> None:
        """Read the keys again if they are old, or if the one that is asked for is not among them."""
        if not self._is_due(key_id):
            return
        # Whoever has a key goes on with it while somebody else asks the issuer, who may take long to answer.
        if not self._lock.acquire(blocking=key_id not in self._keys):
            return
        try:
            if self._is_due(key_id):
                self._read(self.clock.now())
        finally:
            self._lock.release()

    def _is_due(self, key_id: str) -> bool:
        now = self.clock.now()
        if self._tried_at is not None and now - self._tried_at < PATIENCE:
            return False
        return self._read_at is None or now - self._read_at >= FRESH or key_id not in self._keys

    def _read(self, now: Instant) -> None:
        self._tried_at = now
        try:
            found = read_keys(self._fetched())
        except (OSError, ValueError) as problem:
            logger.warning("The keys of whoever issues tokens cannot be read from %r: %s", self.source, problem)
            return
        self._keys, self._made, self._read_at = found, {}, now

    def _check_age(self) -> None:
        if self._read_at is None or self.clock.now() - self._read_at > STALE:
            raise Refused(
                503,
                "The keys by which tokens are checked cannot be read at present; the server's log says why.",
                {"Retry-After": str(PATIENCE // 1000)},
            )

    def _fetched(self) -> bytes:
        if not self.is_url:
            return Path(self.source).read_bytes()
        request = Request(self.source, headers={"Accept": "application/json"})
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT) as response:
            found: bytes = response.read(LARGEST + 1)
        if len(found) > LARGEST:
            raise ValueError(f"it is larger than {LARGEST} bytes")
        return found


class _NoRedirect(HTTPRedirectHandler):
    """The address was chosen by whoever set the server up; where it leads to was not."""

    def redirect_request(self, *arguments: Any, **_: Any) -> NoReturn:
        """Refuse to be sent elsewhere."""
        raise URLError("it leads to another address; name that one")


def read_keys(text: bytes) -> dict[str, Mapping[str, Any]]:
    """Read a key set: those that sign, and of a kind that we know; one without an id has the empty one."""
    said = json.loads(text)
    if not isinstance(said, dict) or not isinstance(said.get("keys"), list):
        raise ValueError("it is no set of keys: {'keys': […]}")
    found: dict[str, Mapping[str, Any]] = {
        str(one.get("kid", "")): one for one in said["keys"] if isinstance(one, dict) and _signs(one)
    }
    if not found:
        raise ValueError("there is no key in it that signs, of a kind that is known here (RSA, EC, Ed25519)")
    return found


def _signs(key: Mapping[str, Any]) -> bool:
    # A shared secret has no place among public keys: everybody could sign with it.
    return key.get("use", "sig") == "sig" and key.get("kty") in ("RSA", "EC", "OKP")


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return
    raise SettingsError(
        f"The keys of tokens would be read from {url!r}: whoever is on the way could put their own there. Use https."
    )
