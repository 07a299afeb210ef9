"""Who calls: one way for each mode, and the same answer from all of them, a `Caller` or a refusal."""

from __future__ import annotations

import logging
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Scope

from bide.clock import Instant
from bide.errors import BideError, SettingsError
from bide.server.auth.credentials import Credential
from bide.server.auth.custom import CustomAuth
from bide.server.auth.keys import find_key
from bide.server.auth.refusal import Refused, unauthenticated
from bide.server.auth.tokens import Tokens
from bide.server.auth.users import caller_for
from bide.server.caller import ANONYMOUS, Caller
from bide.server.settings import AuthSettings
from bide.store import Store

NOTED = 60_000
"""Milliseconds for which the last use of a key need not be more exact: not every read is worth a write."""

logger = logging.getLogger("bide.auth")


class Gate(Protocol):
    """A way of authentication."""

    async def caller(self, request: Request, credential: Credential | None) -> Caller:
        """Return who has sent a request, or raise `Refused`."""
        ...

    async def admits(self, credential: Credential) -> bool:
        """Whether a credential that was let in before would be let in now."""
        ...


def gate_for(settings: AuthSettings, store: Store) -> Gate:
    """Return the way of authentication that was configured."""
    if settings.mode == "none":
        return OpenGate(store)
    if settings.mode == "keys":
        return KeyGate(store)
    if settings.mode == "jwt":
        return TokenGate(Tokens(settings.jwt, store.clock))
    if settings.mode == "custom":
        return CustomGate(CustomAuth(settings.handler))
    raise SettingsError(f"[auth] mode is none, keys, jwt or custom, not {settings.mode!r}.")


class OpenGate:
    """Nobody is asked: everything is the store's own owner's, and so is everybody."""

    def __init__(self, store: Store) -> None:
        self.everybody = Caller(identity=ANONYMOUS.identity, owner=store.bodies.owner)

    async def caller(self, request: Request, credential: Credential | None) -> Caller:
        """Let everybody in."""
        return self.everybody

    async def admits(self, credential: Credential) -> bool:
        """Let everybody stay."""
        return True


class KeyGate:
    """API keys: whoever calls acts for the key's owner, with the key's scopes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._noted: dict[str, Instant] = {}

    async def caller(self, request: Request, credential: Credential | None) -> Caller:
        """Look the key up, each time: one that was revoked opens nothing from then on."""
        if credential is None:
            raise unauthenticated("No key was sent: give it as `x-api-key`, or as `Authorization: Bearer …`.")
        return await run_in_threadpool(self._known, credential.text)

    async def admits(self, credential: Credential) -> bool:
        """Look whether it was revoked meanwhile, or has expired."""
        return await run_in_threadpool(find_key, self.store, credential.text) is not None

    def _known(self, key: str) -> Caller:
        row = find_key(self.store, key)
        if row is None:
            # Which of these it is helps nobody but who tries keys.
            raise unauthenticated("The key is unknown, revoked or expired.", error="invalid_token")
        self._note(row.key_id)
        return Caller(
            identity=f"key:{row.key_id}",
            owner=row.owner,
            scopes=frozenset(row.scopes),
            display_name=row.name,
            is_authenticated=True,
        )

    def _note(self, key_id: str) -> None:
        now = self.store.clock.now()
        if now - self._noted.get(key_id, 0) < NOTED:
            return
        self._noted[key_id] = now
        try:
            self.store.note_api_key_used(key_id)
        except BideError as problem:  # nobody is kept out because a date could not be written
            logger.warning("The last use of key %r could not be noted: %s", key_id, problem)


class TokenGate:
    """JSON Web Tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    async def caller(self, request: Request, credential: Credential | None) -> Caller:
        """Check the token; its keys may have to be fetched."""
        if credential is None:
            raise unauthenticated("No token was sent: give it as `Authorization: Bearer …`.")
        return await run_in_threadpool(self.tokens.caller, credential.text)

    async def admits(self, credential: Credential) -> bool:
        """Check it again: it has expired, or the key that signed it is gone."""
        try:
            await run_in_threadpool(self.tokens.caller, credential.text)
        except Refused as refused:
            return refused.status != 401  # an issuer that cannot be reached shuts nobody out
        return True


class CustomGate:
    """The application's own handler decides."""

    def __init__(self, custom: CustomAuth) -> None:
        self.custom = custom

    async def caller(self, request: Request, credential: Credential | None) -> Caller:
        """Ask the handler, which sees the request as it came; who is signed in by a cookie, as if by a header."""
        if credential is not None and credential.is_ambient:
            request = Request(_showing(request.scope, credential.text), request.receive)
        user = await self.custom.user(request)
        if not user.is_authenticated:
            raise unauthenticated("The application does not know who this is.")
        return caller_for(user, self.custom)

    async def admits(self, credential: Credential) -> bool:
        """Let them stay: the handler is asked about requests, and this is none."""
        return True


def _showing(scope: Scope, credential: str) -> Scope:
    """Return a scope whose headers show a credential."""
    shown = [(b"x-api-key", credential.encode()), (b"authorization", f"Bearer {credential}".encode())]
    return {**scope, "headers": [*scope["headers"], *shown]}
