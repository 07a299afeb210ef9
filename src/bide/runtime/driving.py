"""Driving one claimed run to its next rest: done, waiting, failed, or given back."""

from __future__ import annotations

import logging
from typing import NamedTuple

from bide.errors import BideError, GraphDrained, LeaseLostError, StoreBusyError, StoreError, StoreUnavailableError
from bide.graph.accepting import accepted
from bide.graph.pages import told
from bide.runtime.registered import Graphs
from bide.store import Store
from bide.store.facts import event_of
from bide.store.queue_rows import Claim
from bide.store.rows import Report, Transition
from bide.types import RunControl, RunStatus

logger = logging.getLogger("bide.worker")


class Driven(NamedTuple):
    """How a worker left a run."""

    claim: Claim
    outcome: str
    """`done`, `waiting`, `failed`, `drained`, `lost` to another worker, or `given back`: the database said no."""
    error: BaseException | None = None


def drive(store: Store, graphs: Graphs, claim: Claim, control: RunControl | None = None) -> Driven:
    """Drive a claimed run. Whatever its code does, the worker goes on: what happened is in the thread."""
    lease = claim.lease
    try:
        graph = graphs.get(claim.graph).graph
        given, config, options = accepted(graph.spec, store.open_claim(claim))
    except (StoreBusyError, StoreUnavailableError) as problem:
        # That is no matter of this run: it is as good as before, as soon as the database is back.
        logger.warning("Run %s on thread %r could not be read: %s", lease.run_id, lease.thread_id, problem)
        store.let_go(lease)
        return Driven(claim, "given back", problem)
    except Exception as problem:
        logger.exception("Run %s on thread %r cannot be begun.", lease.run_id, lease.thread_id)
        _refuse(store, claim, problem, RunStatus.BLOCKED)
        return Driven(claim, "failed", problem)
    try:
        ending = graph.drive(given, lease, config, {**options, "control": control})  # type: ignore[typeddict-item]
        return Driven(claim, "waiting" if ending.is_paused else "done")
    except GraphDrained as problem:
        return Driven(claim, "drained", problem)
    except LeaseLostError as problem:
        logger.warning("Run %s on thread %r is another worker's now.", lease.run_id, lease.thread_id)
        return Driven(claim, "lost", problem)
    except StoreError as problem:
        logger.warning("Run %s on thread %r could not be saved: %s", lease.run_id, lease.thread_id, problem)
        return Driven(claim, "given back", problem)
    except KeyboardInterrupt:
        raise  # Ctrl-C is for whoever called; the run was given back
    except BaseException as problem:
        logger.warning("Run %s on thread %r failed.", lease.run_id, lease.thread_id, exc_info=problem)
        if store.keeper.holds(lease):
            # It was refused at the door, before anybody could write down why.
            _refuse(store, claim, problem, RunStatus.FAILED)
        return Driven(claim, "failed", problem)
    finally:
        store.let_go(lease)


def _refuse(store: Store, claim: Claim, problem: BaseException, status: RunStatus) -> None:
    """End a run that could not even be begun."""
    event = event_of(f"run.{status.value}", error=told(problem))
    report = Report(status, error=told(problem))
    change = Transition(0, status=status, error=told(problem), events=(event,), report=report)
    try:
        store.commit(claim.lease, change)
    except BideError:
        logger.exception("Run %s could not be marked as %s; its lease runs out.", claim.lease.run_id, status)
    finally:
        store.let_go(claim.lease)
