"""Routes for people: what goes wrong is a page too, and what was typed is read once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from bide.errors import BideError
from bide.server.pages.look import HEADERS, page
from bide.server.problems import Problem, logger, status_of

Typed = Mapping[str, str]
MOST_FIELDS = 1000


class PageRoute(APIRoute):
    """A route whose errors are told as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the route."""
        handle = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handle(request)
            except Problem as problem:
                return _trouble(request, problem.status, problem.detail)
            except RequestValidationError:
                return _trouble(request, 422, "This address is not one of the inbox: something in it does not fit.")
            except BideError as error:
                status = status_of(error)
                if status >= 500:
                    logger.error("%s %s: %s", request.method, request.url.path, error, exc_info=error)
                return _trouble(request, status, str(error))

        return told


def pages_router() -> APIRouter:
    """Return a router for pages."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


_TITLES = {
    403: "Not yours to do",
    404: "Not here",
    409: "Somebody was faster",
    410: "Too late",
    422: "That does not fit",
}


def _trouble(request: Request, status: int, detail: str) -> Response:
    return page(request, "trouble.html", status=status, title=_TITLES.get(status, "That did not work"), detail=detail)


async def typed_in(request: Request) -> Typed:
    """Read a form that was sent by one of our own pages."""
    _refuse_strangers(request)
    try:
        text = (await request.body()).decode("utf-8")
        read = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Problem(422, "What was sent is no form of these pages.") from None
    return dict(read)


def _refuse_strangers(request: Request) -> None:
    """Refuse a form that stands on a page of somebody else: a browser tells where it comes from."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_strange = site not in ("same-origin", "none")
    else:
        is_strange = origin is not None and origin.partition("://")[2] != request.headers.get("host")
    if is_strange:
        raise Problem(403, "This form was sent from another site. Open the inbox itself, and decide there.")


Form = Annotated[Typed, Depends(typed_in)]


def back_to(place: str) -> RedirectResponse:
    """Send a browser on after something was done, so that reloading does not do it again."""
    headers = {name: value for name, value in HEADERS.items() if name != "Vary"}
    return RedirectResponse(place, 303, headers=headers)
