"""The third interpreter of the engine's effects: single-threaded, and somebody else decides who goes on.

A strand is a flow or a task, as a generator that stops before everything that others could notice. It yields None when
it can go on at once, or a condition to wait for.
"""

from __future__ import annotations

from asyncio import _set_running_loop  # made for those who write event loops, and this is one
from collections.abc import Callable, Generator
from contextvars import copy_context
from random import Random
from typing import Any

from bide.engine.actions import Action, Descend, Rest, Settle, Write
from bide.engine.context import TaskContext, entering
from bide.engine.drive import Workforce, go_inside, save
from bide.engine.run_context import RunContext
from bide.engine.spec import GraphSpec
from bide.engine.values import Assignment, Emit, Join, Outcome, Start
from bide.engine.work import work

Condition = Callable[[], bool]
Moves = Generator[Condition | None, None, Any]


class Strand:
    """Something that goes on step by step, in a context of its own."""

    def __init__(self, name: str, moves: Moves) -> None:
        self.name = name
        self.waits_for: Condition | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.has_begun = False
        self.is_over = False
        self._moves = moves
        self._context = copy_context()

    @property
    def is_ready(self) -> bool:
        return self.waits_for is None or self.waits_for()

    def go_on(self) -> None:
        """Make one move."""
        self.has_begun = True
        _set_running_loop(self)
        try:
            self.waits_for = self._context.run(next, self._moves)
        except StopIteration as told:
            self.is_over, self.result = True, told.value
        except BaseException as error:  # noqa: BLE001 — looked at by whoever owns the strand
            self.is_over, self.error = True, error
        finally:
            _set_running_loop(None)

    def vanish(self) -> None:
        """Be gone, as if the power had failed."""
        self.is_over = True
        self._context.run(self._moves.close)


class Hands(Workforce):
    """Runs the tasks of one graph as strands; a join returns any of the outcomes that there are."""

    def __init__(
        self,
        spec: GraphSpec,
        context: RunContext,
        begin: Callable[[str, Moves], Any],
        random: Random,
        outer: Workforce | None = None,
    ) -> None:
        super().__init__(spec, context, most=None, is_live=False, outer=outer)
        self.begin = begin
        self.random = random
        self.outcomes: list[Outcome] = []

    def start(self, assignments: tuple[Assignment, ...]) -> None:
        self.has_failed = False
        for assignment in assignments:
            self.begin(assignment.task.id, self._work(assignment))

    def take(self) -> list[Outcome]:
        """Return some of the outcomes, at least one."""
        some = self.random.randint(1, len(self.outcomes))
        return [self.outcomes.pop(self.random.randrange(len(self.outcomes))) for _ in range(some)]

    def _work(self, assignment: Assignment) -> Moves:
        yield None
        if self.is_failing and not assignment.routes_only:
            self.outcomes.append(Outcome(assignment.task, is_skipped=True))
            return False
        context = TaskContext(self.context, assignment)
        entering(context)
        outcome = yield from self._tell(work(self.spec, context), context)
        self.has_failed = self.has_failed or outcome.error is not None
        self.outcomes.append(outcome)
        return outcome.is_done

    def _tell(self, story: Generator[Any, Any, Outcome], context: TaskContext) -> Moves:
        reply: Any = None
        problem: BaseException | None = None
        while True:
            try:
                action = story.send(reply) if problem is None else story.throw(problem)
            except StopIteration as told:
                return told.value
            reply = problem = None
            try:
                reply = yield from self._do(action, context)
            except GeneratorExit:
                raise  # the power has failed, and the story ends here
            except BaseException as error:  # noqa: BLE001 — the story decides which of them are outcomes
                problem = error

    def _do(self, action: Any, context: TaskContext) -> Moves:
        if isinstance(action, Action):
            result = action.call.function(*action.args, **action.kwargs)
            return (yield from result.__await__()) if action.call.is_async else result
        if isinstance(action, Descend):
            inner, flow = go_inside(action, context)
            hands = Hands(action.sub.spec, inner, self.begin, self.random, outer=self)
            return (yield from drive(flow, hands))
        if isinstance(action, Rest):
            clock = context.run.around.clock
            yield lambda: clock.now() >= action.until
        elif isinstance(action, Write):
            yield None
            return action.function(*action.args)
        elif isinstance(action, Settle):
            for child in action.children:
                yield from child.settled().__await__()
        return None


def drive(flow: Generator[Any, Any, Any], hands: Hands) -> Moves:
    """Perform a flow."""
    reply: Any = None
    problem: Exception | None = None
    while True:
        try:
            effect = flow.send(reply) if problem is None else flow.throw(problem)
        except StopIteration as told:
            return told.value
        reply = problem = None
        if isinstance(effect, Start):
            hands.start(effect.assignments)
        elif isinstance(effect, Join):
            yield lambda: bool(hands.outcomes)
            reply = hands.take()
        elif not isinstance(effect, Emit):
            yield None
            try:
                reply = save(hands.context.journal, effect, hands.context)
            except Exception as error:  # noqa: BLE001 — the flow decides what an error means
                problem = error
