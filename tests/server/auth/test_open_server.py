"""A server that asks nobody who they are: on this machine alone, and not for pages of strangers."""

from __future__ import annotations

import pytest

from bide.errors import SettingsError
from bide.server import Settings
from bide.server.auth.binding import check_binding
from bide.server.settings import AuthSettings, CorsSettings
from bide.store import Store
from tests.server.auth.doors import ANSWERS, KEYS, WHO, FakeClock, serving, store_with

NONE = Settings()


def test_everybody_is_the_stores_own_owner(clock: FakeClock):
    with store_with(clock, owner="house") as store, serving(store, NONE) as client:
        found = client.get(WHO).json()

    assert (found["identity"], found["owner"]) == ("anonymous", "house")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost", "LOCALHOST", "bide.localhost"])
def test_server_without_authentication_may_listen_on_this_machine(host):
    check_binding(host, NONE)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "10.0.0.1", "192.168.1.2", "example.org", "localhost.example.org"]
)
def test_server_without_authentication_may_not_listen_elsewhere(host):
    with pytest.raises(SettingsError, match="--insecure"):
        check_binding(host, NONE)

    check_binding(host, KEYS)
    check_binding(host, NONE, insecure=True)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://testserver"}, 200),
        ({"origin": "https://chat.example"}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://testserver.evil.example"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
    ids=str,
)
def test_page_of_a_stranger_cannot_have_a_browser_answer(store: Store, headers, status):
    """A form can be sent to any address, and JSON as plain text: nothing but its origin tells it from one of ours."""
    settings = Settings(cors=CorsSettings(("https://chat.example",)))

    with serving(store, settings) as client:
        found = client.post(ANSWERS, content='{"answer": "yes"}', headers={"content-type": "text/plain", **headers})

    assert found.status_code == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:2024", 200),
        ("[::1]:2024", 200),
        ("localhost:2024", 200),
        ("bide", 200),
        ("192.168.1.2", 200),
        ("bide.example.org", 200),
        ("evil.example", 403),
        ("bide.example.org.evil.example", 403),
    ],
)
def test_name_of_a_stranger_does_not_lead_here(store: Store, host, status):
    with serving(store, Settings(public_url="https://bide.example.org")) as client:
        assert client.get(WHO, headers={"host": host}).status_code == status


def test_name_does_not_matter_where_everybody_shows_a_key(store: Store):
    with serving(store, KEYS) as client:
        assert client.get(WHO, headers={"host": "any.example"}).status_code == 401


def test_mode_that_nobody_knows_is_refused(store: Store):
    with pytest.raises(SettingsError, match="basic"), serving(store, Settings(auth=AuthSettings("basic"))):  # type: ignore[arg-type]
        pass
