"""Who calls: made once per request, by the configured way of authentication, and believed from then on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

READ, RUN, RESOLVE, ADMIN = "read", "run", "resolve", "admin"
SCOPES = (READ, RUN, RESOLVE, ADMIN)
"""What a key may be good for: to look, to start and cancel, to answer, and everything."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A person or a program, and whose things it may touch."""

    identity: str = "anonymous"
    owner: str = ""
    """Whose threads, waits and facts it sees. Never taken from a body."""
    scopes: frozenset[str] = frozenset(SCOPES)
    display_name: str = ""
    is_authenticated: bool = False
    user: Mapping[str, Any] = field(default_factory=dict)
    """What a handler of the application said about it, whole."""
    authorizer: Any = field(default=None, compare=False, repr=False)
    """Where the application itself decides what a caller may do with a thing; see `auth/authorize.py`."""

    def may(self, scope: str) -> bool:
        """Whether it may do what needs this scope."""
        return scope in self.scopes or ADMIN in self.scopes


ANONYMOUS = Caller()
"""Whoever calls a server without authentication: it is bound to loopback, and everything is theirs."""
