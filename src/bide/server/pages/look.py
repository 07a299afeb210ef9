"""How a page is made: one template around all of them, and the headers that keep it safe."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from bide.clock import uuid7
from bide.runtime import Bide
from bide.runtime.views import moment
from bide.server.auth.middleware import CSRF
from bide.server.context import caller_of, context_of
from bide.server.pages import words
from bide.server.pages.assets import address_of

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""What a browser may load for a page: our own files, and nothing that stands in the page itself."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "X-Fragment",
}
FRAGMENT = "x-fragment"
"""The header of whoever wants a page without what stands around it, to put it in place of what is there."""
MOST_COUNTED = 1000


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("bide.server.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"json": words.as_json, "line": words.in_line, "stamp": words.stamp}
    made.globals |= {"asset": address_of}
    return made


_TEMPLATES = _environment()


def now_of(app: Bide) -> datetime:
    """Return what time it is, by the database's clock."""
    return moment(app.store.clock.now())  # type: ignore[return-value]


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page for whoever asks; `values` are what its template speaks of."""
    app, caller = context_of(request).app, caller_of(request)
    now = now_of(app)
    shown = {
        "layout": "fragment.html" if request.headers.get(FRAGMENT) else "page.html",
        "caller": caller,
        "csrf": request.scope.get(CSRF, ""),
        "key": uuid7(app.store.clock.now()),
        "here": request.url.path,
        "now": now,
        "ago": lambda then: words.ago(then, now),
        "left": lambda then: words.left(then, now),
        "waiting": lambda: count_open(app, caller.owner),
        "live": "",
        "flash": None,
        **values,
    }
    return HTMLResponse(_rendered(template, shown), status, headers=HEADERS)


def bare_page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page for somebody who is not signed in: nothing of the inbox stands around it."""
    shown = {"layout": "bare.html", "csrf": request.scope.get(CSRF, ""), **values}
    return HTMLResponse(_rendered(template, shown), status, headers=HEADERS)


def _rendered(template: str, shown: dict[str, Any]) -> bytes:
    """Return the bytes of a page. What was sent here may hold halves of characters, which no page can: as "?"."""
    return _TEMPLATES.get_template(template).render(shown).encode("utf-8", "replace")


def count_open(app: Bide, owner: str) -> str:
    """Say how many wait, for the badge beside the word Inbox."""
    params = {"owner": owner, "most": MOST_COUNTED + 1}
    found = app.store.database.read(lambda tx: tx.one("count_inbox", params))
    count = 0 if found is None else int(found[0])
    return f"{MOST_COUNTED}+" if count > MOST_COUNTED else str(count)
