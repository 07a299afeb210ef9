"""What each request needs: one table of method and path, read from the top; what is not in it is for admins.

A route that is added and forgotten here is closed, not open. `/threads/{id}/runs` with an answer in its body needs
`resolve` as well as `run`: only the route can see that, and asks for it there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from bide.server.caller import ADMIN, READ, RESOLVE, RUN

PUBLIC = "public"
"""No caller is asked for: the route has its own proof (a signature, a token), or there is nothing to protect."""
STREAM = "stream"
"""What is limited together with its own kind: those who reconnect must not use up what is left for answers."""
DOOR = "door"
"""Doors without a key, limited by address: whoever knocks too often waits."""
FREE = "free"
"""What is never limited: signs of life, and the files of a page."""


class Need(NamedTuple):
    """What a request needs, and with which others it is counted."""

    scope: str
    kind: str


_FREE = Need(PUBLIC, FREE)
_DOOR = Need(PUBLIC, DOOR)
_STREAM = Need(READ, STREAM)
_READ = Need(READ, READ)
_RUN = Need(RUN, RUN)
_RESOLVE = Need(RESOLVE, RESOLVE)
_ADMIN = Need(ADMIN, ADMIN)

# {} is one part of a path, {*} all that is left of it.
_TABLE: tuple[tuple[str, str, Need], ...] = (
    ("GET", "/ok", _FREE),
    ("GET", "/health", _FREE),
    ("GET", "/ready", _FREE),
    ("GET", "/static/{*}", _FREE),
    ("GET", "/favicon.ico", _FREE),
    ("*", "/hooks/{*}", _DOOR),
    ("*", "/w/{*}", _DOOR),
    ("*", "/login", _DOOR),
    ("POST", "/logout", _DOOR),
    # Streams
    ("GET", "/events", _STREAM),
    ("GET", "/events/{*}", _STREAM),
    ("GET", "/threads/{}/stream", _STREAM),
    ("GET", "/threads/{}/runs/{}/stream", _STREAM),
    ("GET", "/threads/{}/runs/{}/join", _STREAM),
    ("GET", "/runs/{}/stream", _STREAM),
    ("GET", "/runs/{}/join", _STREAM),
    ("*", "/threads/{}/stream/events", _STREAM),
    # Reads that are a POST
    ("POST", "/assistants/search", _READ),
    ("POST", "/assistants/count", _READ),
    ("POST", "/assistants/{}/versions", _READ),
    ("POST", "/threads/search", _READ),
    ("POST", "/threads/count", _READ),
    ("POST", "/threads/{}/history", _READ),
    ("POST", "/threads/{}/state/checkpoint", _READ),
    ("POST", "/runs/crons/search", _READ),
    ("POST", "/runs/crons/count", _READ),
    ("POST", "/store/items/search", _READ),
    ("POST", "/store/namespaces", _READ),
    ("POST", "/waits/search", _READ),
    ("POST", "/waits/count", _READ),
    ("POST", "/deliveries/explain", _READ),
    # For whoever runs the server
    ("*", "/keys", _ADMIN),
    ("*", "/keys/{*}", _ADMIN),
    ("*", "/audit", _ADMIN),
    ("POST", "/threads/prune", _ADMIN),
    # Forms of the inbox
    ("GET", "/inbox/live", _STREAM),
    ("POST", "/inbox/waits/{*}", _RESOLVE),
    ("POST", "/inbox/threads/{*}", _RUN),
    ("POST", "/inbox/agents/{*}", _RUN),
    ("POST", "/inbox/schedules/{*}", _RUN),
    ("POST", "/inbox/deliveries/try", _READ),
    # Answers, and what else settles or changes a wait
    ("POST", "/waits/{*}", _RESOLVE),
    ("PATCH", "/waits/{*}", _RESOLVE),
    ("DELETE", "/waits/{*}", _RESOLVE),
    ("POST", "/links/{*}", _RESOLVE),
    ("DELETE", "/links/{*}", _RESOLVE),
    ("POST", "/threads/{}/resume", _RESOLVE),
    ("POST", "/deliveries", _RESOLVE),
    ("POST", "/deliveries/{*}", _RESOLVE),
    # Everything that starts, changes or stops something
    ("*", "/runs", _RUN),
    *((method, path, _RUN) for method in ("POST", "PUT", "PATCH", "DELETE") for path in (
        "/threads", "/threads/{*}", "/runs/{*}", "/assistants", "/assistants/{*}", "/store/{*}", "/schedules",
        "/schedules/{*}", "/conversations", "/conversations/{*}",
    )),
    # Looking
    *(("GET", path, _READ) for path in (
        "/", "/info", "/docs", "/openapi.json", "/threads", "/threads/{*}", "/runs/{*}",
        "/assistants", "/assistants/{*}", "/store/{*}", "/waits", "/waits/{*}", "/links", "/links/{*}", "/deliveries",
        "/deliveries/{*}", "/schedules", "/schedules/{*}", "/conversations", "/conversations/{*}", "/inbox",
        "/inbox/{*}", "/agents", "/agents/{*}", "/graphs", "/graphs/{*}",
    )),
)  # fmt: skip


_PARTS = re.compile(r"(\{\*?\})")
_GAPS = {"{}": "[^/]+", "{*}": ".+"}


def _pattern(path: str) -> re.Pattern[str]:
    # A thread's id may hold anything, also a line break.
    return re.compile("".join(_GAPS.get(part) or re.escape(part) for part in _PARTS.split(path)), re.DOTALL)


_RULES = tuple((method, _pattern(path), need) for method, path, need in _TABLE)
SHORT = 256
_SAFE = frozenset(["GET", "HEAD", "OPTIONS"])


def need_of(method: str, path: str) -> Need:
    """Return what a request needs; one that is in no line needs everything."""
    verb = "GET" if method == "HEAD" else method
    # What strangers send is remembered only where it is short: else they would fill the memory with it.
    return _remembered(verb, path) if len(path) + len(verb) <= SHORT else _looked_up(verb, path)


def _looked_up(method: str, path: str) -> Need:
    return next(
        (need for verb, pattern, need in _RULES if verb in (method, "*") and pattern.fullmatch(path)),
        _ADMIN,
    )


_remembered = lru_cache(4096)(_looked_up)


def is_safe(method: str) -> bool:
    """Whether a request of this method changes nothing."""
    return method in _SAFE
