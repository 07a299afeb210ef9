"""Cancelling runs, and taking back what they have done."""

from __future__ import annotations

from collections.abc import Sequence

from bide.errors import BideError
from bide.runtime.views import Run
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.langgraph.allowing import allow
from bide.server.langgraph.shapes import RUN_STATUS
from bide.server.problems import Problem
from bide.store.notes import base_of_run, forget_run
from bide.types import RunStatus

OVER = (RunStatus.DONE, RunStatus.FAILED, RunStatus.CANCELLED)


def cancel_run(ctx: Context, who: Caller, run: Run, action: str) -> None:
    """Cancel a run that is alive; with `rollback`, its thread stands afterwards where it stood before."""
    if run.status in OVER:
        raise Problem(404, f"Run {run.run_id} is {RUN_STATUS[run.status]}: there is nothing to cancel.")
    ctx.app.cancel(run.thread_id, run_id=run.run_id, reason=action, by=who.identity)
    if action == "rollback":
        _take_back(ctx, run)
        forget_run(ctx.app.store, run.thread_id, run.run_id)


def _take_back(ctx: Context, run: Run) -> None:
    """Let the thread stand again where it stood when the run began."""
    graph = ctx.app.graphs.find(run.graph)
    base = base_of_run(ctx.app.store, run.thread_id, run.run_id)
    if graph is None or base is None:
        return  # it has written nothing, and since it was cancelled it never will
    graph.fork({"configurable": {"thread_id": run.thread_id, "checkpoint_id": base}})


def cancel_several(
    ctx: Context,
    who: Caller,
    thread_id: str | None,
    run_ids: Sequence[str] | None,
    status: str | None,
    action: str,
) -> None:
    """Cancel the runs that are meant and still alive; those that end meanwhile are left as they are."""
    for run in _meant(ctx, who, thread_id, run_ids, status):
        try:
            cancel_run(ctx, who, run, action)
        except Problem:
            continue
        except BideError:
            if ctx.app.run(run.thread_id, run.run_id) is not None:
                raise


def _meant(
    ctx: Context, who: Caller, thread_id: str | None, run_ids: Sequence[str] | None, status: str | None
) -> list[Run]:
    if thread_id is None and run_ids:
        raise Problem(422, "run_ids need the thread_id that they belong to.")
    if thread_id is None and status is None:
        raise Problem(422, "Say what to cancel: a status, or a thread_id and run_ids.")
    threads = [thread_id] if thread_id is not None else _threads_with_live_runs(ctx, who)
    runs = [run for name in threads for run in ctx.app.runs(name, most=1000)]
    wanted = ("pending", "running") if status in (None, "all") else (status,)
    return [
        run for run in runs if (not run_ids or run.run_id in run_ids) and (run_ids or RUN_STATUS[run.status] in wanted)
    ]


def _threads_with_live_runs(ctx: Context, who: Caller) -> list[str]:
    statuses = (RunStatus.QUEUED, RunStatus.READY, RunStatus.RUNNING)
    found = [ctx.app.list(status=status, owner=who.owner, most=10_000) for status in statuses]
    named = dict.fromkeys(thread.thread_id for page in found for thread in page)
    return [thread_id for thread_id in named if _is_theirs(ctx, who, thread_id)]


def _is_theirs(ctx: Context, who: Caller, thread_id: str) -> bool:
    """Whether the application's handlers let the caller change a thread."""
    try:
        allow(ctx, who, "threads", "update", {"thread_id": thread_id}, thread_id)
    except Problem:
        return False
    return True
