"""Signing in and out in a browser: a key goes in once, and a cookie comes back."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from bide.server.auth.audit import audit
from bide.server.auth.credentials import LONGEST, Credential
from bide.server.auth.gate import Gate
from bide.server.auth.refusal import Refused
from bide.server.auth.sessions import COOKIE, LASTS, Sessions
from bide.server.auth.strangers import check_origin
from bide.server.context import context_of
from bide.server.problems import Problem

router = APIRouter(include_in_schema=False)

MOST_FIELDS = 20


@router.post("/login")
async def sign_in(request: Request) -> Response:
    """Take a key or a token, as `key` of a form or of JSON; a form goes on to `next`."""
    _check_not_strange(request)
    said = await _said(request)
    gate, sessions = _doors(request)
    credential = str(said.get("key") or "").strip()
    onward = local_path(str(said.get("next") or "/"))
    try:
        if not credential or len(credential) > LONGEST:
            raise Refused(401, "Give the key that you were given.")
        caller = await gate.caller(request, Credential(credential, is_ambient=True))
        cookie = await run_in_threadpool(sessions.made, credential)
        if cookie is None:
            raise Refused(422, "This token is too large for a browser's cookie: sign in with an API key.")
    except Refused as refused:
        return _failed(request, refused, onward)
    await run_in_threadpool(audit, context_of(request), caller, "session.begin", caller.identity, None, "accepted")
    opened = await run_in_threadpool(sessions.opened, cookie)
    response = _answer(request, onward, {"identity": caller.identity, "csrf": opened.csrf if opened else ""})
    response.set_cookie(
        COOKIE, cookie, max_age=LASTS, path="/", secure=_is_secure(request), httponly=True, samesite="lax"
    )
    return response


@router.post("/logout")
async def sign_out(request: Request) -> Response:
    """Forget the cookie."""
    _check_not_strange(request)
    response = _answer(request, "/login", {"status": "signed out"})
    response.delete_cookie(COOKIE, path="/", secure=_is_secure(request), httponly=True, samesite="lax")
    return response


def local_path(given: str) -> str:
    """Return a path of this server: whoever signs in is not sent to a place that a stranger has chosen."""
    is_ours = given.startswith("/") and not given.startswith("//") and "\\" not in given and given.isprintable()
    return given if is_ours else "/"


def _doors(request: Request) -> tuple[Gate, Sessions]:
    gate, sessions = request.app.state.doors
    return gate, sessions


def _check_not_strange(request: Request) -> None:
    """Refuse to sign somebody in as another, or out, on behalf of another page."""
    try:
        check_origin(request.scope, context_of(request).settings)
    except Refused as refused:
        raise Problem(refused.status, refused.detail) from None


async def _said(request: Request) -> dict[str, Any]:
    text = (await request.body()).decode("utf-8", "replace")
    if not _is_form(request):
        try:
            said = json.loads(text or "{}")
        except (ValueError, RecursionError):
            raise Problem(422, "Send a form, or JSON with a `key`.") from None
        return said if isinstance(said, dict) else {}
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Problem(422, "The form has too many fields.") from None


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")


def _answer(request: Request, onward: str, said: dict[str, Any]) -> Response:
    headers = {"Cache-Control": "no-store"}
    if _is_form(request):
        return RedirectResponse(onward, 303, headers)
    return JSONResponse(said, headers=headers)


def _failed(request: Request, refused: Refused, onward: str) -> Response:
    if _is_form(request):
        return RedirectResponse(f"/login?failed=1&next={quote(onward, safe='/')}", 303, {"Cache-Control": "no-store"})
    raise Problem(refused.status, refused.detail, headers=refused.headers)


def _is_secure(request: Request) -> bool:
    public = context_of(request).settings.public_url or ""
    return request.url.scheme == "https" or public.startswith("https:")
