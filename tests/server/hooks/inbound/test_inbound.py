"""`POST /hooks/{name}`: a call is believed, stored and matched before its sender is told so, and counts once."""

from __future__ import annotations

import json
import logging
import threading

import httpx
import pytest

from bide.errors import SettingsError, StoreUnavailableError
from bide.server import Settings, create_app
from bide.server.settings import HookSettings, LimitSettings
from tests.server.hooks.inbound.calling import BODY, JSON, NOW, SECRET, SIGNERS, TIMED, github, hook, slack
from tests.server.running import running_server

SCHEMES = [*SIGNERS, "none"]


def signed(scheme, body=BODY, **how):
    return {**JSON, **(SIGNERS[scheme](body, **how) if scheme in SIGNERS else {})}


@pytest.mark.seed("test_triggers.py::webhook fires")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_call_wakes_the_thread_that_waits_for_it(world, scheme):
    client = world.serve(hook(scheme))
    world.wait(scheme)

    answer = client.post(f"/hooks/{scheme}", content=BODY, headers=signed(scheme))

    assert answer.status_code == 200
    assert answer.json()["status"] == "delivered"
    assert answer.json()["woke"] == 1
    assert world.came() == json.loads(BODY)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_same_call_again_changes_nothing_and_is_told_what_came_of_the_first(world, scheme):
    client = world.serve(hook(scheme))
    world.wait(scheme)
    first = client.post(f"/hooks/{scheme}", content=BODY, headers=signed(scheme)).json()
    world.came()
    world.wait(scheme, "another", lookback="0s")

    # Signed anew, as a sender does that has not heard the answer.
    again = client.post(f"/hooks/{scheme}", content=BODY, headers=signed(scheme, at=NOW + 5))

    assert again.status_code == 200
    assert again.json() == {**first, "status": "duplicate"}
    assert len(world.app.deliveries()) == 1
    assert world.came("another") is None


def test_a_call_for_which_nobody_waits_is_kept_for_whoever_waits_later(world):
    client = world.serve(hook("standard"))

    answer = client.post("/hooks/standard", content=BODY, headers=signed("standard"))
    world.wait("standard")

    assert (answer.status_code, answer.json()["status"], answer.json()["woke"]) == (202, "stored", 0)
    assert world.came() == json.loads(BODY)


@pytest.mark.seed("test_triggers.py::bad token, unknown or no auth is 404")
@pytest.mark.parametrize("scheme", SIGNERS)
def test_whoever_cannot_sign_is_told_nothing_but_that(small, scheme, caplog):
    """There it is 404. Here the address is no secret, and 401 tells an honest sender to look at its secret."""
    client = small.serve(hook(scheme))
    good = signed(scheme)
    bad = [
        JSON,
        {**good, **SIGNERS[scheme](key="whsec_AAAA" if scheme == "standard" else "guessed")},
        {**good, **SIGNERS[scheme](BODY + b" ")},
        *(
            [{**good, **SIGNERS[scheme](at=NOW - 301)}, {**good, **SIGNERS[scheme](at=NOW + 301)}]
            if scheme in TIMED
            else []
        ),
    ]

    with caplog.at_level(logging.WARNING, "bide.server.hooks"):
        answers = [client.post(f"/hooks/{scheme}", content=BODY, headers=headers) for headers in bad]

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert not small.app.deliveries()
    assert len(caplog.messages) == len(bad)
    assert not any(SECRET in line for line in caplog.messages)


def test_a_captured_call_stays_dead(small):
    client = small.serve(hook("standard"))
    captured = signed("standard")
    client.post("/hooks/standard", content=BODY, headers=captured)

    at_once = client.post("/hooks/standard", content=BODY, headers=captured)
    renamed = client.post("/hooks/standard", content=BODY, headers={**captured, "webhook-id": "msg_2"})
    small.clock.advance("6m")
    later = client.post("/hooks/standard", content=BODY, headers=captured)

    assert (at_once.status_code, at_once.json()["status"]) == (200, "duplicate")
    assert (renamed.status_code, later.status_code) == (401, 401)
    assert len(small.app.deliveries()) == 1


def test_githubs_id_is_not_signed_so_a_hook_may_go_by_the_body(small):
    client = small.serve(hook("github"), hook("github", name="strict", known_by="body"))

    told = [
        client.post(f"/hooks/{name}", content=BODY, headers={**JSON, **github(name=guid)}).json()["status"]
        for name in ("github", "strict")
        for guid in ("one", "two")
    ]

    assert told == ["stored", "stored", "stored", "duplicate"]


def test_slack_is_told_that_the_address_is_ours(small):
    body = json.dumps({"type": "url_verification", "challenge": "3eZbrw1aB"}).encode()
    client = small.serve(hook("slack"))

    answer = client.post("/hooks/slack", content=body, headers={**JSON, **slack(body)})
    forged = client.post("/hooks/slack", content=body, headers={**JSON, **slack(body, key="guessed")})

    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1aB"})
    assert forged.status_code == 401
    assert not small.app.deliveries()


FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("headers", "body", "payload"),
    [
        ({"content-type": "application/json; charset=utf-8"}, b"[1, null]", [1, None]),
        ({"content-type": "application/vnd.shop+json"}, b'{"a": 1.5}', {"a": 1.5}),
        (FORM, b"a=1&b=x+y&b=z&c=", {"a": "1", "b": ["x y", "z"], "c": ""}),
        ({"content-type": "text/plain"}, "grüße".encode(), "grüße"),
        ({}, b'{"a": 1}', {"a": 1}),
        ({}, b"just words", "just words"),
        ({"content-type": "application/json"}, b"", None),
    ],
)
def test_a_body_is_what_its_type_says(small, headers, body, payload):
    client = small.serve(hook("none"))
    small.wait("none")

    answer = client.post("/hooks/none", content=body, headers=headers)

    assert answer.status_code == 200
    assert small.came() == payload


@pytest.mark.parametrize("scheme", ["github", "slack"])
def test_json_in_the_field_of_a_form_is_the_payload(small, scheme):
    body = b"payload=%7B%22action%22%3A%20%22opened%22%7D"
    client = small.serve(hook(scheme))
    small.wait(scheme)

    client.post(f"/hooks/{scheme}", content=body, headers={**FORM, **SIGNERS[scheme](body)})

    assert small.came() == {"action": "opened"}


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, b"{", 400),
        (JSON, b'{"a": NaN}', 400),
        (JSON, b'{"a": "\xff"}', 400),
        (JSON, b"[" * 100_000, 400),
        (JSON, b"1" * 5000, 400),
        (FORM, b"a=%ff", 400),
        ({"content-type": "text/plain"}, b"\xff\xfe", 400),
        ({"content-type": "application/octet-stream"}, b"\x00", 415),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        ({**JSON, "content-encoding": "gzip"}, b"\x1f\x8b", 415),
        (JSON, b"[" * 70 + b"]" * 70, 422),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_and_not_stored(small, headers, body, status):
    client = small.serve(hook("none"))

    answer = client.post("/hooks/none", content=body, headers=headers)

    assert (answer.status_code, bool(answer.json()["detail"])) == (status, True)
    assert not small.app.deliveries()


@pytest.mark.seed("test_triggers.py::oversized is 413")
def test_a_body_of_ten_megabytes_is_refused_before_it_is_read(small):
    client = small.serve(hook("standard"), limits=LimitSettings(body=1000, public_rate=0))
    large = json.dumps("x" * 10 * 1024 * 1024).encode()

    def in_pieces():
        yield from (large[begin : begin + 65536] for begin in range(0, len(large), 65536))

    said = client.post("/hooks/standard", content=large, headers=signed("standard", large))
    not_said = client.post("/hooks/standard", content=in_pieces(), headers=signed("standard", large))

    assert (said.status_code, not_said.status_code) == (413, 413)
    assert not small.app.deliveries()


def test_a_body_that_is_larger_than_the_store_takes_is_refused(small):
    large = json.dumps("x" * 5 * 1024 * 1024).encode()

    answer = small.serve(hook("standard")).post("/hooks/standard", content=large, headers=signed("standard", large))

    assert answer.status_code == 413
    assert not small.app.deliveries()


@pytest.mark.seed("test_triggers.py::bad token, unknown or no auth is 404")
def test_a_hook_that_is_not_there_is_not_found(small):
    client = small.serve(hook("none"))

    assert client.post("/hooks/other", content=BODY).status_code == 404
    assert client.post("/hooks/none/more", content=BODY).status_code in (404, 405)
    assert client.get("/hooks/none").status_code == 405


def test_headers_that_were_asked_for_come_along(small):
    client = small.serve(hook("github", headers=("X-GitHub-Event", "X-Other")))
    small.wait("github")

    client.post("/hooks/github", content=BODY, headers=signed("github"))

    assert small.came() == {"body": json.loads(BODY), "headers": {"x-github-event": "push", "x-other": None}}


def test_a_hook_wakes_threads_of_its_owner_only(world):
    client = world.serve(hook("none", name="ours", owner="ada"), hook("none", name="theirs", owner="bob"))
    world.wait("ours", "adas", owner="ada")
    world.wait("theirs", "adas too", owner="ada")

    told = [client.post(f"/hooks/{name}", content=BODY, headers=JSON).json()["woke"] for name in ("ours", "theirs")]

    assert told == [1, 0]


def test_a_call_that_cannot_be_stored_is_not_acknowledged(small, monkeypatch):
    client = small.serve(hook("standard"))
    write = small.store.database.write
    broken = True

    def failing(name, work):
        if broken and name == "deliver":
            raise StoreUnavailableError("The disk is full.")
        return write(name, work)

    monkeypatch.setattr(small.store.database, "write", failing)
    refused = client.post("/hooks/standard", content=BODY, headers=signed("standard"))
    broken = False
    taken = client.post("/hooks/standard", content=BODY, headers=signed("standard"))

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert (taken.status_code, taken.json()["status"]) == (202, "stored")


@pytest.mark.parametrize("kinds", [("one",) * 12, tuple(f"id-{number}" for number in range(12))], ids=["same", "own"])
def test_senders_that_call_at_the_same_moment_wake_a_thread_once(world, kinds):
    world.wait("standard")
    settings = Settings(hooks=(hook("standard"),), worker=False, limits=LimitSettings(public_rate=0))
    told = []

    with running_server(create_app(world.app, settings)) as address:
        barrier = threading.Barrier(len(kinds))

        def call(name):
            with httpx.Client() as client:
                barrier.wait()
                headers = signed("standard", name=name)
                told.append(client.post(f"{address}/hooks/standard", content=BODY, headers=headers))

        threads = [threading.Thread(target=call, args=(name,)) for name in kinds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert {answer.status_code for answer in told} <= {200, 202}
    assert [answer.json()["status"] for answer in told].count("delivered") == 1
    assert len(world.app.deliveries()) == len(set(kinds))
    assert len({answer.json()["delivery_id"] for answer in told}) == len(set(kinds))
    assert world.came() == json.loads(BODY)
    assert [event.kind for event in world.store.events("t")].count("wait.answered") == 1


@pytest.mark.parametrize(
    ("hooks", "why"),
    [
        ([HookSettings("a")], "no secrets"),
        ([HookSettings("a", "none", secrets=("x",))], "checks nothing"),
        ([HookSettings("a", secrets=("not base64!",))], "base64"),
        ([HookSettings("a/b", "none")], "name"),
        ([HookSettings("a", "none"), HookSettings("a", "none")], "another one"),
        ([HookSettings("a", "github", secrets=("x",), headers=("Authorization",))], "secret"),
    ],
)
def test_a_hook_that_cannot_be_meant_is_refused_before_the_server_starts(small, hooks, why):
    with pytest.raises(SettingsError, match=why):
        create_app(small.app, Settings(hooks=tuple(hooks)))
