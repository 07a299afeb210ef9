"""Observation put together: one line in the server's own list of parts."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from bide.server.observe.health import router
from bide.server.observe.metrics import Metrics
from bide.server.observe.requests import Observed
from bide.server.observe.tracing import Tracing
from bide.server.settings import Settings

NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI would make spans of its own, whoever asked for them, with addresses in which there are tokens."""


def observe(api: FastAPI, settings: Settings) -> None:
    """See every request of a server, and tell how it is doing. To be called last: it goes around everything else."""
    api.state.metrics = Metrics()
    api.state.tracing = Tracing.opened() if settings.tracing else None
    api.include_router(router)
    api.add_middleware(Observed, metrics=api.state.metrics, tracing=api.state.tracing)
