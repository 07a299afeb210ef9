"""Values that no client sends by accident: each is taken or refused, and nothing that is shown later breaks by them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from bide import Bide, Store
from bide.server import Settings, create_app
from bide.server.settings import HookSettings, LimitSettings
from tests.server.household import Things, furnish, graphs, settle
from tests.stores import opened_store

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
HALF = '"\\ud800"'
"""Half of a character: JSON can say it, and UTF-8 cannot."""
DEEP, DEEPER = "[" * 900 + "]" * 900, "[" * 100_000 + "]" * 100_000
ODD = [
    "NaN",
    "1e999",
    HALF,
    f"{{{HALF}:1}}",
    '"\\u0000"',
    "9" * 4000,
    "9" * 5000,
    DEEP,
    DEEPER,
    '{"a":' * 900 + "1" + "}" * 900,
]
IDS = ["nan", "inf", "half", "half-key", "nul", "digits", "too-many-digits", "deep", "deeper", "deep-object"]
LOOKS = (
    "/", "/audit", "/deliveries", "/events", "/inbox/deliveries", "/inbox/schedules", "/inbox/threads", "/outbox",
    "/schedules", "/threads", "/waits", "/threads/acme-pay", "/threads/acme-pay/state", "/threads/acme-pay/timeline",
    "/threads/acme-pay/runs", "/conversations/acme-pay", "/inbox/threads/acme-pay", "/store/items?namespace=a&key=k",
)  # fmt: skip


class Home:
    """A server without authentication, and one of everything."""

    def __init__(self, store: Store) -> None:
        self.app = Bide(store, graphs())
        limits = LimitSettings(rate=0, public_rate=0)
        hooks = (HookSettings("open", scheme="none"),)
        self.api = create_app(self.app, Settings(limits=limits, worker=False, heartbeat=0.05, hooks=hooks))
        self.client = TestClient(self.api, raise_server_exceptions=False, follow_redirects=False)
        self.things: Things

    def send(self, method: str, path: str, body: str | None = None, headers: dict[str, str] = JSON) -> Any:
        answer = self.client.request(method, path, content=body, headers=headers)
        assert answer.status_code < 500, (method, path, (body or "")[:80], answer.text)
        return answer


@pytest.fixture(params=["memory", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Home]:
    with opened_store(request, tmp_path) as store:
        home = Home(store)
        with home.client:
            home.things = furnish(home.app, home.client, "", "acme")
            yield home


@pytest.mark.parametrize("value", ODD, ids=IDS)
def test_odd_value_anywhere_is_taken_or_refused_and_everything_can_still_be_looked_at(home: Home, value: str) -> None:
    wait, token = home.things.ids["wait_id"], home.things.ids["token"]
    run = f'{{"assistant_id":"quick","input":{{"given":{value}}},"metadata":{{"a":{value}}},"context":{{"a":{value}}}'
    calls = [
        ("POST", f"/w/{token}", f'{{"value":{value}}}'),
        ("POST", f"/w/{token}", f'{{"action":{value},"comment":{value}}}'),
        ("POST", f"/w/{token}", value),
        ("POST", "/hooks/open", value),
        ("POST", "/login", value),
        ("POST", "/login", f'{{"key":{value}}}'),
        ("POST", f"/waits/{wait}/answer", f'{{"value":{value}}}'),
        ("POST", "/threads/acme-pay/resume", f'{{"value":{value}}}'),
        ("POST", "/threads/acme-pay/runs", f'{{"assistant_id":"pay","command":{{"resume":{value}}}}}'),
        ("POST", "/threads/acme-quick/runs", run + "}"),
        ("POST", "/runs/batch", f'[{run},"config":{{"configurable":{value},"metadata":{value},"tags":{value}}}}}]'),
        ("POST", "/runs", f'{run},"checkpoint":{{"checkpoint_id":{value},"checkpoint_ns":{value}}}}}'),
        ("POST", "/deliveries", f'{{"name":"x","payload":{value}}}'),
        ("POST", "/deliveries?dry_run=1", f'{{"name":"x","payload":{value}}}'),
        ("POST", "/threads", f'{{"metadata":{{"a":{value}}}}}'),
        ("PATCH", "/threads/acme-quick", f'{{"metadata":{{"a":{value}}}}}'),
        ("POST", "/threads/search", f'{{"ids":[{value}]}}'),
        ("POST", "/threads/search", f'{{"metadata":{{"a":{value}}},"values":{{"a":{value}}}}}'),
        ("POST", "/threads/prune", f'{{"thread_ids":[{value}]}}'),
        ("POST", "/threads/acme-quick/state", f'{{"values":{{"given":{value}}}}}'),
        ("POST", "/threads/acme-quick/history", f'{{"before":{value},"metadata":{{"a":{value}}}}}'),
        ("POST", "/threads/acme-quick/state/checkpoint", f'{{"checkpoint":{{"checkpoint_id":{value}}}}}'),
        ("POST", "/threads/acme-quick/commands", f'{{"id":1,"method":"run.start","params":{value}}}'),
        ("POST", "/threads/acme-pay/commands", f'{{"id":1,"method":"input.respond","params":{{"responses":{value}}}}}'),
        ("POST", "/assistants", f'{{"graph_id":"quick","config":{{"a":{value}}},"metadata":{{"a":{value}}}}}'),
        ("POST", "/runs/crons", f'{{"assistant_id":"quick","schedule":"0 9 * * *","context":{value},"input":{value}}}'),
        ("POST", "/runs/cancel", f'{{"thread_id":"acme-quick","run_ids":[{value}]}}'),
        ("PUT", "/store/items", f'{{"namespace":["a"],"key":"k","value":{{"a":{value}}}}}'),
        ("POST", "/store/items/search", f'{{"filter":{{"a":{{"$gt":{value}}}}}}}'),
        ("POST", "/store/namespaces", f'{{"prefix":[{value}]}}'),
        ("PUT", "/schedules/x", f'{{"graph":"quick","cron":"0 9 * * *","input":{value}}}'),
        ("POST", "/keys", f'{{"name":{value}}}'),
        ("POST", f"/waits/{wait}/links", f'{{"recipient":{value},"actions":[{value}]}}'),
    ]

    for method, path, body in calls:
        home.send(method, path, body)
    home.send("POST", "/inbox/deliveries/try", f"kind=event&name=x&payload={value}", FORM)

    settle(home.app)
    for path in LOOKS:
        assert home.send("GET", path).status_code == 200


def test_path_into_a_value_may_be_as_odd_as_it_likes(home: Home) -> None:
    paths = [f"values[{'9' * 5000}]", "values[٣]", "[" * 3000, "a." * 3000, "", "values[-1][-1]"]

    found = home.send("POST", "/threads/search", json.dumps({"extract": {str(i): one for i, one in enumerate(paths)}}))

    assert found.json()[0]["extracted"]["0"] is None


def test_list_of_ten_thousand_is_answered(home: Home) -> None:
    many = list(range(10_000))

    assert home.send("POST", "/deliveries", json.dumps({"name": "x", "payload": many})).status_code == 200
    assert home.send("POST", "/threads/search", json.dumps({"ids": ["x"] * 10_000})).status_code == 422
    assert home.send("POST", "/threads/prune", json.dumps({"thread_ids": ["x"] * 10_000})).status_code == 422
    assert home.send("POST", "/store/namespaces", json.dumps({"prefix": ["x"] * 10_000})).status_code in (200, 422)


def test_body_that_is_packed_is_not_unpacked(home: Home) -> None:
    bomb = gzip.compress(b" " * 1_000_000 + b"{}")

    answer = home.client.post("/threads/search", content=bomb, headers={**JSON, "content-encoding": "gzip"})

    assert answer.status_code in (400, 415, 422)
