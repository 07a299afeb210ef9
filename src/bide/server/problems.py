"""Errors as clients see them: a status that is true, and a sentence that says what to do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from bide import errors
from bide.errors import BideError
from bide.server.observe.requests import route_of
from bide.store.item_errors import InvalidItemError

logger = logging.getLogger("bide.server")

# The nearest ancestor decides.
_STATUS: Mapping[type[BideError], int] = {
    errors.UnknownThreadError: 404,
    errors.UnknownCheckpointError: 404,
    errors.UnknownInterruptError: 404,
    errors.NotWaitingError: 409,
    errors.ThreadPausedError: 409,
    errors.WaitExpiredError: 410,
    errors.ThreadDeletedError: 404,
    errors.WaitChangedError: 412,
    errors.ConflictError: 409,
    errors.ValueTooLargeError: 413,
    errors.UnstorableValueError: 422,
    InvalidItemError: 422,
    errors.StoreBusyError: 503,
    errors.StoreUnavailableError: 503,
    errors.StoreError: 500,
    errors.CodecError: 500,
    errors.BideError: 422,
}


def status_of(error: BideError) -> int:
    """Return the HTTP status of an error of ours."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


class Problem(Exception):
    """A refusal that is the server's own."""

    def __init__(self, status: int, detail: str, /, *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more


def not_found(what: str, name: str) -> Problem:
    """Say that something is not there: that it may be another's must not be told."""
    return Problem(404, f"There is no {what} {name!r}.")


def handle_problems(app: FastAPI) -> None:
    """Let every error leave the server in one shape: `{"detail": …}`, and `error` with its name."""

    @app.exception_handler(Problem)
    def _own(request: Request, problem: Problem) -> JSONResponse:
        return JSONResponse({"detail": problem.detail, **problem.more}, problem.status, headers=problem.headers)

    @app.exception_handler(BideError)
    def _ours(request: Request, error: BideError) -> JSONResponse:
        status = status_of(error)
        metrics = getattr(request.app.state, "metrics", None)
        if metrics is not None and status >= 500:
            metrics.count_store_error(error)
        if status >= 500:
            logger.error("%s %s: %s", request.method, route_of(request.scope), error, exc_info=error)
        headers = {"Retry-After": "1"} if status == 503 else None
        return JSONResponse({"detail": str(error), "error": type(error).__name__}, status, headers=headers)

    @app.exception_handler(HTTPException)
    def _plain(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"detail": error.detail}, error.status_code, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [{"loc": list(map(str, one["loc"])), "msg": one["msg"], "type": one["type"]} for one in error.errors()]
        return JSONResponse({"detail": found}, 422)

    @app.exception_handler(Exception)
    def _unexpected(request: Request, error: Exception) -> JSONResponse:
        logger.exception("%s %s failed.", request.method, route_of(request.scope), exc_info=error)
        return JSONResponse({"detail": "The server failed to answer; its log says why."}, 500)
