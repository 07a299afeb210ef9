"""How much and how often: bodies, also those that do not say how large they are, and requests a second."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from typing import Any

import pytest
import uvicorn

from bide.server import Settings, create_app
from bide.server.auth.buckets import Buckets, Rate
from bide.server.auth.keys import create_key
from bide.server.auth.paths import address_of
from bide.server.settings import AuthSettings, LimitSettings
from bide.store import Store
from tests.server.auth.doors import ANSWERS, ECHO, KEYS, RUNS, WHO, FakeClock, add_probes, application, serving

SMALL = Settings(limits=LimitSettings(body=1000, answer=100))


def in_pieces(size: int) -> Iterator[bytes]:
    """A body that is sent without saying how large it is."""
    for _ in range(size // 50):
        yield b"x" * 50


@pytest.mark.parametrize(("path", "most"), [(ECHO, 1000), (ANSWERS, 100)])
def test_body_of_too_many_bytes_is_refused_whether_it_says_so_or_not(store: Store, path, most):
    with serving(store, SMALL) as client:
        fits = client.post(path, content=b"x" * most)
        in_pieces_fits = client.post(path, content=in_pieces(most))
        too_large = client.post(path, content=b"x" * (most + 1))
        in_pieces_too_large = client.post(path, content=in_pieces(most + 50))

    found = [one.status_code for one in (fits, in_pieces_fits, too_large, in_pieces_too_large)]
    assert found == [200, 200, 413, 413]
    assert f"at most {most} bytes" in in_pieces_too_large.json()["detail"]


def test_body_that_lies_about_its_length_is_refused(store: Store):
    with serving(store, SMALL) as client:
        assert client.post(ECHO, content=b"x", headers={"content-length": "-1"}).status_code == 400


def test_body_is_not_read_before_it_is_known_who_sends_it(store: Store):
    with serving(store, replace(SMALL, auth=AuthSettings("keys"))) as client:
        assert client.post(ECHO, content=in_pieces(5000)).status_code == 401


@pytest.fixture
def address(store: Store) -> Iterator[tuple[str, int]]:
    """A real server on a port of this machine."""
    api = create_app(application(store), SMALL)
    add_probes(api)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(api, log_level="error", lifespan="on"))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()[:2]
        server.should_exit = True
        thread.join()


def test_real_server_refuses_a_chunked_body_that_does_not_end(address):
    connection = http.client.HTTPConnection(*address, timeout=10)
    connection.putrequest("POST", ECHO)
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    for _ in range(21):
        connection.send(b"32\r\n" + b"x" * 50 + b"\r\n")

    answer = connection.getresponse()  # though the body is not over

    assert answer.status == 413
    assert answer.headers["x-request-id"]
    connection.close()


# ── How often ──────────────────────────────────────────────────────────────────────────────────────────────────────


def limited(**more: Any) -> Settings:
    return replace(KEYS, limits=LimitSettings(rate=2, burst=3, public_rate=1, public_burst=2, **more))


def test_caller_who_calls_too_often_waits_and_is_told_how_long(store: Store, clock: FakeClock):
    key, _ = create_key(store, "one")

    with serving(store, limited(), headers={"x-api-key": key}) as client:
        answers = [client.get(WHO) for _ in range(4)]
        clock.advance(int(answers[3].headers["retry-after"]))
        later = client.get(WHO).status_code

    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    assert [one.headers["ratelimit-remaining"] for one in answers] == ["2", "1", "0", "0"]
    assert {one.headers["ratelimit-limit"] for one in answers} == {"3"}
    assert (answers[3].headers["retry-after"], answers[3].headers["ratelimit-reset"], later) == ("1", "2", 200)


def test_callers_and_kinds_of_requests_do_not_use_up_each_others_share(store: Store):
    one, other = (create_key(store, name)[0] for name in ("one", "other"))

    with serving(store, limited()) as client:
        for _ in range(4):
            mine = client.get(WHO, headers={"x-api-key": one}).status_code
        theirs = client.get(WHO, headers={"x-api-key": other}).status_code
        running = client.post(RUNS, headers={"x-api-key": one}).status_code
        answering = client.post(ANSWERS, headers={"x-api-key": one}).status_code

    assert (mine, theirs, running, answering) == (429, 200, 200, 200)


def test_streams_that_come_back_all_at_once_leave_room_for_answers(store: Store):
    key, _ = create_key(store, "one")

    with serving(store, limited(), headers={"x-api-key": key}) as client:
        streams = [client.get("/threads/none/runs/none/join").status_code for _ in range(4)]
        answering = client.post(ANSWERS).status_code

    assert streams[-1] == 429
    assert 429 not in streams[:3]
    assert answering == 200


def test_doors_without_a_key_are_limited_by_address(store: Store):
    with serving(store, limited()) as client:
        hooks = [client.post("/hooks/probe/in").status_code for _ in range(3)]
    with serving(store, limited(), client=("10.0.0.9", 1)) as client:
        another = client.post("/hooks/probe/in").status_code

    assert (hooks, another) == ([200, 200, 429], 200)


def test_whoever_tries_keys_is_slowed_down_and_nobody_beside_them(store: Store):
    key, _ = create_key(store, "one")

    with serving(store, limited()) as client:
        guesses = [client.get(WHO, headers={"x-api-key": "guess"}).status_code for _ in range(3)]
        known = client.get(WHO, headers={"x-api-key": key}).status_code

    assert (guesses, known) == ([401, 401, 429], 200)


def test_signs_of_life_and_the_machines_own_user_are_never_limited(store: Store):
    with serving(store, limited()) as client:
        alive = {client.get("/health").status_code for _ in range(9)}
    with serving(store, replace(limited(), auth=AuthSettings("none"))) as client:
        own = {client.get(WHO).status_code for _ in range(9)}

    assert (alive, own) == ({200}, {200})


def test_zero_is_no_limit(store: Store):
    key, _ = create_key(store, "one")
    settings = replace(KEYS, limits=LimitSettings(rate=0, public_rate=0, burst=1, public_burst=1))

    with serving(store, settings, headers={"x-api-key": key}) as client:
        found = {client.get(WHO).status_code for _ in range(9)} | {
            client.post("/hooks/probe/in").status_code for _ in range(9)
        }

    assert found == {200}


def test_memory_for_callers_is_bounded_and_who_calls_all_the_time_is_remembered():
    buckets, rate = Buckets(most=10), Rate(1, 2)

    for number in range(1000):
        buckets.take(f"stranger {number}", rate, 0)
        busy = buckets.take("busy", rate, 0)

    assert len(buckets) == 10
    assert not busy.is_allowed


def test_bucket_fills_by_the_clock_and_not_backwards():
    buckets, rate = Buckets(), Rate(1, 2)
    for _ in range(2):
        buckets.take("one", rate, 10_000)

    set_back = buckets.take("one", rate, 0)
    later = buckets.take("one", rate, 1000)
    long_after = [buckets.take("one", rate, 1_000_000).is_allowed for _ in range(3)]

    assert (set_back.is_allowed, later.is_allowed, long_after) == (False, True, [True, True, False])


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (("192.0.2.1", 1), "192.0.2.1"),
        (("2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2::"),
        (("::ffff:192.0.2.1", 1), "192.0.2.1"),
        (("testclient", 1), "testclient"),
        (None, ""),
    ],
    ids=str,
)
def test_address_is_that_of_a_customer(client, address):
    assert address_of({"client": client}) == address
