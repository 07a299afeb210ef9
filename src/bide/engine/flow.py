"""The story of a run, as a generator of effects.

The flow decides; it does nothing itself. It yields what must happen (`Load`, `Begin`, `Start`, `Join`, `Record`,
`Commit`, `Emit`) and is sent what came of it. Two small drivers (`drive`) perform the effects, one synchronously and
one with asyncio, so the story is told once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from bide.engine.opening import NOTHING, Request, open_thread
from bide.engine.spec import GraphSpec
from bide.engine.values import PAUSED, VALUES, Begun, Checkpoint, Commit, Emit, Ending, Load, Outcome, Question
from bide.engine.walk import Flow, Saving, Walk
from bide.errors import GraphDrained, LeaseLostError, ReplayMismatchError
from bide.types import RunStatus, WaitStatus


def advance(spec: GraphSpec, request: Request) -> Flow:
    """Take up the thread and drive it until it is done or waits."""
    loaded = (yield Load(request.seq)) if request.durable else NOTHING
    opening = yield from open_thread(spec, request, loaded)
    if isinstance(opening, Ending):
        yield from _tell_unmoved(request, opening)
        return opening
    assert opening.begin is not None, "a thread is taken before it is driven"
    begun = (yield opening.begin) if request.durable else Begun(None, "", None)
    walk = _Run(spec, request, opening, begun.uid)
    try:
        return (yield from walk.to_the_end(is_new=opening.begin.checkpoint is not None))
    except LeaseLostError:
        raise  # the thread is another's now; there is nothing left to write
    except Exception as error:
        if request.durable and not walk.is_settled:
            yield from walk.fail(error)
        raise


def _tell_unmoved(request: Request, ending: Ending) -> Generator[Any, Any, None]:
    if VALUES in request.wants:
        yield Emit(VALUES, ending.checkpoint)
    if ending.asks and PAUSED in request.wants:
        yield Emit(PAUSED, ending)


class _Run(Walk):
    """The walk of the thread's own graph: each transition is one commit, which also moves the run's status."""

    __slots__ = ()

    def save_step(
        self, after: Checkpoint, changed: frozenset[str], outcomes: list[Outcome], held: tuple[Question, ...]
    ) -> Saving:
        status = RunStatus.WAITING if held else RunStatus.RUNNING if after.tasks else RunStatus.DONE
        carried = tuple(self.carried)
        yield Commit(after, changed, status, tuple(outcomes), opens=held, is_over=True, carried=carried)
        self.carried = []
        self.is_settled = status is not RunStatus.RUNNING

    def save_pause(
        self,
        checkpoint: Checkpoint,
        changed: frozenset[str] | None,
        opens: Sequence[Question],
        asks: Sequence[Question],
    ) -> Saving:
        yield Commit(
            checkpoint,
            changed,
            RunStatus.WAITING,
            tuple(self.unsaved),
            opens=tuple(opens),
            asks=tuple(asks),
            carried=(*self.carried, *self.apart),
        )
        self.is_settled = True

    def save_hold(self, held: tuple[Question, ...]) -> Saving:
        yield Commit(self.checkpoint, None, RunStatus.WAITING, opens=held)
        self.is_settled = True

    def save_end(self) -> Saving:
        if self.saves and not self.is_settled:
            yield Commit(self.checkpoint, None, RunStatus.DONE, is_over=True)
            self.is_settled = True

    def save_failure(
        self,
        checkpoint: Checkpoint,
        changed: frozenset[str] | None,
        asks: Sequence[Question],
        failed: Sequence[Outcome],
        error: Exception,
    ) -> Saving:
        is_drained = isinstance(error, GraphDrained)
        yield Commit(
            checkpoint,
            changed,
            self._status_after(error, asks),
            tuple(self.unsaved) if is_drained else (*self.unsaved, *failed),
            opens=tuple(asks),
            error=None if is_drained else error,
            carried=(*self.carried, *self.apart),
        )
        self.is_settled = True

    def _status_after(self, error: Exception, asks: Sequence[Question]) -> RunStatus:
        if asks or any(wait.status is WaitStatus.OPEN for wait in self.waits):
            return RunStatus.WAITING
        if isinstance(error, GraphDrained):
            return RunStatus.READY
        return RunStatus.BLOCKED if isinstance(error, ReplayMismatchError) else RunStatus.FAILED

    def fail(self, error: Exception) -> Generator[Any, Any, None]:
        """End a run that cannot go on. Its last checkpoint stands, and results already recorded are kept."""
        self.is_settled = True
        status = self._status_after(error, ())
        try:
            yield Commit(self.checkpoint, None, status, error=None if isinstance(error, GraphDrained) else error)
        except Exception as second:  # noqa: BLE001 — the first error is the one to tell; this one goes along with it
            error.add_note(f"The run could not be marked as {status.value} either: {second}")


__all__ = ["Flow", "advance"]
