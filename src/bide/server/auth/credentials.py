"""What a request shows to be let in: a key or a token, out of its headers."""

from __future__ import annotations

from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.types import Scope

from bide.clock import Instant

LONGEST = 16 * 1024
"""More bytes are no credential, whatever they are."""


class Credential(NamedTuple):
    """A key or a token, and whether the browser sent it by itself, as a cookie."""

    text: str
    is_ambient: bool = False
    csrf: str = ""
    """What a page must say again when it changes something with a credential that is sent by itself."""
    ends_at: Instant | None = None
    """When the session is over in which it was sent, if it was sent in one."""


def credential_of(scope: Scope) -> Credential | None:
    """Return what the headers of a request show: `x-api-key`, or else `Authorization: Bearer …`."""
    headers = Headers(scope=scope)
    found = headers.get("x-api-key", "").strip() or _bearer(headers.get("authorization", ""))
    return Credential(found) if found and len(found) <= LONGEST else None


def _bearer(said: str) -> str:
    scheme, _, token = said.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
