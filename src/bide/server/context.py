"""What every route needs: the application, the settings, and who calls."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from bide.runtime import Bide
from bide.server.caller import ANONYMOUS, Caller
from bide.server.settings import Settings

if TYPE_CHECKING:
    from bide.runtime.worker import Worker
    from bide.server.streams.hub import Hub


@dataclass(slots=True)
class Context:
    """One server: made when it is created, and there until it is shut down."""

    app: Bide
    settings: Settings
    hub: Hub
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server shuts down: open streams end then."""
    worker: Worker | None = None
    """Whoever drives runs in this process, if somebody does."""

    def __post_init__(self) -> None:
        self.hub.stopping = self.stopping


def context_of(request: Request) -> Context:
    """Return the server that a request came to."""
    found: Context = request.app.state.bide
    return found


def caller_of(request: Request) -> Caller:
    """Return who has sent a request."""
    found: Caller = request.scope.get("bide.caller", ANONYMOUS)
    return found


Server = Annotated[Context, Depends(context_of)]
Who = Annotated[Caller, Depends(caller_of)]
