"""A wait by itself, and whatever can be done about it."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request, Response

from bide.errors import BideError
from bide.runtime import Bide
from bide.server.auth.audit import audit
from bide.server.caller import READ, RESOLVE, RUN, Caller
from bide.server.context import Context, Server, Who
from bide.server.door import need, owned_wait
from bide.server.native.answering import Given, give
from bide.server.pages.answering import Answer, Refused, chosen_ask, read_answer, shown_again
from bide.server.pages.asks import Ask
from bide.server.pages.cards import card_of
from bide.server.pages.look import now_of, page
from bide.server.pages.made_links import links_shown
from bide.server.pages.page_routes import Form, back_to, pages_router
from bide.server.pages.places import live_place, thread_place, wait_place
from bide.server.pages.saying import BAD, Flash, address, flash_of, who_was_first
from bide.server.problems import Problem

router = pages_router()

_INBOX = "/"
VIA = "inbox"
"""Through what an answer came, for whoever reads the history."""


def wait_page(
    request: Request,
    app: Bide,
    caller: Caller,
    wait_id: str,
    *,
    status: int = 200,
    flash: Flash | None = None,
    changed: Ask | None = None,
    made: str = "",
) -> Response:
    """Show a wait, and why it still waits; `changed` is a form that did not fit, `made` a link that is told once."""
    owned_wait(app, caller, wait_id)
    wait, now = app.wait(wait_id), now_of(app)
    card = card_of(wait, now)
    if changed is not None:
        card = replace(card, asks=tuple(changed if ask.name == changed.name else ask for ask in card.asks))
    return page(
        request,
        "wait.html",
        status=status,
        card=card,
        explained=app.explain(wait_id),
        links=links_shown(app.store, wait_id),
        made=made,
        flash=flash,
        live=live_place(wait.thread_id),
    )


@router.get("/inbox/waits/{wait_id}")
def wait(request: Request, server: Server, who: Who, wait_id: str) -> Response:
    """Show one wait."""
    need(who, READ)
    asked = request.query_params
    return wait_page(request, server.app, who, wait_id, flash=flash_of(server.app, who, asked.get("said")))


@router.post("/inbox/waits/{wait_id}/answer")
def answer(request: Request, server: Server, who: Who, wait_id: str, typed: Form) -> Response:
    """Answer a wait; whoever comes second is told who was first, and what does not fit is shown again."""
    need(who, RESOLVE)
    app = server.app
    owned_wait(app, who, wait_id)
    asks = card_of(app.wait(wait_id), now_of(app)).asks
    if not asks:
        return _settled_before(request, server, who, wait_id, typed.get("key"))
    ask = chosen_ask(asks, typed)
    try:
        said = read_answer(ask, typed)
        told = give(server, who, wait_id, _given(said, typed))
    except Refused as refused:
        return _refused(request, app, who, wait_id, shown_again(ask, typed, refused))
    except Problem as problem:
        if problem.status in (409, 410):
            return _too_late(request, app, who, wait_id)
        return _refused(request, app, who, wait_id, shown_again(ask, typed, Refused([problem.detail])))
    except BideError as error:
        return _refused(request, app, who, wait_id, shown_again(ask, typed, Refused([str(error)])))
    code = told.status if told.status in ("resumed", "counted") else "again"
    return back_to(
        address(_INBOX if typed.get("from") != "thread" else thread_place(told.thread_id), code, wait=wait_id)
    )


def _given(said: Answer, typed: Form) -> Given:
    return Given(said.value, VIA, said.leaf, typed.get("key") or None, comment=said.comment)


def _refused(request: Request, app: Bide, caller: Caller, wait_id: str, ask: Ask) -> Response:
    flash = Flash(BAD, "This answer does not fit. Nothing was recorded; see below.")
    return wait_page(request, app, caller, wait_id, status=422, flash=flash, changed=ask)


def _settled_before(request: Request, server: Context, caller: Caller, wait_id: str, key: str | None) -> Response:
    """Tell whoever sends the same form again that it counts once, and everybody else who was first."""
    row = owned_wait(server.app, caller, wait_id)
    is_again = bool(key) and key == row.answer_key
    audit(server, caller, "wait.answer", wait_id, row.thread_id, "duplicate" if is_again else "late", via=VIA)
    if is_again:
        return back_to(address(_INBOX, "again", wait=wait_id))
    return _too_late(request, server.app, caller, wait_id)


def _too_late(request: Request, app: Bide, caller: Caller, wait_id: str) -> Response:
    flash = who_was_first(app.wait(wait_id), now_of(app))
    return wait_page(request, app, caller, wait_id, status=409, flash=flash)


@router.post("/inbox/waits/{wait_id}/cancel")
def cancel(server: Server, who: Who, wait_id: str, typed: Form) -> Response:
    """Withdraw a question."""
    need(who, RESOLVE)
    row = owned_wait(server.app, who, wait_id)
    is_done = server.app.cancel(wait_id=wait_id, by=who.identity, reason="withdrawn in the inbox")
    audit(server, who, "wait.cancel", wait_id, row.thread_id, "accepted" if is_done else "late", via=VIA)
    return back_to(address(_INBOX, "withdrawn" if is_done else "over", wait=wait_id))


@router.post("/inbox/waits/{wait_id}/cancel-thread")
def cancel_thread(server: Server, who: Who, wait_id: str, typed: Form) -> Response:
    """Cancel the thread that waits."""
    need(who, RUN)
    thread_id = owned_wait(server.app, who, wait_id).thread_id
    is_done = server.app.cancel(thread_id, by=who.identity, reason="cancelled in the inbox")
    audit(server, who, "thread.cancel", thread_id, thread_id, "accepted" if is_done else "late", via=VIA)
    return back_to(address(_INBOX, "cancelled" if is_done else "over", wait=wait_id))


@router.post("/inbox/waits/{wait_id}/change")
def change(request: Request, server: Server, who: Who, wait_id: str, typed: Form) -> Response:
    """Move the deadline, ask others, or put a wait aside for a while."""
    need(who, RESOLVE)
    row, what = owned_wait(server.app, who, wait_id), typed.get("what", "")
    if what not in _CHANGES:
        raise Problem(422, f"A wait has no {what!r:.40} that could be changed.")
    try:
        is_done = _CHANGES[what](server.app, who, wait_id, typed.get("to", "").strip())
    except BideError as error:
        return wait_page(request, server.app, who, wait_id, status=422, flash=Flash(BAD, str(error)))
    audit(server, who, f"wait.{what}", wait_id, row.thread_id, "accepted" if is_done else "late", via=VIA)
    return back_to(address(wait_place(wait_id), what if is_done else "over"))


def _extend(app: Bide, caller: Caller, wait_id: str, to: str) -> bool:
    return app.extend(wait_id, to or None, by=caller.identity)


def _reassign(app: Bide, caller: Caller, wait_id: str, to: str) -> bool:
    names = [name for one in to.split(",") if (name := one.strip())]
    return app.reassign(wait_id, names, by=caller.identity)


def _snooze(app: Bide, caller: Caller, wait_id: str, to: str) -> bool:
    return app.snooze(wait_id, to or None, by=caller.identity)


_CHANGES = {"extend": _extend, "reassign": _reassign, "snooze": _snooze}
