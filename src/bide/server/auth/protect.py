"""The door put together: what every request passes before a route sees it, from the outside in."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from bide.runtime import Bide
from bide.server.auth import login, routes
from bide.server.auth.addresses import Addresses
from bide.server.auth.body_limit import BodyLimit
from bide.server.auth.cors import cors_options
from bide.server.auth.failures import Failures
from bide.server.auth.gate import gate_for
from bide.server.auth.middleware import Authentication
from bide.server.auth.rate_limit import Limiter, RateLimit
from bide.server.auth.request_id import RequestIds
from bide.server.auth.sessions import Sessions
from bide.server.auth.unkept import Unkept
from bide.server.native.described import refusals
from bide.server.settings import Settings


def protect(api: FastAPI, app: Bide, settings: Settings) -> None:
    """Give a server its door. Settings that cannot be meant are refused here, before anybody can come in."""
    gate, sessions = gate_for(settings.auth, app.store), Sessions(app.store)
    limiter = Limiter(settings.limits, app.store.clock)
    api.state.doors = (gate, sessions)
    api.include_router(routes.router, responses=refusals(404))
    api.include_router(login.router)
    # Whatever is added later lies further outside: read it from the bottom.
    api.add_middleware(Addresses)
    api.add_middleware(RateLimit, limiter=limiter)
    api.add_middleware(
        Authentication, store=app.store, gate=gate, sessions=sessions, settings=settings, limiter=limiter
    )
    api.add_middleware(BodyLimit, limits=settings.limits)
    api.add_middleware(Failures)
    if settings.cors.origins:
        api.add_middleware(CORSMiddleware, **cors_options(settings.cors))
    api.add_middleware(Unkept)
    api.add_middleware(RequestIds)
