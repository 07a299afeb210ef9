"""The API on one page, made of its own description; nothing is loaded from elsewhere, so it needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fastapi import Request, Response

from bide.server.caller import READ
from bide.server.context import Who
from bide.server.door import need
from bide.server.pages.look import page
from bide.server.pages.page_routes import pages_router

router = pages_router()

_GROUPS = {None: "keys and audit", "Operations": "operations"}
_FIRST = ("waits", "threads", "conversations", "runs", "thread protocol", "events", "deliveries", "schedules", "links")
_METHODS = ("get", "post", "put", "patch", "delete")


class Given(NamedTuple):
    """What a route takes: in its address, a header or its body."""

    name: str
    where: str
    kind: str
    about: str
    is_needed: bool


class Route(NamedTuple):
    """One thing that can be asked of the server."""

    method: str
    path: str
    about: str
    takes: list[Given]


@router.get("/docs")
def reference(request: Request, who: Who) -> Response:
    """Show every route of the API, what it does, and what it takes."""
    need(who, READ)
    groups: dict[str, list[Route]] = {name: [] for name in _FIRST}
    for group, route in routes_of(request.app.openapi()):
        groups.setdefault(group, []).append(route)
    return page(request, "api.html", groups={name: found for name, found in groups.items() if found})


def routes_of(described: Mapping[str, Any]) -> Iterator[tuple[str, Route]]:
    """Return the routes that an OpenAPI document tells of, each with its group."""
    for path, item in described["paths"].items():
        for method in _METHODS:
            if method not in item:
                continue
            told = item[method]
            tag = (told.get("tags") or [None])[0]
            about = str(told.get("description") or told.get("summary") or "")
            takes = [*_in_address(told, described), *_in_body(told, described)]
            yield _GROUPS.get(tag, str(tag)), Route(method.upper(), path, about, takes)


def _in_address(told: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[Given]:
    for one in told.get("parameters") or ():
        kind = _kind(one.get("schema") or {}, described)
        yield Given(one["name"], one["in"], kind, one.get("description", ""), bool(one.get("required")))


def _in_body(told: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[Given]:
    contents = (told.get("requestBody") or {}).get("content") or {}
    schema = _found((contents.get("application/json") or {}).get("schema") or {}, described)
    for name, part in (schema.get("properties") or {}).items():
        about = part.get("description", "")
        yield Given(name, "body", _kind(part, described), about, name in (schema.get("required") or ()))


def _found(schema: Mapping[str, Any], described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to where the schema is."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found: Mapping[str, Any] = described.get("components", {}).get("schemas", {}).get(name, {}) if name else schema
    return found


def _kind(schema: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """Say what a value must be, in a few words."""
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return " or ".join(dict.fromkeys(_kind(one, described) for one in several if one.get("type") != "null"))
    if "$ref" in schema:
        return _kind(_found(schema, described), described)
    if schema.get("enum"):
        return ", ".join(str(one) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items') or {}, described)}"
    return str(schema.get("format") or schema.get("const") or schema.get("type") or "any JSON")
