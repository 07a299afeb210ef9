"""Whether a server lives, whether it is ready for requests, and its metrics."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from bide.errors import BideError
from bide.server.caller import ADMIN
from bide.server.context import Context, Server, Who
from bide.server.door import need
from bide.server.native.described import refusals
from bide.server.observe.metrics import Metrics

router = APIRouter(tags=["Operations"])


@router.get("/health", summary="Whether the process lives")
def health() -> dict[str, str]:
    """Answer, and look at nothing: a database that is away is no reason to kill a server."""
    return {"status": "ok"}


@router.get("/ready", summary="Whether requests should be sent here", responses={503: {"description": "Not now."}})
def ready(server: Server) -> JSONResponse:
    """Say what is not well: the store, its schema, the worker, or that the server is about to stop."""
    checks = _checks(server)
    is_ready = all(word == "ok" for word in checks.values())
    headers = None if is_ready else {"Retry-After": "1"}
    return JSONResponse(
        {"status": "ready" if is_ready else "not ready", "checks": checks}, 200 if is_ready else 503, headers=headers
    )


def _checks(server: Context) -> dict[str, str]:
    checks = {"stopping": "the server is stopping" if server.stopping.is_set() else "ok"}
    try:
        row = server.app.store.database.read(lambda tx: tx.one("read_version", {}))
        found, needed = int(row[0]) if row else 0, server.app.store.version
        checks["store"] = "ok"
        # One that is newer is fine: migrations only ever add.
        checks["schema"] = "ok" if found >= needed else f"the schema is {found}, and this server needs {needed}"
    except BideError as problem:
        checks["store"] = type(problem).__name__  # its words may name hosts and paths, and anybody may ask
    if server.worker is not None:
        checks["worker"] = "ok" if server.worker.is_working else "the worker does not claim"
    return checks


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **refusals()},
)
def metrics(request: Request, who: Who) -> Response:
    """Return counts of all owners: whoever asks must be good for everything."""
    need(who, ADMIN)
    found: Metrics = request.app.state.metrics
    return Response(found.text(), media_type=found.content_type)
