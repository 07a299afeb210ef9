"""The long-term store over HTTP: values that outlive threads, under a key of a namespace."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from bide.server.auth.authorize import authorize
from bide.server.caller import Caller
from bide.server.context import Context, Server, Who
from bide.server.langgraph.assistant_shapes import Fields
from bide.server.langgraph.choosing import FURTHEST, MOST, Asked, Page
from bide.server.langgraph.owned_items import NOT_GIVEN, OwnedItems
from bide.server.langgraph.plain_json import PlainJsonRoute
from bide.server.langgraph.wire import jsonable, read_bool

router = APIRouter(prefix="/store", tags=["store"], route_class=PlainJsonRoute)


class ItemPut(Asked):
    """An item to be written; its time to live is in minutes."""

    namespace: list[str]
    key: str
    value: Fields
    index: Literal[False] | list[str] | None = None
    ttl: float | None = Field(default=None, gt=0)


class ItemPlace(Asked):
    """Where an item is."""

    namespace: list[str]
    key: str


class ItemSearch(Page):
    """Which items are to be found."""

    namespace_prefix: list[str] = Field(default_factory=list)
    filter: Fields | None = None
    query: str | None = None
    refresh_ttl: bool | None = None


class NamespaceSearch(Asked):
    """Which namespaces are to be listed."""

    prefix: list[str] | None = None
    suffix: list[str] | None = None
    max_depth: int | None = Field(default=None, ge=1, le=FURTHEST)
    limit: int = Field(default=100, ge=1, le=MOST)
    offset: int = Field(default=0, ge=0, le=FURTHEST)


@router.put("/items", status_code=204, response_class=Response)
def put(ctx: Server, caller: Who, asked: ItemPut) -> None:
    """Write an item, over the one that is there."""
    ttl = asked.ttl if "ttl" in asked.model_fields_set else NOT_GIVEN
    said = _asked(caller, "put", asked)
    _items(ctx, caller).put(said["namespace"], said["key"], said["value"], said["index"], ttl)


@router.get("/items")
def get(
    ctx: Server,
    caller: Who,
    key: str,
    namespace: Annotated[str, Query(description="Its labels, with periods between them.")] = "",
    refresh_ttl: str | None = None,
) -> Fields | None:
    """Return an item, or null."""
    said = _asked(caller, "get", ItemPlace(namespace=namespace.split(".") if namespace else [], key=key))
    refresh = None if refresh_ttl is None else read_bool(refresh_ttl)
    shown: Fields | None = jsonable(_items(ctx, caller).get(said["namespace"], said["key"], refresh))
    return shown


@router.delete("/items", status_code=204, response_class=Response)
def delete(ctx: Server, caller: Who, asked: ItemPlace) -> None:
    """Delete an item, if it is there."""
    said = _asked(caller, "delete", asked)
    _items(ctx, caller).delete(said["namespace"], said["key"])


@router.post("/items/search")
def search(ctx: Server, caller: Who, asked: ItemSearch | None = None) -> Fields:
    """Find items in a namespace and below it, the most recently written first."""
    said = _asked(caller, "search", asked or ItemSearch(), "namespace_prefix")
    how = {name: said[name] for name in ("query", "filter", "refresh_ttl")}
    return {"items": jsonable(_items(ctx, caller).search(said["namespace"], said["offset"], said["limit"], **how))}


@router.post("/namespaces")
def namespaces(ctx: Server, caller: Who, asked: NamespaceSearch | None = None) -> Fields:
    """List the namespaces that hold something, in order."""
    said = _asked(caller, "list_namespaces", asked or NamespaceSearch(), "prefix")
    found = _items(ctx, caller).namespaces(
        said["namespace"] or (), said["suffix"] or (), said["max_depth"], said["offset"], said["limit"]
    )
    return {"namespaces": found}


def _items(ctx: Context, caller: Caller) -> OwnedItems:
    return OwnedItems(ctx.app.store.items, caller.owner)


def _asked(caller: Caller, action: str, asked: Asked, place: str = "namespace") -> Fields:
    """Return what is asked for, as the application's own handlers have it: they may put it under another namespace."""
    said = asked.model_dump()
    labels = said.pop(place)
    said["namespace"] = None if labels is None else tuple(labels)
    authorize(caller, "store", action, said)
    return said
