"""The long-term store as LangGraph's SDK knows it, and as each owner sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import UnprocessableEntityError

from bide.server import Settings
from bide.server.auth.keys import create_key
from bide.server.settings import AuthSettings
from tests.server.conftest import Running, Serve


def keys(found: dict[str, Any]) -> list[str]:
    return [item["key"] for item in found["items"]]


def test_item_is_written_read_and_deleted(client: Any) -> None:
    assert client.store.put_item(["users", "42"], "taste", {"colour": "green", "deep": {"list": [1, None]}}) is None

    found = client.store.get_item(["users", "42"], "taste")
    assert (found["namespace"], found["key"]) == (["users", "42"], "taste")
    assert found["value"] == {"colour": "green", "deep": {"list": [1, None]}}
    assert found["created_at"] == found["updated_at"]
    client.store.put_item(["users", "42"], "taste", {"colour": "red"})
    assert client.store.get_item(["users", "42"], "taste")["value"] == {"colour": "red"}

    assert client.store.delete_item(["users", "42"], "taste") is None
    assert client.store.get_item(["users", "42"], "taste") is None
    assert client.store.delete_item(["users", "42"], "taste") is None


def test_missing_item_is_null_with_200_since_javascript_reads_a_body(server: Running) -> None:
    answer = httpx.get(f"{server.url}/store/items", params={"namespace": "a.b", "key": "none"})

    assert (answer.status_code, answer.json()) == (200, None)


def test_items_are_found_by_prefix_and_value_newest_first(client: Any) -> None:
    for number in range(4):
        client.store.put_item(["docs", str(number % 2)], f"k{number}", {"number": number, "even": number % 2 == 0})
    client.store.put_item(["other"], "x", {})

    assert keys(client.store.search_items(["docs"])) == ["k3", "k2", "k1", "k0"]
    assert keys(client.store.search_items(["docs"], filter={"even": True})) == ["k2", "k0"]
    assert keys(client.store.search_items(["docs"], filter={"number": {"$gte": 2}})) == ["k3", "k2"]
    assert keys(client.store.search_items(["docs"], limit=2, offset=1)) == ["k2", "k1"]
    assert keys(client.store.search_items([])) == ["x", "k3", "k2", "k1", "k0"]
    assert keys(client.store.search_items([], limit=1, offset=2)) == ["k2"]
    assert keys(client.store.search_items(["doc"])) == []


def test_namespaces_are_listed_in_order_and_cut(client: Any) -> None:
    for namespace in (["a", "b", "c"], ["a", "b", "d"], ["a", "x"], ["z", "b"]):
        client.store.put_item(namespace, "k", {})

    def listed(**how: Any) -> list[list[str]]:
        return client.store.list_namespaces(**how)["namespaces"]

    assert listed() == [["a", "b", "c"], ["a", "b", "d"], ["a", "x"], ["z", "b"]]
    assert listed(prefix=["a"], max_depth=2) == [["a", "b"], ["a", "x"]]
    assert listed(suffix=["b"]) == [["z", "b"]]
    assert listed(prefix=["*", "b"]) == [["a", "b", "c"], ["a", "b", "d"], ["z", "b"]]
    assert listed(limit=1, offset=2) == [["a", "x"]]


def test_item_with_a_time_to_live_is_there_until_then(client: Any, server: Running) -> None:
    client.store.put_item(["short"], "k", {"a": 1}, ttl=1)
    client.store.put_item(["long"], "k", {"a": 1})
    assert client.store.get_item(["short"], "k", refresh_ttl=False)["value"] == {"a": 1}

    rows = server.app.store.database.read(lambda tx: tx.all("page_items", {"namespace": b"", "key": b"", "most": 10}))
    assert [ttl for _, _, ttl, *_ in rows] == [None, 60_000]


@pytest.mark.parametrize(
    "body",
    [
        {"namespace": [], "key": "k", "value": {}},
        {"namespace": ["a.b"], "key": "k", "value": {}},
        {"namespace": ["a", ""], "key": "k", "value": {}},
        {"namespace": ["a"], "key": "k", "value": "text"},
        {"namespace": ["a"], "value": {}},
        {"namespace": ["a"], "key": "k", "value": {}, "ttl": -1},
        {"namespace": ["a"], "key": "k", "value": {}, "index": ["text"]},
        {"namespace": ["\x02owner:ada"], "key": "k", "value": {}},
    ],
)
def test_what_cannot_be_meant_is_refused(server: Running, body: dict[str, Any]) -> None:
    answer = httpx.put(f"{server.url}/store/items", json=body)

    assert answer.status_code == 422
    assert answer.json()["detail"]
    assert server.app.store.items.search(()) == []


def test_search_by_meaning_is_refused_and_not_guessed(client: Any) -> None:
    with pytest.raises(UnprocessableEntityError, match="no index"):
        client.store.search_items(["docs"], query="what I like")


# ── Owners ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def doors(serve: Serve) -> Iterator[dict[str, Any]]:
    """A server with keys, and a client for each owner; the third has no owner."""
    running = serve(Settings(auth=AuthSettings("keys")), worker=False)
    owners = {"ada": "ada", "bob": "bob", "nobody": ""}
    with ExitStack() as opened:
        yield {
            name: opened.enter_context(
                get_sync_client(url=running.url, api_key=create_key(running.app.store, owner=owner, name=name)[0])
            )
            for name, owner in owners.items()
        }


def test_items_of_another_owner_cannot_be_read_found_or_listed(doors: dict[str, Any]) -> None:
    for name, door in doors.items():
        door.store.put_item(["notes"], "k", {"of": name})
    doors["ada"].store.put_item(["secret", "deep"], "k", {"of": "ada"})

    for name in ("bob", "nobody"):
        mine = doors[name].store
        assert mine.get_item(["notes"], "k")["value"] == {"of": name}
        assert mine.get_item(["secret", "deep"], "k") is None
        assert [item["value"]["of"] for item in mine.search_items([])["items"]] == [name]
        assert mine.list_namespaces()["namespaces"] == [["notes"]]
        assert mine.list_namespaces(prefix=["*"], max_depth=1)["namespaces"] == [["notes"]]
        assert mine.list_namespaces(suffix=["*", "deep"])["namespaces"] == []
        mine.delete_item(["secret", "deep"], "k")
    assert doors["ada"].store.get_item(["secret", "deep"], "k")["value"] == {"of": "ada"}
    assert doors["ada"].store.list_namespaces(suffix=["*", "notes"])["namespaces"] == []
    assert doors["ada"].store.search_items([])["items"][0]["namespace"] == ["secret", "deep"]
