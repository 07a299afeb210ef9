"""Signing in in a browser: a key goes in, a cookie comes back, and no other page can make use of it."""

from __future__ import annotations

from typing import Any

import jwt
import pytest

from bide.server import Settings
from bide.server.auth.keys import create_key, revoke_key
from bide.server.auth.login import local_path
from bide.server.auth.sessions import COOKIE, LASTS, Sessions
from bide.server.settings import AuthSettings, CorsSettings
from bide.store import Store
from tests.server.auth.doors import ANSWERS, KEYS, WHO, FakeClock, serving
from tests.server.auth.test_custom import custom, simple_auth
from tests.server.auth.test_jwt import SECRET, claims, shared

SAME = {"origin": "http://testserver"}


def sign_in(client: Any, key: str, **more: str) -> Any:
    return client.post("/login", data={"key": key, **more}, headers=SAME, follow_redirects=False)


def test_cookie_comes_for_a_key_and_opens_what_the_key_opens(store: Store):
    key, row = create_key(store, "ada's browser", "ada", ["read"])

    with serving(store) as client:
        answer = sign_in(client, key, next="/threads/t-1")
        found = client.get(WHO).json()

    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/threads/t-1")
    assert all(word in cookie for word in ("HttpOnly", "SameSite=lax", "Path=/", f"Max-Age={LASTS}"))
    assert "Secure" not in cookie
    assert key not in cookie
    assert (found["identity"], found["owner"], found["scopes"]) == (f"key:{row.key_id}", "ada", ["read"])


def test_cookie_is_for_https_alone_where_people_come_by_https(store: Store):
    key, _ = create_key(store, "one")

    with serving(store, base_url="https://testserver") as client:
        by_scheme = client.post("/login", json={"key": key})
    with serving(store, Settings(auth=AuthSettings("keys"), public_url="https://bide.example.org")) as client:
        by_setting = client.post("/login", json={"key": key})

    assert "Secure" in by_scheme.headers["set-cookie"]
    assert "Secure" in by_setting.headers["set-cookie"]


def test_wrong_key_brings_no_cookie(store: Store):
    with serving(store) as client:
        by_form = sign_in(client, "bide_wrong", next="/inbox")
        by_json = client.post("/login", json={"key": "bide_wrong"})
        nothing = client.post("/login", json=[])
        garbage = client.post("/login", content="{", headers={"content-type": "application/json"})

    assert (by_form.status_code, by_form.headers["location"]) == (303, "/login?failed=1&next=/inbox")
    assert [answer.status_code for answer in (by_json, nothing, garbage)] == [401, 401, 422]
    assert not any("set-cookie" in answer.headers for answer in (by_form, by_json, nothing, garbage))


def test_session_ends_with_its_key_or_its_time(store: Store, clock: FakeClock):
    first, row = create_key(store, "one")
    second, _ = create_key(store, "two")

    with serving(store) as client:
        sign_in(client, first)
        revoke_key(store, row.key_id)
        revoked = client.get(WHO).status_code
        sign_in(client, second)
        clock.advance(LASTS - 1)
        late = client.get(WHO).status_code
        sessions, cookie = Sessions(store), client.cookies[COOKIE]
        clock.advance(1)

    assert (revoked, late, sessions.opened(cookie)) == (401, 200, None)


@pytest.mark.parametrize(
    "change", [lambda c: c[:-2] + "AA", lambda c: "2" + c[1:], lambda c: c[:20], lambda c: "", lambda c: "1.é"]
)
def test_cookie_that_was_tampered_with_is_none(store: Store, change):
    sessions = Sessions(store)
    cookie = sessions.made("a key")

    assert sessions.opened(cookie).text == "a key"
    assert sessions.opened(change(cookie)) is None


def test_cookie_of_one_server_is_good_at_another_over_the_same_database(tmp_path, clock):
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", clock=clock) as one:
        cookie = Sessions(one).made("a key")
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", clock=clock) as other:
        assert Sessions(other).opened(cookie).text == "a key"


def test_who_is_signed_in_changes_something_only_with_the_token_of_our_own_page(store: Store):
    key, _ = create_key(store, "one")

    with serving(store) as client:
        csrf = client.post("/login", json={"key": key}, headers=SAME).json()["csrf"]
        tries = {
            "none": client.post(ANSWERS, headers=SAME),
            "wrong": client.post(ANSWERS, headers={**SAME, "x-csrf-token": csrf[::-1]}),
            "header": client.post(ANSWERS, headers={**SAME, "x-csrf-token": csrf}),
            "form": client.post(ANSWERS, headers=SAME, data={"csrf": csrf, "answer": "yes"}),
            "wrong form": client.post(ANSWERS, headers=SAME, data={"csrf": "x", "answer": "yes"}),
            "twice": client.post(ANSWERS, headers=SAME, data={"csrf": [csrf, "x"]}),
            "reading": client.get(WHO),
        }

    fine = {"header", "form", "reading"}
    assert {name: try_.status_code for name, try_ in tries.items()} == {
        name: 200 if name in fine else 403 for name in tries
    }
    assert tries["form"].json()["body"].endswith("answer=yes"), "the route reads the form again"


def test_token_of_one_session_is_no_good_in_another(store: Store):
    key, _ = create_key(store, "one")

    with serving(store) as client:
        first = client.post("/login", json={"key": key}).json()["csrf"]
        second = client.post("/login", json={"key": key}).json()["csrf"]
        found = client.post(ANSWERS, headers={**SAME, "x-csrf-token": first}).status_code

    assert (first != second, found) == (True, 403)


def test_programs_with_a_key_need_no_token(store: Store):
    key, _ = create_key(store, "one")

    with serving(store) as client:
        assert (
            client.post(ANSWERS, headers={"x-api-key": key, "origin": "https://elsewhere.example"}).status_code == 200
        )


def test_page_of_another_origin_cannot_use_a_session_nor_sign_anybody_in(store: Store):
    key, _ = create_key(store, "one")
    strange = {"origin": "https://evil.example"}

    with serving(store) as client:
        csrf = client.post("/login", json={"key": key}, headers=SAME).json()["csrf"]
        used = client.post(ANSWERS, headers={**strange, "x-csrf-token": csrf}).status_code
        signed_in = client.post("/login", json={"key": key}, headers=strange).status_code
        signed_out = client.post("/logout", headers=strange).status_code

    assert (used, signed_in, signed_out) == (403, 403, 403)


def test_origin_that_was_named_may_use_a_session_with_its_token(store: Store):
    key, _ = create_key(store, "one")
    cors = CorsSettings(("https://desk.example",), credentials=True)

    with serving(store, Settings(auth=AuthSettings("keys"), cors=cors)) as client:
        csrf = client.post("/login", json={"key": key}).json()["csrf"]
        found = client.post(ANSWERS, headers={"origin": "https://desk.example", "x-csrf-token": csrf})

    assert found.status_code == 200
    assert found.headers["access-control-allow-credentials"] == "true"


def test_signing_out_takes_the_cookie_away(store: Store):
    key, _ = create_key(store, "one")

    with serving(store) as client:
        sign_in(client, key)
        answer = client.post("/logout", data={"x": "y"}, headers=SAME, follow_redirects=False)
        after = client.get(WHO).status_code

    assert (answer.status_code, answer.headers["location"], after) == (303, "/login", 401)


def test_person_without_a_session_is_led_to_the_login_and_a_program_is_not(store: Store):
    page = {"accept": "text/html,application/xhtml+xml"}

    with serving(store) as client:
        person = client.get("/threads/t-1", headers=page, follow_redirects=False)
        script = client.get("/threads/t-1", headers={**page, "sec-fetch-mode": "cors"}, follow_redirects=False)
        program = client.get("/threads/t-1", headers={"accept": "*/*"}, follow_redirects=False)

    assert (person.status_code, person.headers["location"]) == (303, "/login?next=/threads/t-1")
    assert (script.status_code, program.status_code) == (401, 401)


@pytest.mark.parametrize("given", ["//evil.example", "https://evil.example", "/\\evil.example", "", "inbox", "/a\r\nb"])
def test_nobody_is_sent_elsewhere_after_signing_in(given):
    assert local_path(given) == "/"


def test_token_and_own_handler_can_be_signed_in_with_as_well(store: Store, clock: FakeClock):
    token = jwt.encode(claims(clock), SECRET, "HS256")

    with serving(store, shared()) as client:
        client.post("/login", json={"key": token})
        by_token = client.get(WHO).json()["identity"]
    with serving(store, custom(simple_auth())) as client:
        client.post("/login", json={"key": "eve"})
        by_handler = client.get(WHO).json()["identity"]

    assert (by_token, by_handler) == ("ada", "eve")


def test_token_too_large_for_a_cookie_is_said_to_be(store: Store, clock: FakeClock):
    token = jwt.encode(claims(clock, groups=["group"] * 600), SECRET, "HS256")

    with serving(store, shared()) as client:
        refused = client.post("/login", json={"key": token})

    assert (refused.status_code, "too large" in refused.text) == (422, True)


def test_key_in_the_headers_goes_before_the_cookie(store: Store):
    one, _ = create_key(store, "one", "ada")
    other, _ = create_key(store, "other", "bob")

    with serving(store, KEYS) as client:
        client.post("/login", json={"key": one})
        assert client.get(WHO, headers={"x-api-key": other}).json()["owner"] == "bob"
