"""Links for people without an account, made and withdrawn on the page of a wait."""

from __future__ import annotations

from fastapi import Request, Response

from bide.errors import BideError
from bide.server.auth.audit import audit
from bide.server.caller import RESOLVE
from bide.server.context import Server, Who
from bide.server.door import need, owned_wait
from bide.server.links.making import DEFAULT, make_link
from bide.server.links.offers import ANY
from bide.server.pages.page_routes import Form, back_to, pages_router
from bide.server.pages.places import wait_place
from bide.server.pages.saying import BAD, GOOD, Flash, address
from bide.server.pages.waits import wait_page
from bide.server.problems import Problem, not_found
from bide.store.signed_links import find_link, revoke_link

router = pages_router()


@router.post("/inbox/waits/{wait_id}/links")
def make(request: Request, server: Server, who: Who, wait_id: str, typed: Form) -> Response:
    """Make a link, and show its address this once."""
    need(who, RESOLVE)
    row, recipient = owned_wait(server.app, who, wait_id), typed.get("recipient", "").strip()
    expires, leaf = typed.get("expires", "").strip() or DEFAULT, typed.get("part", "")
    try:
        made = make_link(server, wait_id, (ANY,), recipient, expires, leaf=leaf, base=str(request.base_url))
    except (Problem, BideError) as problem:
        return wait_page(request, server.app, who, wait_id, status=422, flash=Flash(BAD, str(problem)))
    audit(
        server,
        who,
        "link.make",
        wait_id,
        row.thread_id,
        "accepted",
        link=made.link.link_id,
        recipient=recipient,
        via="inbox",
    )
    flash = Flash(GOOD, "The link is below. It is shown this once: copy it now.")
    return wait_page(request, server.app, who, wait_id, flash=flash, made=made.url)


@router.post("/inbox/waits/{wait_id}/links/{link_id}/withdraw")
def withdraw(server: Server, who: Who, wait_id: str, link_id: str, typed: Form) -> Response:
    """Withdraw a link: it decides nothing from now on."""
    need(who, RESOLVE)
    row = find_link(server.app.store, link_id)
    if row is None or row.owner != who.owner or row.wait_id != wait_id:
        raise not_found("link", link_id)
    is_done = revoke_link(server.app.store, link_id)
    audit(server, who, "link.revoke", wait_id, None, "accepted" if is_done else "late", link=link_id, via="inbox")
    return back_to(address(wait_place(wait_id), "unlinked" if is_done else "over"))
