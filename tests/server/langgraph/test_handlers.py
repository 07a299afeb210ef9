"""Handlers of the application, as `langgraph_sdk.Auth` knows them, decide about assistants, crons and items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import Auth, get_sync_client
from langgraph_sdk.errors import ConflictError, NotFoundError, PermissionDeniedError

from bide.server import Settings
from bide.server.settings import AuthSettings
from tests.server.conftest import Running, Serve


def handlers() -> Auth:
    """Everybody is of one owner, and sees only what bears their own name; nobody else may make crons than Ada."""
    auth = Auth()

    @auth.authenticate
    async def who(authorization: str) -> dict[str, Any]:
        return {"identity": authorization.removeprefix("Bearer "), "owner": "house"}

    @auth.on.assistants
    async def own(ctx: Any, value: dict[str, Any]) -> dict[str, Any]:
        mine = {"by": ctx.user.identity}
        if ctx.action in ("create", "update"):
            value.setdefault("metadata", {}).update(mine)
        return mine

    @auth.on.crons
    async def only_ada(ctx: Any, value: dict[str, Any]) -> bool | dict[str, Any]:
        if ctx.action == "create":
            value["metadata"]["by"] = ctx.user.identity
            return bool(ctx.user.identity == "ada")
        return {"by": ctx.user.identity}

    @auth.on.store
    async def below_the_name(ctx: Any, value: dict[str, Any]) -> None:
        value["namespace"] = (ctx.user.identity, *(value["namespace"] or ()))

    return auth


@pytest.fixture
def house(serve: Serve) -> Running:
    return serve(Settings(auth=AuthSettings("custom", handler=handlers())), worker=False)


@pytest.fixture
def ada(house: Running) -> Iterator[Any]:
    with get_sync_client(url=house.url, api_key=None, headers={"Authorization": "Bearer ada"}) as client:
        yield client


@pytest.fixture
def bob(house: Running) -> Iterator[Any]:
    with get_sync_client(url=house.url, api_key=None, headers={"Authorization": "Bearer bob"}) as client:
        yield client


def test_assistant_is_stamped_when_it_is_made_and_seen_by_its_maker_alone(ada: Any, bob: Any) -> None:
    made = ada.assistants.create("chat", name="Hers", metadata={"team": "sales"})
    key = made["assistant_id"]

    assert made["metadata"] == {"team": "sales", "by": "ada"}
    assert [one["name"] for one in ada.assistants.search(name="Hers")] == ["Hers"]
    assert bob.assistants.search(name="Hers") == []
    for call in (bob.assistants.get, bob.assistants.delete, bob.assistants.get_schemas, bob.assistants.get_versions):
        with pytest.raises(NotFoundError, match="Invalid assistant ID"):
            call(key)
    with pytest.raises(NotFoundError):
        bob.assistants.update(key, name="His")
    with pytest.raises(ConflictError):
        bob.assistants.create("chat", assistant_id=key, if_exists="do_nothing")
    assert ada.assistants.update(key, name="Still hers")["version"] == 2
    assert bob.assistants.get("chat")["metadata"] == {"created_by": "system"}  # that one is there for everybody


def test_cron_is_made_by_those_who_may_and_seen_by_its_maker_alone(ada: Any, bob: Any) -> None:
    with pytest.raises(PermissionDeniedError):
        bob.crons.create("counting", schedule="0 9 * * *")

    made = ada.crons.create("counting", schedule="0 9 * * *")

    assert (made["metadata"], made["user_id"]) == ({"by": "ada"}, "ada")
    assert (ada.crons.count(), bob.crons.count(), bob.crons.search()) == (1, 0, [])
    with pytest.raises(NotFoundError):
        bob.crons.delete(made["cron_id"])
    assert ada.crons.update(made["cron_id"], enabled=False)["enabled"] is False


def test_items_lie_where_the_handler_puts_them(ada: Any, bob: Any) -> None:
    for name, who in (("ada", ada), ("bob", bob)):
        who.store.put_item(["notes"], "k", {"of": name})

    assert ada.store.get_item(["notes"], "k")["namespace"] == ["ada", "notes"]
    assert [item["value"] for item in bob.store.search_items([])["items"]] == [{"of": "bob"}]
    assert bob.store.list_namespaces()["namespaces"] == [["bob", "notes"]]
    ada.store.delete_item(["notes"], "k")
    assert bob.store.get_item(["notes"], "k")["value"] == {"of": "bob"}
