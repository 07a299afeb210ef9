"""The application's own handlers, with the real `Auth` of langgraph_sdk: who calls, and what they may do."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import Request
from langgraph_sdk import Auth
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from bide.errors import SettingsError
from bide.server import Settings
from bide.server.auth.authorize import aauthorize, authorize, check_visible, matches
from bide.server.context import Who
from bide.server.problems import Problem
from bide.server.settings import AuthSettings
from bide.store import Store
from tests.server.auth.doors import ECHO, WHO, door, serving


def custom(auth: Any) -> Settings:
    return Settings(auth=AuthSettings("custom", handler=auth))


def simple_auth() -> Auth:
    """Anybody who says a name is believed."""
    auth = Auth()

    @auth.authenticate
    async def who(authorization: str | None) -> dict[str, Any]:
        if not authorization:
            raise Auth.exceptions.HTTPException(status_code=401, detail="Say who you are.")
        name = authorization.removeprefix("Bearer ")
        return {"identity": name, "permissions": ["threads:read"], "team": "blue"}

    return auth


AS_ADA = {"Authorization": "Bearer ada"}


def test_handler_says_who_calls(store: Store):
    with serving(store, custom(simple_auth())) as client:
        found = client.get(WHO, headers=AS_ADA).json()
        refused = client.get(WHO)

    assert (found["identity"], found["owner"], found["user"]["team"]) == ("ada", "", "blue")
    assert found["scopes"] == ["read", "resolve", "run"]
    assert (refused.status_code, refused.json()) == (401, {"detail": "Say who you are."})
    assert "www-authenticate" in refused.headers


@pytest.mark.parametrize("field", ["owner", "tenant_id"])
def test_handler_may_say_whose_things_a_caller_sees(store: Store, field):
    auth = Auth()

    @auth.authenticate
    async def who(authorization: str) -> dict[str, Any]:
        return {"identity": "ada", field: "acme"}

    with serving(store, custom(auth)) as client:
        assert client.get(WHO, headers=AS_ADA).json()["owner"] == "acme"


def test_owner_is_never_taken_from_what_the_caller_sends(store: Store):
    with serving(store, custom(simple_auth())) as client:
        sent = client.post(f"{ECHO}?owner=bob&tenant_id=bob", json={"owner": "bob"}, headers={**AS_ADA, "owner": "bob"})

    assert sent.json() == {"owner": "", "body": '{"owner":"bob"}'}


def test_permissions_in_our_own_words_are_scopes(store: Store):
    auth = Auth()

    @auth.authenticate
    async def who() -> dict[str, Any]:
        return {"identity": "ada", "permissions": ["read", "threads:write"]}

    with serving(store, custom(auth)) as client:
        found = client.get(WHO).json()["scopes"]
        refused = client.post(ECHO).status_code

    assert (found, refused) == (["read"], 403)


def test_handler_is_given_what_its_parameters_name(store: Store):
    auth, seen = Auth(), {}

    @auth.authenticate
    async def who(request, body, path, method, path_params, query_params, headers, authorization, scopes, extra=7):
        seen.update(
            body=body,
            path=path,
            method=method,
            path_params=path_params,
            query_params=query_params,
            by_bytes=headers.get(b"x-api-key"),
            by_text=headers.get("X-Api-Key"),
            missing=headers.get("x-none", "nothing"),
            authorization=authorization,
            of_request=request.headers["x-api-key"],
            scopes=scopes,
            extra=extra,
        )
        return "ada"

    with serving(store, custom(auth)) as client:
        sent = client.post(f"{ECHO}?a=1", json={"b": 2}, headers={**AS_ADA, "x-api-key": "k"})

    assert sent.json() == {"owner": "", "body": '{"b":2}'}, "the route reads the same body again"
    assert seen == {
        "body": {"b": 2},
        "path": ECHO,
        "method": "POST",
        "path_params": {},
        "query_params": {"a": "1"},
        "by_bytes": b"k",
        "by_text": "k",
        "missing": "nothing",
        "authorization": "Bearer ada",
        "of_request": "k",
        "scopes": [],
        "extra": 7,
    }


def test_handler_is_given_the_parts_of_the_path(store: Store):
    auth, seen = Auth(), []

    @auth.authenticate
    async def who(path_params: dict[str, str]) -> str:
        seen.append(path_params)
        return "ada"

    with serving(store, custom(auth)) as client:
        client.delete("/keys/k-1")

    assert seen == [{"key_id": "k-1"}]


class Person:
    identity = "ada"
    display_name = "Ada"
    permissions = ("read",)
    is_authenticated = True


@pytest.mark.parametrize("said", ["ada", {"identity": "ada"}, Person()], ids=["str", "dict", "object"])
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
def test_user_may_be_a_name_a_dict_or_an_object(store: Store, said, is_async):
    auth = Auth()

    if is_async:

        async def who() -> Any:
            return said
    else:

        def who() -> Any:
            return said

    auth.authenticate(who)

    with serving(store, custom(auth)) as client:
        assert client.get(WHO).json()["identity"] == "ada"


@pytest.mark.parametrize(
    ("failure", "status", "detail"),
    [
        (Auth.exceptions.HTTPException(status_code=403, detail="Banned.", headers={"x-why": "spam"}), 403, "Banned."),
        (HTTPException(418, "Teapot."), 418, "Teapot."),
        (AssertionError("not you"), 401, "not you"),
        (RuntimeError("a secret in the text"), 500, "log says why"),
    ],
    ids=["langgraph", "starlette", "assert", "broken"],
)
def test_handler_that_raises_keeps_the_door_shut(store: Store, failure, status, detail):
    auth = Auth()

    @auth.authenticate
    async def who() -> str:
        raise failure

    with serving(store, custom(auth)) as client:
        refused = client.get(WHO)

    assert refused.status_code == status
    assert detail in refused.json()["detail"]
    assert "secret" not in refused.text


@pytest.mark.parametrize("said", [None, {}, {"identity": ""}, 7], ids=str)
def test_handler_that_names_nobody_keeps_the_door_shut(store: Store, said):
    auth = Auth()

    @auth.authenticate
    async def who() -> Any:
        return said

    with serving(store, custom(auth)) as client:
        assert client.get(WHO).status_code == 500


def test_guest_of_a_handler_does_not_come_in(store: Store):
    auth = Auth()

    @auth.authenticate
    async def who() -> dict[str, Any]:
        return {"identity": "guest", "is_authenticated": False}

    with serving(store, custom(auth)) as client:
        assert client.get(WHO).status_code == 401


def test_object_is_found_by_the_name_of_its_file(store: Store, tmp_path):
    (tmp_path / "my_auth.py").write_text(
        "from langgraph_sdk import Auth\n"
        "auth = Auth()\n"
        "@auth.authenticate\n"
        "async def who():\n"
        "    return 'from a file'\n"
    )

    with serving(store, custom(f"{tmp_path / 'my_auth.py'}:auth")) as client:
        assert client.get(WHO).json()["identity"] == "from a file"


def asks_for_too_much(user_agent: str) -> str:
    return user_agent


@pytest.mark.parametrize(
    "handler", ["nowhere.py:auth", "no_such_module_here:auth", "json:auth", "json", object(), Auth()]
)
def test_handler_that_is_none_is_refused_at_the_start(store: Store, handler):
    with pytest.raises(SettingsError), serving(store, custom(handler)):
        pass


def test_handler_that_asks_for_what_nobody_gives_is_refused_at_the_start(store: Store):
    auth = Auth()
    auth.authenticate(asks_for_too_much)

    with pytest.raises(SettingsError, match="user_agent"), serving(store, custom(auth)):
        pass


# ── What they may do ───────────────────────────────────────────────────────────────────────────────────────────────


def asking(store: Store, auth: Auth) -> TestClient:
    """A server with a route that asks for leave, blocking and not."""
    api = door(store, custom(auth))

    @api.post("/assistants/probe/ask/{resource}/{action}")
    def ask(resource: str, action: str, request: Request, value: dict[str, Any]) -> Any:
        return {"filter": authorize(request, resource, action, value), "value": value}

    @api.post("/assistants/probe/await/{resource}/{action}")
    async def await_(resource: str, action: str, who: Who, value: dict[str, Any]) -> Any:
        return {"filter": await aauthorize(who, resource, action, value), "value": value}

    @api.post("/assistants/probe/wrong")
    async def wrong(request: Request) -> Any:
        return authorize(request, "threads", "read")

    return TestClient(api, headers=AS_ADA, raise_server_exceptions=False)


@pytest.mark.parametrize("way", ["ask", "await"])
def test_most_specific_handler_decides(store: Store, way):
    auth = simple_auth()

    @auth.on
    async def everything(ctx: Auth.types.AuthContext, value: Any) -> bool:
        return False

    @auth.on.threads
    async def threads(ctx: Auth.types.AuthContext, value: Any) -> Any:
        return {"owner": ctx.user.identity}

    @auth.on.threads.create
    async def create(ctx: Auth.types.AuthContext, value: Any) -> Any:
        value.setdefault("metadata", {})["owner"] = ctx.user["identity"]
        value["team"] = ctx.user.team
        return True

    with asking(store, auth) as client:
        created, read, refused = (
            client.post(f"/assistants/probe/{way}/{what}", json={"a": 1})
            for what in ("threads/create", "threads/read", "assistants/read")
        )

    assert created.json() == {"filter": None, "value": {"a": 1, "metadata": {"owner": "ada"}, "team": "blue"}}
    assert read.json() == {"filter": {"owner": "ada"}, "value": {"a": 1}}
    assert refused.status_code == 403


def test_without_a_handler_everything_is_allowed(store: Store):
    with asking(store, simple_auth()) as client:
        assert client.post("/assistants/probe/ask/threads/read", json={}).json() == {"filter": None, "value": {}}


def test_handler_of_several_resources_and_actions_is_found(store: Store):
    auth = simple_auth()

    @auth.on(resources=["threads", "assistants"], actions=["read", "search"])
    async def looking(ctx: Auth.types.AuthContext, value: Any) -> Any:
        return {"seen_by": {"$contains": f"{ctx.user.identity}:{ctx.resource}.{ctx.action}"}}

    with asking(store, auth) as client:
        found = client.post("/assistants/probe/ask/assistants/search", json={}).json()["filter"]
        others = client.post("/assistants/probe/ask/assistants/delete", json={}).json()["filter"]

    assert found == {"seen_by": {"$contains": "ada:assistants.search"}}
    assert others is None


def test_store_handler_rewrites_the_namespace(store: Store):
    auth = simple_auth()

    @auth.on.store
    async def scoped(ctx: Auth.types.AuthContext, value: Any) -> None:
        value["namespace"] = [ctx.user.identity, *value["namespace"]]

    with asking(store, auth) as client:
        found = client.post("/assistants/probe/ask/store/put", json={"namespace": ["notes"]}).json()

    assert found["value"] == {"namespace": ["ada", "notes"]}


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (Auth.exceptions.HTTPException(status_code=409, detail="Not now."), 409),
        (AssertionError("never"), 403),
        (ValueError("broken"), 500),
        ("owner", 500),
        ({"owner": {"$regex": ".*"}}, 500),
        ({"$or": [{}]}, 500),
    ],
    ids=str,
)
def test_handler_that_says_something_else_allows_nothing(store: Store, said, status):
    auth = simple_auth()

    @auth.on
    async def decide(ctx: Auth.types.AuthContext, value: Any) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    with asking(store, auth) as client:
        assert client.post("/assistants/probe/ask/threads/read", json={}).status_code == status


def test_blocking_question_on_the_event_loop_is_an_error_and_no_deadlock(store: Store):
    auth = simple_auth()

    @auth.on
    async def decide(ctx: Auth.types.AuthContext, value: Any) -> bool:
        return True

    with asking(store, auth) as client:
        assert client.post("/assistants/probe/wrong").status_code == 500


@pytest.mark.parametrize(
    ("filter_", "metadata", "is_seen"),
    [
        (None, None, True),
        ({}, {"owner": "bob"}, True),
        ({"owner": "ada"}, {"owner": "ada", "x": 1}, True),
        ({"owner": "ada"}, {"owner": "bob"}, False),
        ({"owner": "ada"}, {}, False),
        ({"owner": "ada"}, None, False),
        ({"owner": None}, {}, False),
        ({"owner": {"$eq": "ada"}}, {"owner": "ada"}, True),
        ({"owner": {"$eq": "ada"}}, {"owner": "bob"}, False),
        ({"team": {"$contains": "ada"}}, {"team": ["bob", "ada"]}, True),
        ({"team": {"$contains": "ada"}}, {"team": "ada and bob"}, False),
        ({"team": {"$contains": ["ada", "bob"]}}, {"team": ["bob", "eve", "ada"]}, True),
        ({"team": {"$contains": ["ada", "bob"]}}, {"team": ["bob"]}, False),
        ({"owner": "ada", "x": 1}, {"owner": "ada", "x": 2}, False),
        ({"x": 1}, {"x": True}, False),
        ({"x": {"deep": 1}}, {"x": {"deep": 1}}, True),
    ],
    ids=str,
)
def test_filter_matches_metadata(filter_, metadata, is_seen):
    assert matches(filter_, metadata) is is_seen


def test_what_does_not_match_is_not_there():
    with pytest.raises(Problem) as problem:
        check_visible({"owner": "ada"}, {"owner": "bob"}, "thread", "t-1")

    assert (problem.value.status, str(problem.value)) == (404, "There is no thread 't-1'.")
