"""What the story of a task asks its performer to do."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

from bide.engine.care import Limits
from bide.engine.context import Pause, TaskContext
from bide.engine.spec import PREVIOUS, Call, Subgraph
from bide.engine.values import Ending, Site
from bide.errors import GraphDrained, InterruptSwallowedError
from bide.types import UNSET


class Action(NamedTuple):
    """One call of a user's function."""

    call: Call
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    limits: Limits | None = None


class Write(NamedTuple):
    """One call of our own that may wait for a disk, so async performers hop to a thread for it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]


class Descend(NamedTuple):
    """Run a graph inside this task; the reply is its Ending."""

    sub: Subgraph
    given: Any
    site: Site
    limit: int | None = None
    """How many steps it may take, if not as many as the graph around it."""
    wants: frozenset[str] = frozenset()
    """What the code that calls it wants to be told."""
    config: Mapping[str, Any] = {}
    """What that code says beside the config of the run."""
    context: Any = UNSET
    """The context that it gives in place of the run's own."""


class Rest(NamedTuple):
    """Wait until this instant."""

    until: int


class Settle(NamedTuple):
    """Wait for the tasks that this task has started."""

    children: tuple[Any, ...]


class Stopped(BaseException):
    """The graph inside this task was left in the middle: a task beside it had failed, or the run was asked to stop.

    It is no `Exception`: code that guards a call of a graph must not take it for an error of that graph.
    """

    def __init__(self, drained: Exception | None = None) -> None:
        super().__init__("the graph inside this node was stopped; this signal must not be caught")
        self.drained = drained


def action(call: Call, given: Any, context: TaskContext, limits: Limits | None = None, **more: Any) -> Action:
    """Prepare the call of a node, a handler or a conditional edge: the state first, then what it asks for by name."""
    args = (given,) if call.takes_state else ()
    if not call.injected:
        return Action(call, args, _NOTHING, limits)
    filled = {name: more[what] if what in more else _INJECTED[what](context) for name, what in call.injected}
    return Action(call, args, filled, limits)


_NOTHING: Mapping[str, Any] = {}

_INJECTED: Mapping[str, Callable[[TaskContext], Any]] = {
    "config": lambda context: context.config,
    "writer": lambda context: context.write,
    "store": lambda context: context.run.around.items,
    "previous": lambda context: context.assignment.checkpoint.values.get(PREVIOUS),
    "parallel_results": lambda context: list(context.assignment.checkpoint.values.get("parallel_results", ())),
    "runtime": lambda context: context.runtime(),
}


def take_over(context: TaskContext, ending: Ending) -> None:
    """Take over what a graph inside this task could not save or decide by itself; its pause is this task's own."""
    context.carried += ending.carried
    context.inner += ending.asks
    if isinstance(ending.error, GraphDrained):
        raise Stopped(ending.error)
    if ending.error is not None:
        raise ending.error
    if ending.asks:
        raise Pause(ending.asks[0])
    if ending.is_stopped:
        raise Stopped


def check_heard(context: TaskContext) -> None:
    """Refuse what a node returned after it had caught the signal of a question, its own or one inside it."""
    if context.asked or (context.inner and not context.children):
        raise swallowed_by(context)


def swallowed_by(context: TaskContext) -> InterruptSwallowedError:
    """Say that the code of a task has caught a pause."""
    asked = (*context.asked, *context.inner)[0]
    return InterruptSwallowedError(
        f"Node {context.task.node!r} called interrupt({asked.value!r}) and then caught its signal, so the "
        f"thread did not pause. Look for `except BaseException` or a bare `except:` around it; use `except Exception`, "
        f"or re-raise."
    )


def settle_children(context: TaskContext) -> Generator[Any, Any, None]:
    """Wait for the tasks that this one has started; what they ask, it asks, in the order in which they were started."""
    children, context.children = context.children or [], None
    yield Settle(tuple(children))
    for child in children:
        context.inner = (*context.inner, *child.asks)
        context.carried += child.carried
    for child in children:
        if child.unheard is not None:
            raise child.unheard
