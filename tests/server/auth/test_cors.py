"""Pages of other origins, names of requests, and what is said when the server itself fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bide.errors import SettingsError
from bide.server import Settings
from bide.server.settings import CorsSettings
from bide.store import Store
from tests.server.auth.doors import KEYS, WHO, serving

CHAT = "https://chat.example"
ASKED = {"origin": CHAT, "access-control-request-method": "PATCH"}


def with_cors(**said: object) -> Settings:
    return replace(KEYS, cors=CorsSettings(**{"origins": (CHAT,), **said}))  # type: ignore[arg-type]


def test_nothing_is_said_to_other_origins_unless_they_are_named(store: Store):
    with serving(store, KEYS) as client:
        preflight = client.options(WHO, headers=ASKED)
        plain = client.get(WHO, headers={"origin": CHAT})

    assert not [name for answer in (preflight, plain) for name in answer.headers if name.startswith("access-control")]
    assert preflight.status_code == 401


def test_preflight_of_a_named_origin_is_answered_without_a_key(store: Store):
    wanted = "content-type,x-api-key,authorization,last-event-id,x-auth-scheme,idempotency-key,prefer,if-match"

    with serving(store, with_cors()) as client:
        found = client.options(WHO, headers={**ASKED, "access-control-request-headers": wanted})

    assert found.status_code == 200
    assert found.headers["access-control-allow-origin"] == CHAT
    assert {"GET", "POST", "PUT", "PATCH", "DELETE"} <= set(found.headers["access-control-allow-methods"].split(", "))
    assert set(wanted.split(",")) <= set(found.headers["access-control-allow-headers"].lower().split(", "))
    assert "origin" in found.headers["vary"].lower()
    assert "access-control-allow-credentials" not in found.headers


def test_preflight_of_another_origin_is_refused(store: Store):
    with serving(store, with_cors()) as client:
        found = client.options(WHO, headers={**ASKED, "origin": "https://evil.example"})

    assert found.status_code == 400
    assert "access-control-allow-origin" not in found.headers


def test_page_may_read_what_it_needs_to_reconnect_also_of_an_error(store: Store):
    with serving(store, with_cors()) as client:
        found = client.get(WHO, headers={"origin": CHAT})

    exposed = set(found.headers["access-control-expose-headers"].split(", "))
    assert found.status_code == 401
    assert found.headers["access-control-allow-origin"] == CHAT
    assert exposed == {
        "content-location", "location", "x-pagination-total", "x-pagination-next", "x-request-id", "retry-after",
    }  # fmt: skip


@pytest.mark.parametrize("is_allowed", [True, False])
def test_pages_of_the_internet_reach_a_private_network_only_if_that_was_said(store: Store, is_allowed):
    asked = {**ASKED, "access-control-request-private-network": "true"}

    with serving(store, with_cors(private_network=is_allowed)) as client:
        found = client.options(WHO, headers=asked)

    assert (found.headers.get("access-control-allow-private-network") == "true") is is_allowed


def test_every_origin_may_be_named_without_credentials_and_never_with_them(store: Store):
    with serving(store, with_cors(origins=("*",))) as client:
        found = client.get(WHO, headers={"origin": "https://any.example", "cookie": "bide_session=x"})

    assert "access-control-allow-credentials" not in found.headers
    with pytest.raises(SettingsError, match="credentials"), serving(store, with_cors(origins=("*",), credentials=True)):
        pass


@pytest.mark.parametrize("origin", ["chat.example", "https://chat.example/app", "https://*.example", "https:"])
def test_origin_that_no_browser_would_send_is_refused_at_the_start(store: Store, origin):
    with pytest.raises(SettingsError, match="no origin"), serving(store, with_cors(origins=(origin,))):
        pass


@pytest.mark.parametrize("path", [WHO, "/health", "/no/such/thing", "/store/probe/fail"])
def test_every_response_has_an_id(store: Store, path):
    settings = replace(with_cors(), auth=Settings().auth)

    with serving(store, settings, raise_server_exceptions=False) as client:
        first, second = (client.get(path, headers={"origin": CHAT}) for _ in range(2))

    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert first.headers["access-control-allow-origin"] == CHAT


@pytest.mark.parametrize(
    ("given", "is_taken"), [("trace-1.a/b:c", True), ("x" * 129, False), ("a b", False), ("a\tb", False), ("", False)]
)
def test_id_of_the_caller_is_taken_over_if_it_is_sane(store: Store, given, is_taken):
    with serving(store) as client:
        found = client.get(WHO, headers={"x-request-id": given}).headers["x-request-id"]

    assert (found == given) is is_taken
    assert found


def test_failure_of_the_server_tells_nothing_of_itself(store: Store):
    with serving(store, Settings(), raise_server_exceptions=False) as client:
        found = client.get("/store/probe/fail")

    assert (found.status_code, found.json()) == (500, {"detail": "The server failed to answer; its log says why."})
