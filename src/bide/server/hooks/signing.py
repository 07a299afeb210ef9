"""With which secrets messages are signed: those that are set up, or some that the server has made itself."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping

from bide.server.hooks.receivers import OF_RUNS
from bide.server.hooks.sending import read_secrets
from bide.server.settings import WebhookSettings
from bide.store import Store
from bide.store.secret_keys import SecretKeys

PURPOSE = "webhooks"
"""Of the keys that the servers of one database share."""


class Signing:
    """The secrets of one server's receivers."""

    def __init__(self, store: Store, endpoints: Mapping[str, WebhookSettings]) -> None:
        self._keys = SecretKeys(store, PURPOSE)
        self._endpoints = endpoints

    def secrets_for(self, name: str, owner: str) -> tuple[bytes, ...]:
        """Return the secrets of a receiver, all of which sign: while one is replaced, the old and the new."""
        endpoint = self._endpoints.get(name)
        if endpoint is not None and endpoint.secret is not None:
            return read_secrets(endpoint.secret)
        # Each owner's own, where clients name the receivers: nobody can sign what another receives.
        whose = f"{OF_RUNS}/{owner}" if name == OF_RUNS else name
        keys = [self._keys.current().key, *self._older()]
        return tuple(dict.fromkeys(hmac.digest(key, f"bide: {whose}".encode(), "sha256") for key in keys))

    def shown_for(self, name: str, owner: str) -> str:
        """Return the secrets as a receiver is told them."""
        return " ".join(f"whsec_{b64encode(secret).decode()}" for secret in self.secrets_for(name, owner))

    def _older(self) -> list[bytes]:
        found = (self._keys.find(kid) for kid in reversed(self._keys.kids()[:-1]))
        return [key for key in found if key is not None]
