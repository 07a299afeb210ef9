"""A graph inside a task of another: its input, its steps, and what it hands to the graph around it.

Its tasks are part of the thread's one tree (see `plan`), its questions and journal lie beside all others, and its
checkpoints have a place of their own. It takes no lease and ends no run: a pause, an end and a failure are handed to
the graph around it, which saves them with its own next commit, in one transaction.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from bide.engine.apply import next_checkpoint, rerouted
from bide.engine.fitting import check_fits
from bide.engine.opening import (
    NOTHING,
    Opening,
    Request,
    choose,
    has_begun,
    is_plan,
    one_or_all,
    read_input,
    reroute,
    returned_answers,
)
from bide.engine.spec import FRAMES, GIVEN, GraphSpec, Subgraph
from bide.engine.values import (
    Assignment,
    Checkpoint,
    Commit,
    Ending,
    Load,
    Loaded,
    Outcome,
    Prepare,
    Question,
    Record,
    Site,
    Task,
)
from bide.engine.walk import Flow, Saving, Walk
from bide.errors import GraphDrained, InvalidUpdateError, LeaseLostError
from bide.types import START, RunStatus


def site_of(sub: Subgraph, task: Task, assignment: Assignment, *, call: int | None) -> Site:
    """Say where a graph stands that is a node (`call` is None), or that a node's code calls as its n-th."""
    path = task.id if call is None or call == 1 else f"{task.id}:{call - 1}"
    frames = assignment.checkpoint.values.get(FRAMES) or {}
    if sub.keeps is not True:
        return Site(path, f"{path}|", None, assignment.is_fresh, call is not None, frames)
    twins = [other for other in assignment.checkpoint.tasks if other.node == task.node]
    if len(twins) > 1:
        raise InvalidUpdateError(
            f"Node {task.node!r} holds a graph that keeps its state between calls (checkpointer=True), and was sent "
            f"{len(twins)} times in one step, so two calls would write over each other. Compile the inner graph "
            f"without checkpointer=True, or call it one after the other."
        )
    ns = "@" + lasting_path(path)
    return Site(ns, f"{path}|", frames.get(ns), False, call is not None, frames)


def frames_after(sub: Subgraph, site: Site, ending: Ending, known: Mapping[str, int] | None) -> dict[str, int] | None:
    """Say where graphs that keep their state stand after this one has ended: itself, and those inside it."""
    inside = ending.checkpoint.values.get(FRAMES) or {}
    new = {ns: seq for ns, seq in inside.items() if site.frames.get(ns) != seq}
    if sub.keeps is True:
        return {**(known or {}), site.ns: ending.checkpoint.seq}
    return {**(known or {}), **new} or None


def lasting_path(path: str) -> str:
    """Return a path without the numbers of its tasks: the same at every visit."""
    return "|".join(element.partition(".")[2] for element in path.split("|"))


def descend(sub: Subgraph, request: Request, site: Site, uid: str) -> Flow:
    """Run a graph inside a task, from where it stands, until it is done or waits."""
    spec = sub.spec
    must_read = request.has_thread and (sub.keeps is True or not site.is_fresh)
    loaded: Loaded = (yield Load(site.base)) if must_read else NOTHING
    is_under_way = loaded.checkpoint is not None and loaded.checkpoint.prefix == site.prefix
    if is_under_way:
        opening, changed = yield from _go_on(spec, loaded)
    else:
        opening, changed = yield from _start(spec, request, site, loaded)
    walk = _Inside(spec, request, opening, uid, ends_durably=site.ends_durably)
    if changed is not None and walk.saves:
        walk.carried.append((yield Prepare(opening.checkpoint, changed)))
    try:
        return (yield from walk.to_the_end(is_new=not is_under_way))
    except LeaseLostError:
        raise
    except Exception as error:  # noqa: BLE001 — it is the failure of the task that this graph runs in
        if walk.saves and walk.carried:
            # The node may be tried again in this very run, and must then find where this graph stood.
            yield Record((), tuple(walk.carried))
            walk.carried = []
        return Ending(walk.checkpoint, tuple(walk.left), carried=tuple(walk.apart) if walk.left else (), error=error)


Opened = Generator[Any, Any, tuple[Opening, frozenset[str] | None]]
"""A graph to go on with, and what its first checkpoint changed; None when there is nothing new to write."""


def _start(spec: GraphSpec, request: Request, site: Site, loaded: Loaded) -> Opened:
    base = loaded.checkpoint
    values = spec.initial() if base is None else {k: v for k, v in base.values.items() if not is_plan(k)}
    extras: frozenset[str] = frozenset() if base is None else base.extras
    before = Checkpoint(loaded.head, None, -1, "", values, (), (), extras=extras, ns=site.ns, prefix=site.prefix)
    writes = read_input(spec, request.input, must_fit=site.ends_durably)
    entry = Outcome(Task(f"{site.prefix}start", START), tuple(writes))
    checkpoint, changed = next_checkpoint(spec, before, [entry], source="input")
    if site.frames and base is None:
        checkpoint = checkpoint._replace(values={**checkpoint.values, FRAMES: dict(site.frames)})
        changed |= {FRAMES}
    if spec.start.branches:
        routed = yield from choose(checkpoint, [entry.task])
        checkpoint = rerouted(spec, checkpoint, [*spec.start.edges, *routed])
    checkpoint = checkpoint._replace(parent=None if base is None else base.seq)
    if request.durable and GIVEN in spec.channels:
        checkpoint = checkpoint._replace(values={**checkpoint.values, GIVEN: _marks(spec, request.input)})
        changed |= {GIVEN}
    # A graph that is not saved starts again at every replay; what its tasks asked and made is known all the same.
    waits, steps = loaded.waits, loaded.steps
    is_replay = bool(waits or steps)
    is_fresh = site.is_fresh and not is_replay
    ended = (loaded.done, loaded.failed)
    return Opening(None, checkpoint, {}, steps, waits, is_fresh, is_replay, ended), changed


def _marks(spec: GraphSpec, given: Any) -> dict[str, Any]:
    """Note what the graph is given: by the time it ends, the state around it may be another."""
    pairs = (spec.read_update(given) or {}).items()
    return {key: [spec.codec.digest(value), len(value) if isinstance(value, list) else None] for key, value in pairs}


def _go_on(spec: GraphSpec, loaded: Loaded) -> Opened:
    """Take up the step that it was stopped in; what finished nodes asked may have been answered since."""
    checkpoint = loaded.checkpoint
    assert checkpoint is not None
    check_fits(spec, checkpoint)
    returned = returned_answers(loaded, ())
    own = {origin.task_id for origin in checkpoint.origins}
    is_open = any(wait.question.kind == "return" and wait.question.task_id in own for wait in loaded.open_waits)
    is_new = bool(returned) and not is_open and not has_begun(loaded) and checkpoint.resume_value is None
    if is_new:
        checkpoint = checkpoint._replace(
            seq=checkpoint.seq + 1,
            parent=checkpoint.seq,
            source="resume",
            resume_value=one_or_all(returned),
            created_at=None,
        )
        checkpoint = yield from reroute(spec, checkpoint)
    results, steps, waits = loaded.results, loaded.steps, loaded.waits
    opening = Opening(None, checkpoint, results, steps, waits, is_fresh=False, ended=(loaded.done, loaded.failed))
    return opening, frozenset() if is_new else None


class _Inside(Walk):
    """The walk of a graph inside a task: what it cannot save by itself, it carries to the graph around it."""

    __slots__ = ("ends_durably",)

    def __init__(self, spec: GraphSpec, request: Request, opening: Opening, uid: str, *, ends_durably: bool) -> None:
        super().__init__(spec, request, opening, uid)
        self.ends_durably = ends_durably

    def save_step(
        self, after: Checkpoint, changed: frozenset[str], outcomes: list[Outcome], held: tuple[Question, ...]
    ) -> Saving:
        if held or not (after.tasks or self.ends_durably):
            self.carried.append((yield Prepare(after, changed)))
            return
        carried, self.carried = tuple(self.carried), []
        # What is known of later steps must not be retired with this one.
        is_over = self.known is None
        done = tuple(outcomes) if is_over else ()
        yield Commit(after, changed, RunStatus.RUNNING, done, is_over=is_over, carried=carried)

    def save_pause(
        self,
        checkpoint: Checkpoint,
        changed: frozenset[str] | None,
        opens: Sequence[Question],
        asks: Sequence[Question],
    ) -> Saving:
        if self.saves and self.unsaved:
            carried, self.carried = tuple(self.carried), []
            yield Record(tuple(self.unsaved), carried)
        if self.saves and changed is not None:
            self.carried.append((yield Prepare(checkpoint, changed)))

    def save_hold(self, held: tuple[Question, ...]) -> Saving:
        yield from ()

    def save_end(self) -> Saving:
        yield from ()

    def save_failure(
        self,
        checkpoint: Checkpoint,
        changed: frozenset[str] | None,
        asks: Sequence[Question],
        failed: Sequence[Outcome],
        error: Exception,
    ) -> Saving:
        # With the checkpoint that they belong to, so that another attempt finds them.
        carried, self.carried = tuple(self.carried), []
        told = () if isinstance(error, GraphDrained) else failed
        yield Record((*self.unsaved, *told), carried)
        if changed is not None:
            self.apart.append((yield Prepare(checkpoint, changed)))


__all__ = ["descend", "lasting_path", "site_of"]
