"""What the routes of the native API have in common: ids, bounds, and the shapes of refusals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bide.server.context import Server
from bide.server.decisions import LONGEST_COMMENT
from bide.server.problems import Problem

ID = "^[A-Za-z0-9_.:@-]{1,128}$"
TEXT = r"^[^\x00-\x1f\x7f-\x9f]+$"
"""Texts that every database keeps, and that fit on a line."""

ThreadId = Annotated[str, Path(pattern=ID, description="The id of a thread.")]
WaitId = Annotated[str, Path(pattern=ID, description="The id of a wait; of an interrupt, it is the same.")]
DeliveryId = Annotated[str, Path(pattern=ID, description="The id of a delivery.")]
Id = Annotated[str, StringConstraints(pattern=ID)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=TEXT)]
Words = Annotated[str, StringConstraints(max_length=LONGEST_COMMENT)]
Wanted = Annotated[str | None, Query(min_length=1, max_length=200, pattern=TEXT)]
"""What a list is filtered by."""
Limit = Annotated[int, Query(ge=1, le=500, description="How many at most.")]
Length = Annotated[str, StringConstraints(min_length=1, max_length=100)] | Annotated[float, Field(ge=0, le=3e10)]
"""A length of time: "2h30m", "PT2H", or seconds."""


class Asked(BaseModel):
    """What a client sends: a key that is not known is a mistake, and not nothing."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """What a client is told."""

    model_config = ConfigDict(populate_by_name=True)


class Resolution(Told):
    """Who has settled a wait, when, and through what."""

    by: str | None
    at: datetime | None
    via: str | None


# ── Refusals ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Refusal(BaseModel):
    """Why something was not done."""

    model_config = ConfigDict(extra="allow")

    detail: str


class Misfit(BaseModel):
    """One thing in a request that does not fit."""

    loc: list[str]
    msg: str
    type: str


class Invalid(BaseModel):
    """What in a request does not fit: the request itself, or the answer in it, by JSON Pointers."""

    model_config = ConfigDict(extra="allow")

    detail: str | list[Misfit]
    problems: list[Problematic] = Field(default=[], description="Of an answer: where it does not fit, and why.")


class Problematic(BaseModel):
    """One way in which an answer does not fit."""

    pointer: str
    message: str


class Settled(BaseModel):
    """Somebody was first, or it is too late."""

    model_config = ConfigDict(extra="allow")

    detail: str
    status: str | None = None
    resolution: Resolution | None = None


Invalid.model_rebuild()

responses: Mapping[int, dict[str, Any]] = {
    400: {
        "model": Refusal,
        "description": "The request cannot be read; or, where there is a `status`, this cannot be done as it stands.",
    },
    401: {"model": Refusal, "description": "No key, or one that is not known."},
    403: {"model": Refusal, "description": "This key may not do that."},
    404: {"model": Refusal, "description": "There is no such thing, or it is another owner's."},
    409: {"model": Settled, "description": "Somebody was first, or the thread is busy."},
    410: {"model": Settled, "description": "Its deadline has passed."},
    412: {"model": Refusal, "description": "It has changed since it was read: `If-Match` does not fit."},
    413: {"model": Refusal, "description": "It is too large."},
    422: {"model": Invalid, "description": "It does not fit. Nothing was written."},
    429: {"model": Refusal, "description": "Too many requests; `Retry-After` says when to come again."},
    503: {"model": Refusal, "description": "The database cannot be reached right now; try again."},
}
"""How each refusal looks, wherever it occurs."""

ANYWHERE = (400, 401, 403, 422, 429, 503)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what a route may refuse with, beside what any route may."""
    return {status: dict(responses[status]) for status in sorted({*ANYWHERE, *statuses})}


# ── What comes in headers ──────────────────────────────────────────────────────────────────────────────────────────

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Sent again with the same key, a request changes nothing, and is told what came of the first.",
    ),
]
IfMatch = Annotated[
    str | None, Header(max_length=100, description="The `version` that was read: if it has changed since, 412.")
]


def version_in(header: str | None) -> str | None:
    """Return the version that a client has seen; `*` is any."""
    bare = (header or "").strip().removeprefix("W/").strip('"')
    return None if bare in ("", "*") else bare


async def _limited(request: Request, server: Server) -> None:
    """Refuse an answer that is too large before anybody looks at it."""
    size, most = len(await request.body()), server.settings.limits.answer
    if size > most:
        raise Problem(413, f"This answer has {size:,} bytes, and at most {most:,} are taken. Nothing was written.")


LimitedAnswer = Depends(_limited)
"""For routes that take an answer."""
