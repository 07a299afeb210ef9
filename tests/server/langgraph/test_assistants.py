"""Assistants as LangGraph's SDK knows them: the one of each graph, and those that clients make."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

import httpx
import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, PermissionDeniedError

from bide.store.notes import make_thread
from tests.server.conftest import Running

NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
FIELDS = {
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "metadata",
    "version",
    "created_at",
    "updated_at",
}


def system(graph: str) -> str:
    return str(uuid5(NAMESPACE, graph))


# ── Those that are there by themselves ─────────────────────────────────────────────────────────────────────────────


def test_each_graph_has_an_assistant_by_itself_under_the_id_that_langgraph_gives_it(client: Any) -> None:
    found = client.assistants.search()

    assert {one["graph_id"]: one["assistant_id"] for one in found} == {
        graph: system(graph) for graph in ("chat", "counting", "asking", "nested")
    }
    assert all(set(one) == FIELDS for one in found)
    assert {(one["version"], one["metadata"]["created_by"]) for one in found} == {(1, "system")}
    assert all(datetime.fromisoformat(one["created_at"]).tzinfo is not None for one in found)


def test_graph_name_is_as_good_as_an_id(client: Any) -> None:
    assert client.assistants.get("chat") == client.assistants.get(system("chat"))
    assert client.assistants.get_schemas("chat")["graph_id"] == "chat"


def test_assistant_that_comes_with_a_graph_stays_as_it_is(client: Any) -> None:
    with pytest.raises(PermissionDeniedError, match="Make one of your own"):
        client.assistants.update("chat", name="mine")
    with pytest.raises(PermissionDeniedError):
        client.assistants.delete(system("chat"))

    assert [one["version"] for one in client.assistants.get_versions("chat")] == [1]
    assert client.assistants.set_latest("chat", 1)["name"] == "chat"
    with pytest.raises(NotFoundError):
        client.assistants.set_latest("chat", 2)


# ── Those that clients make ────────────────────────────────────────────────────────────────────────────────────────


def test_assistant_is_made_with_all_that_was_said(client: Any) -> None:
    said = {
        "config": {"configurable": {"model": "small"}, "tags": ["a"]},
        "context": {"colour": "green"},
        "metadata": {"team": "sales", "nested": {"deep": [1, None]}},
        "name": "Quotes",
        "description": "Writes quotes.",
    }

    made = client.assistants.create("counting", **said)

    assert {name: made[name] for name in said} == said
    assert (made["graph_id"], made["version"], made["created_at"]) == ("counting", 1, made["updated_at"])
    assert UUID(made["assistant_id"])
    assert client.assistants.get(made["assistant_id"]) == made


def test_same_id_again_is_a_conflict_or_the_one_that_is_there(client: Any) -> None:
    chosen = str(uuid4())
    made = client.assistants.create("chat", assistant_id=chosen, name="first")

    with pytest.raises(ConflictError):
        client.assistants.create("chat", assistant_id=chosen, name="second")
    again = client.assistants.create("chat", assistant_id=chosen, name="second", if_exists="do_nothing")

    assert again == made
    with pytest.raises(ConflictError):
        client.assistants.create("chat", assistant_id=system("chat"))


def test_graph_that_is_not_served_has_no_assistants(client: Any) -> None:
    with pytest.raises(NotFoundError, match=r"Graph 'nobody' not found.*'chat'"):
        client.assistants.create("nobody")
    with pytest.raises(NotFoundError, match="Invalid assistant ID"):
        client.assistants.get(str(uuid4()))
    with pytest.raises(NotFoundError):
        client.assistants.get("%00../etc")


def test_every_change_is_a_version_and_an_older_one_can_be_chosen_again(client: Any) -> None:
    made = client.assistants.create("chat", name="one", metadata={"a": 1}, config={"tags": ["x"]})
    key = made["assistant_id"]

    changed = client.assistants.update(key, name="two", metadata={"b": 2}, graph_id="counting")
    third = client.assistants.update(key, config={}, description="third")

    assert (changed["version"], changed["name"], changed["graph_id"]) == (2, "two", "counting")
    assert changed["metadata"] == {"a": 1, "b": 2}
    assert (third["version"], third["config"], third["name"]) == (3, {}, "two")
    versions = client.assistants.get_versions(key)
    assert [(one["version"], one["name"], one["graph_id"]) for one in versions] == [
        (3, "two", "counting"),
        (2, "two", "counting"),
        (1, "one", "chat"),
    ]
    assert [one["version"] for one in client.assistants.get_versions(key, limit=1, offset=1)] == [2]
    assert [one["version"] for one in client.assistants.get_versions(key, metadata={"b": 2})] == [3, 2]

    back = client.assistants.set_latest(key, 1)
    assert (back["version"], back["name"], back["graph_id"]) == (1, "one", "chat")
    assert client.assistants.get(key) == back
    assert client.assistants.update(key, name="four")["version"] == 4
    with pytest.raises(NotFoundError):
        client.assistants.set_latest(key, 9)


def test_assistant_is_deleted_with_all_its_versions(client: Any) -> None:
    key = client.assistants.create("chat")["assistant_id"]

    assert client.assistants.delete(key) is None

    for call in (client.assistants.get, client.assistants.delete, client.assistants.get_versions):
        with pytest.raises(NotFoundError):
            call(key)
    assert client.assistants.create("chat", assistant_id=key)["version"] == 1


# ── Finding them ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_search_finds_by_graph_name_and_metadata(client: Any) -> None:
    mine = client.assistants.create("chat", name="Angebote Ada", metadata={"team": "sales", "place": {"city": "Ulm"}})
    client.assistants.create("chat", name="Other", metadata={"team": "law"})

    def found(**how: Any) -> list[str]:
        return [one["name"] for one in client.assistants.search(**how)]

    assert found(name="angebote") == ["Angebote Ada"]
    assert found(metadata={"team": "law"}) == ["Other"]
    assert found(metadata={"place": {"city": "Ulm"}}) == [mine["name"]]
    assert found(metadata={"created_by": "system"}, graph_id="chat") == ["chat"]
    assert sorted(found(graph_id="chat")) == ["Angebote Ada", "Other", "chat"]
    assert found(graph_id="nobody") == []
    assert client.assistants.count() == 6
    assert client.assistants.count(graph_id="chat", name="OTHER", metadata={"team": "law"}) == 1


def test_search_is_sorted_and_told_page_by_page(client: Any, server: Running) -> None:
    for name in ("b", "a", "c"):
        client.assistants.create("counting", name=name, metadata={"mine": True})
    mine = {"mine": True}

    newest = client.assistants.search(metadata=mine, select=["name"])
    assert newest == [{"name": "c"}, {"name": "a"}, {"name": "b"}]
    by_name = client.assistants.search(metadata=mine, sort_by="name", sort_order="asc", select=["name", "version"])
    assert by_name == [{"name": name, "version": 1} for name in "abc"]

    page = client.assistants.search(metadata=mine, limit=2, response_format="object")
    assert (len(page["assistants"]), page["next"]) == (2, "2")
    last = client.assistants.search(metadata=mine, limit=2, offset=2, response_format="object")
    assert (len(last["assistants"]), last["next"]) == (1, None)
    answer = httpx.post(f"{server.url}/assistants/search", json={"metadata": mine, "limit": 1})
    assert (answer.headers["x-pagination-total"], answer.headers["x-pagination-next"]) == ("3", "1")


def test_assistant_of_another_owner_is_not_there(client: Any, server: Running) -> None:
    from bide.store.assistants import Assistants, Wording

    Assistants(server.app.store).make("somebody else", "theirs", Wording("chat", "Theirs"))

    with pytest.raises(NotFoundError):
        client.assistants.get("theirs")
    with pytest.raises(NotFoundError):
        client.assistants.delete("theirs")
    assert client.assistants.search(name="Theirs") == []
    with pytest.raises(ConflictError):
        client.assistants.create("chat", assistant_id="theirs", if_exists="do_nothing")


# ── What their graphs look like ────────────────────────────────────────────────────────────────────────────────────


def edges(graph: dict[str, Any]) -> list[tuple[str, str]]:
    return [(edge["source"], edge["target"]) for edge in graph["edges"]]


def test_graph_is_told_as_nodes_and_edges_and_opened_on_demand(client: Any) -> None:
    closed = client.assistants.get_graph("nested")
    opened = client.assistants.get_graph("nested", xray=True)

    assert [node["id"] for node in closed["nodes"]] == ["__start__", "begin", "inner", "end", "__end__"]
    assert closed["nodes"][1]["data"]["name"] == "begin"
    assert ("begin", "inner") in edges(closed)
    assert [node["id"] for node in opened["nodes"]] == ["__start__", "begin", "inner:ask", "end", "__end__"]
    assert edges(opened)[1:3] == [("begin", "inner:ask"), ("inner:ask", "end")]
    assert client.assistants.get_graph("nested", xray=1) == opened


def test_schemas_say_what_goes_in_and_what_may_be_told_beside(client: Any) -> None:
    chat, counting = client.assistants.get_schemas("chat"), client.assistants.get_schemas("counting")

    assert chat["input_schema"]["properties"]["messages"]["type"] == "array"
    assert counting["state_schema"]["properties"]["count"] == {"title": "Count", "type": "integer"}
    assert counting["context_schema"]["properties"]["colour"]["type"] == "string"
    assert set(chat) == {
        "graph_id",
        "input_schema",
        "output_schema",
        "state_schema",
        "config_schema",
        "context_schema",
    }


def test_graphs_inside_are_told_by_where_they_are(client: Any) -> None:
    assert set(client.assistants.get_subgraphs("nested")) == {"inner"}
    assert set(client.assistants.get_subgraphs("nested", recurse=True)) == {"inner"}
    inner = client.assistants.get_subgraphs("nested", namespace="inner")
    assert inner["inner"]["input_schema"]["properties"]["customer"]["type"] == "string"
    assert client.assistants.get_subgraphs("nested", namespace="nobody") == {}
    assert client.assistants.get_subgraphs("chat") == {}


# ── Their threads ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_threads_go_with_their_assistant_only_when_that_is_asked_for(client: Any, server: Running) -> None:
    store = server.app.store
    kept, gone = (client.assistants.create("chat")["assistant_id"] for _ in range(2))
    for name, assistant_id in (("a", kept), ("b", gone), ("c", gone)):
        make_thread(store, "", name, {"assistant_id": assistant_id}, None)
    make_thread(store, "somebody else", "d", {"assistant_id": gone}, None)

    client.assistants.delete(kept)
    client.assistants.delete(gone, delete_threads=True)

    assert [name for name in "abcd" if store.owner_of(name) is not None] == ["a", "d"]
