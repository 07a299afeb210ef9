"""The page on which somebody shows a key, and gets a session for it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from bide.server.pages.look import bare_page
from bide.server.pages.page_routes import pages_router

router = pages_router()

Text = Annotated[str, Query(max_length=2000)]


@router.get("/login")
def login(
    request: Request, onward: Annotated[str, Query(alias="next", max_length=2000)] = "/", failed: Text = ""
) -> Response:
    """Ask for a key; who signs in goes on to `next`, if that is one of our pages."""
    problem = "This key opens nothing: it is unknown, revoked or expired." if failed else ""
    return bare_page(request, "login.html", status=401 if failed else 200, problem=problem, onward=onward)
