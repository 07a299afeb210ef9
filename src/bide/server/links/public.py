"""`/w/{token}`: the page of whoever has a link. GET and HEAD show, and change nothing: mail scanners open every link
that they see. Only POST decides, as a form without any script, or as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from bide.errors import InvalidAnswerError, StoreError
from bide.server.context import Context, Server
from bide.server.hooks.payloads import FORM, read_fields, read_json
from bide.server.links.deciding import Decided, Decision, check_words, decide
from bide.server.links.looking import Gone, Seen, look_at, told
from bide.server.links.showing import HEADERS, done_page, gone_page, link_page, machine_view
from bide.server.payloads import read_answer
from bide.server.problems import Problem, status_of
from bide.server.raw_body import read_body

router = APIRouter(tags=["links"])


async def body_of(request: Request, server: Server) -> bytes:
    """Read what was sent, up to the size of an answer."""
    return await read_body(request, server.settings.limits.answer)


_SAID: dict[int | str, dict[str, Any]] = {
    200: {"description": "What is to be decided; or that it is decided."},
    400: {"description": "What was sent cannot be read."},
    202: {"description": "The decision counts, and others are still needed."},
    403: {"description": "The link is not good for this."},
    404: {"description": "There is no such link."},
    409: {"description": "It was decided before: who it was, and when."},
    410: {"description": "The link has expired, was used or withdrawn; or the question is not there any more."},
    413: {"description": "Too much was sent."},
    415: {"description": "What was sent is neither JSON nor a form."},
    422: {"description": "What was sent does not fit the question."},
    429: {"description": "Too many requests; `Retry-After` says when to come again."},
    503: {"description": "It could not be stored right now; try again."},
}
_BOTH = {"text/html": {"schema": {"type": "string"}}, "application/json": {"schema": {"type": "object"}}}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {**said, "content": _BOTH} for status, said in sorted(_SAID.items(), key=str)
}
"""A page for people, JSON for programs."""


@router.get("/w/{token}", summary="Show what a link is about", responses=_ANSWERS, response_class=HTMLResponse)
def show(token: str, request: Request, server: Server) -> Response:
    """Show what there is to decide. Nothing is changed by that."""
    try:
        seen = look_at(server, token)
    except Gone as gone:
        return _gone(request, gone)
    if _wants_json(request):
        return _json(machine_view(seen))
    if seen.settled is not None:
        return done_page(request, seen, told(seen.settled, seen.now))
    return link_page(request, seen)


@router.head("/w/{token}", include_in_schema=False)
def show_head(token: str, request: Request, server: Server) -> Response:
    """Do the same, without the page."""
    return show(token, request, server)


@router.options("/w/{token}", include_in_schema=False)
def ask_methods(token: str) -> Response:
    """Say what can be done with a link, whether or not it is one."""
    return Response(status_code=204, headers={**HEADERS, "Allow": "GET, HEAD, POST, OPTIONS"})


@router.post(
    "/w/{token}",
    summary="Decide by a link",
    responses=_ANSWERS,
    response_class=HTMLResponse,
    openapi_extra={"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
def answer(token: str, request: Request, server: Server, body: Annotated[bytes, Depends(body_of)]) -> Response:
    """Decide, once."""
    try:
        return _answer(server, token, request, body)
    except Gone as gone:
        return _gone(request, gone)
    except Problem as problem:
        return _gone(request, Gone(problem.status, "refused", problem.detail))
    except StoreError as problem:
        status = status_of(problem)
        if status < 500:
            raise
        detail = "Your decision could not be stored right now. Nothing was decided: try again in a moment."
        return _gone(request, Gone(status, "unavailable", detail))


def _answer(server: Context, token: str, request: Request, body: bytes) -> Response:
    seen = look_at(server, token)
    kind = _kind(request)
    if kind == "application/json" or kind.endswith("+json"):
        return _answer_json(server, token, seen, read_json(body))
    if kind != FORM:
        raise Problem(415, 'Send a form, or JSON: {"action": …, "comment": …}.')
    typed = {name: value[-1] if isinstance(value, list) else value for name, value in read_fields(body).items()}
    return _answer_form(server, token, request, seen, typed)


def _answer_json(server: Context, token: str, seen: Seen, asked: Any) -> Response:
    if not isinstance(asked, dict) or not ("action" in asked or "value" in asked):
        raise Problem(422, 'Say what you decide: {"action": "approve"}, or {"value": …}; and "comment", if you like.')
    comment, action = asked.get("comment") or "", asked.get("action")
    if not isinstance(comment, str) or not isinstance(action, str | None):
        raise Problem(422, '"action" and "comment" are texts.')
    if "value" in asked:
        read = read_answer(seen.wait, asked["value"], seen.link.leaf or None)
        decision = Decision(seen.offer.action_of(read.value), read.value, comment or read.comment or "")
    else:
        _check_known(seen, action)
        decision = Decision(action, seen.offer.answer(action or "", asked.get("form"), comment), comment)
    missing = check_words(seen, decision)
    if missing is not None:
        raise Problem(422, missing)
    try:
        decided = decide(server, token, seen, decision)
    except InvalidAnswerError as problem:
        raise Problem(422, str(problem)) from problem
    return _told_json(decided)


def _answer_form(server: Context, token: str, request: Request, seen: Seen, typed: dict[str, str]) -> Response:
    action, comment = typed.get("action", ""), typed.get("comment", "").replace("\r\n", "\n").strip()
    if not action and len(seen.actions) == 1:
        action = seen.actions[0]  # whoever presses Enter in a field presses no button
    _check_known(seen, action)
    form, wrong = (None, {}) if seen.settled is not None else seen.offer.read(action, typed)
    decision = Decision(action, seen.offer.answer(action, form, comment), comment)
    problem = check_words(seen, decision)
    if wrong or problem:
        return link_page(request, seen, typed=typed, wrong=wrong, problem=problem, status=422)
    try:
        decided = decide(server, token, seen, decision)
    except InvalidAnswerError as invalid:
        return link_page(request, seen, typed=typed, problem=_listed(invalid), status=422)
    return done_page(request, decided.seen, decided.sentence, status=_status(decided), decided=decided)


def _check_known(seen: Seen, action: str | None) -> None:
    if action not in seen.offer.options:
        raise Problem(422, f"Say what you decide; there is: {', '.join(seen.actions)}.")


def _listed(problem: InvalidAnswerError) -> str:
    """Return what is wrong, without what only whoever runs the thread understands."""
    lines = [line.strip(" -") for line in str(problem).splitlines() if line.startswith("  - ")]
    return "; ".join(lines) or str(problem)


def _status(decided: Decided) -> int:
    if decided.settled is None:
        return 202 if decided.status == "counted" else 200
    if decided.is_again:
        return 200
    return 409 if decided.settled.status in ("answered", "needless") else 410


def _told_json(decided: Decided) -> Response:
    said: dict[str, Any] = {"status": decided.status, "detail": decided.sentence, "wait_id": decided.seen.wait.id}
    if decided.settled is not None:
        at = decided.settled.at
        said |= {"by": decided.settled.by, "at": at and at.isoformat(), "action": decided.settled.action}
    return _json(said, _status(decided))


def _gone(request: Request, gone: Gone) -> Response:
    if _wants_json(request):
        return _json({"detail": gone.sentence, "status": gone.reason}, gone.status)
    return gone_page(request, gone)


def _json(said: Any, status: int = 200) -> JSONResponse:
    return JSONResponse(said, status, headers=HEADERS)


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _wants_json(request: Request) -> bool:
    """Whether a program asks: a browser always says that it takes HTML."""
    accepted = request.headers.get("accept", "")
    return "text/html" not in accepted and ("json" in accepted or "json" in _kind(request))
