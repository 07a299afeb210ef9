"""The server put together: one table of what is served, and how it begins and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from bide.runtime import Bide
from bide.server.context import Context
from bide.server.observe.setup import observe
from bide.server.problems import handle_problems
from bide.server.settings import Settings
from bide.server.streams.hub import Hub


def create_app(app: Bide, settings: Settings | None = None) -> FastAPI:
    """Return the server of an application, for any ASGI server; `bide serve` runs it with uvicorn."""
    settings = settings or Settings()

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        context = Context(app, settings, Hub(app.store))
        api.state.bide = context
        api.state.metrics.watch(context)
        async with context.hub.watching():
            yield
            context.stopping.set()

    api = FastAPI(title="Bide", lifespan=lifespan)
    handle_problems(api)
    observe(api, settings)  # the last: it goes around everything else
    return api
