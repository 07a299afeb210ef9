"""What the server is, and whether it is there: what clients ask before anything else."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from bide import __version__
from bide.errors import BideError
from bide.server.context import Server
from bide.server.langgraph.wire import read_bool
from bide.server.problems import Problem

router = APIRouter(tags=["system"])

LANGGRAPH = "1.2.20"
"""The release of LangGraph whose clients are served."""


@router.get("/info")
def info() -> dict[str, Any]:
    """Return which release this is, and what it can do."""
    return {
        "version": __version__,
        "langgraph_py_version": LANGGRAPH,
        "flags": {"assistants": True, "crons": True, "langsmith": False, "strict_resume": True},
        "host": {"kind": "self-hosted", "project_id": None, "revision_id": None, "tenant_id": None},
    }


@router.get("/ok", responses={500: {"description": "The database does not answer."}})
def ok(ctx: Server, check_db: str = "") -> dict[str, bool]:
    """Say that the server is there; with `check_db=1`, that its database is, too."""
    if read_bool(check_db):
        try:
            ctx.app.store.database.read(lambda tx: tx.one("made_at", {}))
        except BideError as problem:
            raise Problem(500, "The database does not answer.", ok=False) from problem
    return {"ok": True}
