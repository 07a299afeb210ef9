"""Names in paths and queries, and headers, that no client makes: nothing is there under them, and nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bide import Store
from tests.server.door.test_odd_values import JSON, Home
from tests.server.household import furnish
from tests.stores import SCHEMA

NAMES = ("%00", "a%00b", "%ed%a0%80", "%F0%9F%98%80", "%2e%2e%2f", "a%0d%0aset-cookie:x", "9" * 3000)


@pytest.fixture(scope="module", params=["file", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Nothing here changes anything, so that one is enough."""
    with opened(request, tmp_path_factory.mktemp("odd")) as store:
        home = Home(store)
        with home.client:
            home.things = furnish(home.app, home.client, "", "acme")
            yield home


def opened(request: pytest.FixtureRequest, folder: Path) -> Store:
    if request.param == "file":
        return Store.open(f"sqlite:///{folder / 'bide.db'}")
    dsn, wipe = request.getfixturevalue("shared_postgres")
    emptied: Callable[[], None] = wipe
    emptied()
    return Store.open(dsn, schema=SCHEMA)


@pytest.mark.parametrize(
    "path",
    [
        "/threads/{}", "/threads/{}/state", "/threads/acme-pay/state/{}", "/threads/acme-pay/runs/{}", "/runs/{}/join",
        "/threads/acme-pay/runs/{}/join", "/assistants/{}", "/assistants/quick/subgraphs/{}", "/runs/crons/{}",
        "/waits/{}", "/waits/{}/links", "/deliveries/{}", "/schedules/{}", "/outbox/{}", "/conversations/{}", "/w/{}",
        "/audit?subject={}", "/audit?before={}", "/audit?thread_id={}", "/keys?after={}", "/events?since={}",
        "/threads?graph={}", "/waits?tag={}", "/outbox?after={}", "/inbox/threads/{}", "/inbox/deliveries?before={}",
        "/inbox/deliveries/{}", "/inbox/waits/{}", "/store/items?namespace={}&key={}", "/static/{}", "/?graph={}",
    ],
)  # fmt: skip
def test_odd_name_is_not_there(home: Home, path: str) -> None:
    answers = {name[:20]: home.client.get(path.replace("{}", name)) for name in NAMES}

    assert {name: one.text for name, one in answers.items() if one.status_code not in (200, 400, 404, 410, 422)} == {}
    assert not [name for name, one in answers.items() if "set-cookie" in one.headers]


@pytest.mark.parametrize(
    "path", ["/threads/{}", "/assistants/{}", "/runs/crons/{}", "/schedules/{}", "/links/{}", "/keys/{}"]
)
def test_odd_name_cannot_be_deleted(home: Home, path: str) -> None:
    answers = {name[:20]: home.client.delete(path.replace("{}", name)).status_code for name in NAMES}

    assert set(answers.values()) <= {404, 405, 422}, answers


@pytest.mark.parametrize("header", ["host", "origin", "content-length", "cookie", "last-event-id", "prefer", "accept"])
@pytest.mark.parametrize("value", ["[::1", "[", "evil.example:x", "9" * 5000, "\xe9", "127.0.0.1:999999999"])
def test_odd_header_is_refused_or_passed_over(home: Home, header: str, value: str) -> None:
    sent = {**JSON, header: value.encode("latin-1")}

    answer = home.client.post("/threads/search", content=b"{}", headers=sent)  # type: ignore[arg-type]

    assert answer.status_code in (200, 400, 403, 413, 422), answer.text
