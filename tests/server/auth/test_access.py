"""One table says what each request needs: every route of the server is in it, and what is not is for admins."""

from __future__ import annotations

import re

import pytest

from bide.server import Settings, create_app
from bide.server.auth.access import PUBLIC, need_of
from bide.server.auth.paths import path_of, routes_of
from bide.store import Store
from tests.server.auth.doors import application

FOR_ADMINS = {
    "/keys", "/keys/{key_id}", "/audit", "/threads/prune", "/metrics", "/webhooks", "/outbox", "/outbox/{message_id}",
    "/outbox/{message_id}/retry",
}  # fmt: skip
ASKING = re.compile(r"/(search|count|history|checkpoint|versions|namespaces|events|explain|try)$")
OPEN = re.compile(r"/(ok|health|ready|favicon\.ico|login|logout)$|/(static|hooks|w)/")


def served(store: Store) -> list[tuple[str, str]]:
    api = create_app(application(store), Settings())
    routes = [route for route in routes_of(api) if getattr(route, "methods", None)]
    return [(method, route.path) for route in routes for method in sorted(route.methods)]


def test_every_route_has_a_line_of_its_own(store: Store):
    """A route that nobody has thought of is closed to all but admins: whoever adds one says here what it needs."""
    found = {(verb, path) for verb, path in served(store) if need_of(verb, filled(path)).scope == "admin"}

    assert {path for _, path in found} == FOR_ADMINS


def filled(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "x", path)


def test_only_doors_with_a_proof_of_their_own_are_open(store: Store):
    found = {path for verb, path in served(store) if need_of(verb, filled(path)).scope == PUBLIC}

    assert found
    assert not [path for path in found if not OPEN.search(path)]


def test_nothing_that_changes_something_is_a_read(store: Store):
    changes = [(verb, path) for verb, path in served(store) if verb not in ("GET", "HEAD")]
    reads = [path for verb, path in changes if need_of(verb, filled(path)).scope == "read"]

    assert reads
    assert not [path for path in reads if not ASKING.search(path)]


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/threads/t/state", "read"),
        ("HEAD", "/threads/t/state", "read"),
        ("POST", "/threads/search", "read"),
        ("POST", "/threads/t/history", "read"),
        ("POST", "/threads", "run"),
        ("POST", "/threads/t/runs/stream", "run"),
        ("POST", "/runs/wait", "run"),
        ("POST", "/runs/crons", "run"),
        ("DELETE", "/threads/t", "run"),
        ("PUT", "/store/items", "run"),
        ("POST", "/threads/t/resume", "resolve"),
        ("POST", "/waits/w/answer", "resolve"),
        ("POST", "/waits/w/snooze", "resolve"),
        ("POST", "/deliveries", "resolve"),
        ("POST", "/threads/prune", "admin"),
        ("POST", "/threads/t\n/resume", "resolve"),
        ("GET", "/metrics", "admin"),
        ("BREW", "/threads", "admin"),
        ("GET", "/threads/", "admin"),
        ("GET", "//threads", "admin"),
        ("GET", "/okay", "admin"),
        ("POST", "/ok", "admin"),
        ("GET", "/hooks", "admin"),
        ("GET", "/w/token", "public"),
    ],
)
def test_request_needs(method, path, scope):
    assert need_of(method, path).scope == scope


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ({"path": "/threads"}, "/threads"),
        ({"path": "/bide/threads", "root_path": "/bide"}, "/threads"),
        ({"path": "/bide", "root_path": "/bide"}, "/"),
        ({"path": "/bideother", "root_path": "/bide"}, "/bideother"),
    ],
    ids=str,
)
def test_path_is_that_of_the_routes_wherever_the_server_is_mounted(scope, path):
    assert path_of(scope) == path
