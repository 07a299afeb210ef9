"""Webhooks that come in: `POST /hooks/{name}`. Believed, stored, matched; only then is the sender told so."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse

from bide.errors import SettingsError
from bide.runtime.views import Delivery
from bide.server.context import Server
from bide.server.hooks.payloads import known_by, read_payload
from bide.server.hooks.signatures import SIGNATURE_HEADERS, Call, Forged, Trust, check_secret, verify
from bide.server.problems import Problem, not_found
from bide.server.raw_body import read_body
from bide.server.settings import HookSettings
from bide.waits.texts import is_name

logger = logging.getLogger("bide.server.hooks")
router = APIRouter(tags=["hooks"])

_SECRET_HEADERS = SIGNATURE_HEADERS | {"authorization", "cookie", "proxy-authorization", "x-api-key"}
_NOT_BELIEVED = "The signature of this call is missing, wrong or too old. Nothing was stored."


def check_hooks(hooks: Sequence[HookSettings]) -> None:
    """Refuse hooks that could never be called, or by anybody, before the server starts."""
    seen: set[str] = set()
    for hook in hooks:
        problem = _problem_of(hook)
        if hook.name in seen:
            problem = "there is another one of this name"
        if problem is not None:
            raise SettingsError(f"The hook {hook.name!r} cannot be served: {problem}.")
        seen.add(hook.name)


def _problem_of(hook: HookSettings) -> str | None:
    if not is_name(hook.name) or "/" in hook.name:
        return "a name is one line of text without '/'"
    if hook.scheme == "none":
        return None if not hook.secrets else "it has secrets, and scheme='none' checks nothing; name the scheme"
    if not hook.secrets:
        return "it has no secrets to check signatures with; give some, or say scheme='none' if anybody may call it"
    odd = sorted(name for name in hook.headers if name.lower() in _SECRET_HEADERS)
    if odd:
        return f"the header {odd[0]!r} is a secret, and would be stored with what was delivered"
    found = (check_secret(hook.scheme, secret) for secret in hook.secrets)
    return next((f"of one of its secrets, {problem}" for problem in found if problem is not None), None)


def hook_of(
    server: Server, name: Annotated[str, Path(max_length=200, description="The name of the hook.")]
) -> HookSettings:
    """Find the hook that is called."""
    hook = next((one for one in server.settings.hooks if one.name == name), None)
    if hook is None:
        raise not_found("hook", name)
    return hook


Hook = Annotated[HookSettings, Depends(hook_of)]


async def call_of(request: Request, server: Server, hook: Hook) -> Call:
    """Read a call; `hook` comes first, so that nobody makes us read a body for a hook that is not there."""
    return Call(dict(request.headers), await read_body(request, server.settings.limits.body))


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Stored, and somebody goes on; or it was stored before."},
    202: {"description": "Stored: nobody waits for it yet."},
    400: {"description": "The body cannot be read."},
    401: {"description": "It was not signed with a secret of this hook, or too long ago."},
    404: {"description": "There is no such hook."},
    413: {"description": "The body is too large."},
    415: {"description": "The body is none of JSON, form, or text."},
    429: {"description": "Too many calls; `Retry-After` says when to come again."},
    503: {"description": "It could not be stored right now; send it again."},
}


@router.post(
    "/hooks/{name}",
    summary="Bring the call of a webhook",
    responses=_ANSWERS,
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {}}}}},
)
def take_call(server: Server, hook: Hook, call: Annotated[Call, Depends(call_of)]) -> JSONResponse:
    """Store the call and wake whoever waits for it. The same call again changes nothing, and is told what became of
    the first."""
    trust = Trust(hook.secrets, hook.tolerance, server.app.store.clock.now())
    try:
        verify(hook.scheme, call, trust)
    except Forged as problem:
        logger.warning("A call of the hook %r was refused: %s.", hook.name, problem)
        raise Problem(401, _NOT_BELIEVED) from problem
    payload = read_payload(hook.scheme, call)
    if hook.scheme == "slack" and isinstance(payload, dict) and payload.get("type") == "url_verification":
        return JSONResponse({"challenge": payload.get("challenge")})
    delivery = server.app.deliver(
        hook.name,
        _with_headers(hook, call, payload),
        kind="webhook",
        source=f"hook:{hook.name}",
        external_id=known_by(hook.scheme, call, payload, hook.known_by),
        owner=hook.owner,
    )
    return _told(delivery)


def _with_headers(hook: HookSettings, call: Call, payload: Any) -> Any:
    if not hook.headers:
        return payload
    wanted: Mapping[str, str | None] = {name.lower(): call.headers.get(name.lower()) for name in hook.headers}
    return {"body": payload, "headers": wanted}


def _told(delivery: Delivery) -> JSONResponse:
    status = "duplicate" if not delivery.is_new else "delivered" if delivery.wakes else "stored"
    said = {"status": status, "delivery_id": delivery.id, "woke": delivery.wakes}
    return JSONResponse(said, 202 if status == "stored" else 200)
