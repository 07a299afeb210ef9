"""The server put together: one table of what is served, and how it begins and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from bide.runtime import Bide
from bide.server import links, native
from bide.server.auth.protect import protect
from bide.server.context import Context
from bide.server.hooks import inbound, outbox_routes
from bide.server.hooks.outbound import Outbound
from bide.server.langgraph import assistants, commands, crons, graphs, info, items, runs, states, threads
from bide.server.native import feed
from bide.server.native.described import refusals
from bide.server.observe.setup import NO_TELEMETRY, observe
from bide.server.pages import router as pages
from bide.server.problems import handle_problems
from bide.server.settings import Settings
from bide.server.streams.hub import Hub


def create_app(app: Bide, settings: Settings | None = None) -> FastAPI:
    """Return the server of an application, for any ASGI server; `bide serve` runs it with uvicorn."""
    settings = settings or Settings()
    inbound.check_hooks(settings.hooks)
    links.keep_tokens_out_of_logs()
    outbound = Outbound(app, settings)

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        context = Context(app, settings, Hub(app.store))
        api.state.bide = context
        api.state.metrics.watch(context)
        async with context.hub.watching(), outbound.running():
            yield
            context.stopping.set()

    # `/docs` is a page of ours: FastAPI's would load a program from a stranger's server into the inbox's own origin.
    # No redirects to addresses with or without a slash: they would be made of whatever the request calls the host.
    api = FastAPI(
        title="Bide",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    handle_problems(api)
    for part in (info, assistants, graphs, crons, items, threads, states, runs, commands):
        api.include_router(part.router, responses=refusals(404, 409, 410, 413))
    api.include_router(inbound.router)
    api.include_router(outbox_routes.router, responses=refusals(404, 409))
    api.include_router(feed.router, responses=refusals())
    api.include_router(native.router)
    api.include_router(links.router, responses=refusals(404, 409))
    api.include_router(links.public_router)
    api.include_router(pages.router)
    protect(api, app, settings)  # around all routes
    observe(api, settings)  # the last: it goes around everything else
    return api
