"""What is open when its key is revoked, its token expires or its session ends: it is cut soon after, and not opened
again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from bide import Store
from bide.clock import elapsed
from bide.server import Settings, create_app
from bide.server.auth.credentials import Credential
from bide.server.auth.gate import KeyGate
from bide.server.auth.holding import serve_while
from bide.server.auth.keys import create_key, revoke_key
from bide.server.auth.sessions import COOKIE, LASTS
from bide.server.auth.standing import Standing, Standings
from bide.server.settings import AuthSettings, LimitSettings
from bide.server.streams.hub import Hub
from tests.server.auth.doors import FakeClock, application
from tests.server.auth.test_jwt import SECRET, bearer, claims, shared
from tests.server.running import running_server, until

HEARTBEAT = 0.1
SOON = 20
"""Seconds for a busy machine; in peace it is a fifth of one."""
MANY = 50
"""Heartbeats, of which two would be enough."""
STREAMS = {
    "a run": ("GET", "/threads/t/runs/{run_id}/stream"),
    "a run that is joined": ("GET", "/threads/t/runs/{run_id}/join"),
    "a thread": ("GET", "/threads/t/stream"),
    "the thread protocol": ("POST", "/threads/t/stream/events"),
    "all threads": ("GET", "/events"),
    "the inbox": ("GET", "/inbox/live"),
    "a page of the inbox": ("GET", "/inbox/live?thread=t"),
}
SOCKET = "/threads/t/stream/events"


@dataclass
class Open:
    """A server, and a thread on which nobody works."""

    url: str
    hub: Hub
    run_id: str = ""

    @contextmanager
    def stream(self, what: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        method, path = STREAMS[what]
        place = self.url + path.format(run_id=self.run_id)
        body = {"channels": ["values"]} if method == "POST" else None
        accept = {} if what.endswith("joined") else {"accept": "text/event-stream"}
        with httpx.stream(method, place, headers={**accept, **headers}, json=body, timeout=SOON) as response:
            yield response

    def status(self, what: str, headers: dict[str, str]) -> int:
        with self.stream(what, headers) as response:
            return response.status_code

    def socket(self, headers: dict[str, str]) -> Any:
        return connect(self.url.replace("http", "ws") + SOCKET, additional_headers=headers, open_timeout=SOON)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kept(clock: FakeClock, tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", clock=clock) as opened:
        yield opened


@contextmanager
def opened(store: Store, auth: AuthSettings) -> Iterator[Open]:
    app = application(store)
    settings = Settings(auth=auth, heartbeat=HEARTBEAT, limits=LimitSettings(rate=0, public_rate=0))
    run = app.start("asking", {}, thread_id="t", owner="ada")
    api = create_app(app, settings)
    with running_server(api) as url:
        httpx.get(f"{url}/ok")  # it has begun
        yield Open(url, api.state.bide.hub, run.run_id)


def is_cut(words: Iterator[bytes]) -> bool:
    """Whether a stream is cut off before many more heartbeats have come; one that ends properly was not."""
    try:
        for _ in range(MANY):
            next(words)
    except httpx.RemoteProtocolError:
        return True
    return False


def check_cut(server: Open, what: str, headers: dict[str, str], end: Callable[[], object]) -> None:
    with server.stream(what, headers) as response:
        words = response.iter_raw()
        for _ in range(5):
            assert next(words)
        end()
        assert is_cut(words)
    assert server.status(what, headers) == 401
    until(lambda: server.hub.followers == 0, "nobody follows any more")


@pytest.mark.parametrize("what", STREAMS)
def test_stream_is_cut_soon_after_its_key_was_revoked(kept: Store, what: str, tmp_path: Path):
    key, row = create_key(kept, "one", "ada")

    def revoke() -> None:
        with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", clock=kept.clock) as elsewhere:
            assert revoke_key(elsewhere, row.key_id)

    with opened(kept, AuthSettings("keys")) as server:
        check_cut(server, what, {"x-api-key": key}, revoke)


@pytest.mark.parametrize("what", ["a thread", "all threads"])
def test_stream_is_cut_soon_after_its_token_has_expired(kept: Store, clock: FakeClock, what: str):
    token = jwt.encode(claims(clock), SECRET, "HS256")

    with opened(kept, shared().auth) as server:
        check_cut(server, what, bearer(token), lambda: clock.advance(611))


@pytest.mark.parametrize("end", ["time", "key"])
def test_page_hears_no_more_when_its_session_is_over(kept: Store, clock: FakeClock, end: str):
    key, row = create_key(kept, "one", "ada")

    with opened(kept, AuthSettings("keys")) as server:
        cookie = httpx.post(f"{server.url}/login", json={"key": key}).cookies[COOKIE]
        ends = {"time": lambda: clock.advance(LASTS), "key": lambda: revoke_key(kept, row.key_id)}
        check_cut(server, "the inbox", {"cookie": f"{COOKIE}={cookie}"}, ends[end])


def test_stream_of_another_key_of_the_same_owner_goes_on(kept: Store):
    revoked, row = create_key(kept, "one", "ada")
    stays, _ = create_key(kept, "two", "ada")

    with (
        opened(kept, AuthSettings("keys")) as server,
        server.stream("a thread", {"x-api-key": revoked}) as cut,
        server.stream("a thread", {"x-api-key": stays}) as response,
    ):
        revoke_key(kept, row.key_id)
        assert is_cut(cut.iter_raw())
        words = response.iter_raw()
        for _ in range(10):
            assert next(words)


def test_quiet_socket_is_closed_soon_after_its_key_was_revoked(kept: Store):
    key, row = create_key(kept, "one", "ada")
    headers = {"x-api-key": key}

    with opened(kept, AuthSettings("keys")) as server:
        with server.socket(headers) as socket:
            revoke_key(kept, row.key_id)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=SOON)
        with pytest.raises(InvalidStatus) as refused:
            server.socket(headers)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    assert refused.value.response.status_code == 403


def test_command_through_an_open_socket_counts_for_nothing_once_its_key_is_revoked(kept: Store):
    key, row = create_key(kept, "one", "ada")
    auth = AuthSettings("keys")
    app = application(kept)
    app.start("asking", {}, thread_id="t", owner="ada")
    app.run_ready()
    wait_id = app.waits()[0].id
    answer = {"id": 1, "method": "input.respond", "params": {"interrupt_id": wait_id, "response": "yes"}}
    settings = Settings(auth=auth, heartbeat=60.0, limits=LimitSettings(rate=0))

    with running_server(create_app(app, settings)) as url, Open(url, Hub(kept)).socket({"x-api-key": key}) as socket:
        socket.send(json.dumps({"id": 0, "method": "subscription.subscribe", "params": {"channels": ["values"]}}))
        assert json.loads(socket.recv(timeout=SOON))["type"] == "success"
        revoke_key(kept, row.key_id)
        socket.send(json.dumps(answer))
        with pytest.raises(ConnectionClosed):
            no_event(socket)

    assert kept.wait(wait_id).status == "open"


def no_event(socket: Any) -> Any:
    """Return the next that is said and is no event, if there is one."""
    while (said := json.loads(socket.recv(timeout=SOON)))["type"] == "event":
        pass
    return said


class CountingGate(KeyGate):
    asked = 0

    async def admits(self, credential: Credential) -> bool:
        self.asked += 1
        return await super().admits(credential)


async def test_a_hundred_streams_of_one_key_ask_once_in_a_heartbeat(kept: Store, monkeypatch: pytest.MonkeyPatch):
    now = elapsed()
    monkeypatch.setattr("bide.server.auth.standing.elapsed", lambda: now)
    gate = CountingGate(kept)
    standings = Standings(gate, kept.clock, 5.0)
    credential = Credential(create_key(kept, "one")[0])
    held = [standings.of(credential) for _ in range(100)]

    assert all([await one.holds() for one in held])
    at_first = gate.asked
    now += 5.0
    assert all([await one.holds() for one in held])

    assert (at_first, gate.asked) == (0, 1)


class Fallen(Standing):
    """The standing of somebody who was shut out a moment ago."""

    async def holds(self, *, at_once: bool = False) -> bool:
        return False


@pytest.mark.parametrize("words", [1, 5])
async def test_answer_that_nobody_can_stop_is_not_sent_on_and_has_no_end(kept: Store, words: int):
    """A server need not tell who listens for the end, nor an application listen."""
    passed: list[Any] = []

    async def tells(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(words):
            await send({"type": "http.response.body", "body": b"secret", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send(message: Any) -> None:
        passed.append(message)

    standing = Fallen(Credential("a key"), KeyGate(kept), kept.clock, 0.01)
    await serve_while(standing, tells, {"type": "http"}, send, send)

    assert [message["type"] for message in passed] == ["http.response.start"]


async def test_failure_of_an_answer_is_not_taken_for_a_cut(kept: Store):
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    async def nothing(*_: Any) -> Any:
        return {}

    standing = Standing(Credential("a key"), KeyGate(kept), kept.clock, 5.0)
    with pytest.raises(ZeroDivisionError):
        await serve_while(standing, fails, {"type": "http"}, nothing, nothing)
