"""The same random graphs on the real store, with both real drivers: run in pieces, they end as if run in one go.

Hypothesis draws the graph and all that happens to it, and shrinks what it finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bide import Command, CompiledGraph, MemorySaver, Store
from bide.errors import GraphDrained, GraphRecursionError, StoreError, StoreUnavailableError
from bide.types import RunControl
from tests.drivers import Driver
from tests.robustness.clocks import SleepyClock
from tests.simulation.graphs import GraphPlan, a_graph
from tests.simulation.world import FIRST_INPUT, World, answer_to, build, calm_end
from tests.threads import let_tasks_end, thread

T = TypeVar("T")

ORDINARY = (ConnectionError, GraphDrained, GraphRecursionError, StoreError)
MOST_CALLS = 400
TROUBLES = 8


class Drawn:
    """Choices that Hypothesis makes, simplest first."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def integer(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent


class Script:
    """Choices made beforehand: which of them is asked for when may depend on the timing of threads."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = iter(numbers)

    def integer(self, least: int, most: int) -> int:
        return least + next(self.numbers, 0) % (most - least + 1)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return next(self.numbers, 99) % 100 >= 100 - percent


@st.composite
def plans(draw: Any) -> GraphPlan:
    return a_graph(Drawn(draw))


SCRIPTS = st.lists(st.integers(0, 999), min_size=24, max_size=80)


class Unsteady:
    """A database that sometimes refuses a write, and sometimes does it and fails to say so."""

    def __init__(self, database: Any, fault: Callable[[], str | None]) -> None:
        for name in ("write", "write_one", "write_alone"):
            setattr(database, name, self._failing(getattr(database, name), fault))

    @staticmethod
    def _failing(write: Callable[..., Any], fault: Callable[[], str | None]) -> Callable[..., Any]:
        def write_or_fail(name: str, *args: Any, **options: Any) -> Any:
            problem = fault() if name != "beat" else None
            if problem == "refused":
                raise StoreUnavailableError("the store is away")
            value = write(name, *args, **options)
            if problem == "lost":
                raise StoreUnavailableError("the store went away")
            return value

        return write_or_fail


class Life:
    """One thread in the hands of impatient people on an unsteady machine."""

    def __init__(self, plan: GraphPlan, choose: Script, driver: Driver, store: Store) -> None:
        self.plan = plan
        self.choose = choose
        self.driver = driver
        self.store = store
        self.world = World(is_calm=False)
        self.graph: CompiledGraph = build(plan, self.world, is_async=driver.name == "async", checkpointer=store)
        self.troubles = TROUBLES
        self.faults: list[str] = []
        Unsteady(store.database, lambda: self.faults.pop() if self.faults else None)
        self.edits: list[str] = []

    def to_the_end(self) -> dict[str, Any]:
        """Call until the thread has finished; return its state."""
        for _ in range(MOST_CALLS):
            state = self.driver.call(self.graph, "get_state", thread())
            if state.values and not state.next and not state.interrupts:
                return state.values
            self._call(state)
            let_tasks_end()
            self.faults = []
        raise AssertionError("the thread does not come to its end")

    def _call(self, state: Any) -> None:
        """Make one call, or edit; something may go wrong on the way."""
        trouble = self._trouble()
        if trouble in ("refused", "lost"):
            # The list is taken from its end: so many writes go well before one does not.
            self.faults = [trouble, *["fine"] * self.choose.integer(0, 5)]
        if trouble == "edit" and state.values:
            self._edit()
            return
        control = RunControl()
        if trouble == "drain":
            control.request_drain()
        try:
            if trouble == "leave":
                self._begin_and_leave(self._given(state))
            else:
                self.driver.invoke(self.graph, self._given(state), thread(), **self._options(), control=control)
        except ORDINARY:
            return

    def _trouble(self) -> str:
        if not self.troubles:
            return ""
        self.troubles -= 1
        return self.choose.pick(("", "edit", "refused", "lost", "drain", "leave"))

    def _given(self, state: Any) -> Any:
        """Say what the thread needs: its input, some answers, or just to go on."""
        if not state.values:
            return FIRST_INPUT
        asks = [ask for ask in state.interrupts if self.choose.chance(70)]
        return Command(resume={ask.id: answer_to(ask.value) for ask in asks}) if asks else None

    def _options(self) -> dict[str, Any]:
        return {
            "interrupt_before": list(self.plan.before),
            "interrupt_after": list(self.plan.after),
            "durability": self.choose.pick(("sync", "async", "exit")),
        }

    def _edit(self) -> None:
        note = f"edit {len(self.edits)}"
        self.driver.call(self.graph, "update_state", thread(), {"notes": [note]})
        self.edits.append(note)

    def _begin_and_leave(self, given: Any) -> None:
        """Read a few parts of the stream, and go away in the middle."""
        parts, options = self.choose.integer(0, 6), {**self._options(), "stream_mode": ["tasks", "values"]}
        if self.driver.name == "async":
            asyncio.run(self._aread(given, parts, options))
            return
        stream = self.graph.stream(given, thread(), **options)
        for _, _ in zip(range(parts), stream, strict=False):
            pass
        stream.close()

    async def _aread(self, given: Any, parts: int, options: dict[str, Any]) -> None:
        stream = self.graph.astream(given, thread(), **options)
        async for _ in stream:
            parts -= 1
            if parts <= 0:
                break
        await stream.aclose()


@contextmanager
def opened(kind: str) -> Iterator[Store]:
    """A new store for each example."""
    clock = SleepyClock()
    if kind == "memory":
        with MemorySaver(clock=clock) as store:
            yield store
        return
    with TemporaryDirectory() as folder, Store.open(f"sqlite:///{Path(folder) / 'bide.db'}", clock=clock) as store:
        yield store


def journal_of(store: Store) -> list[Any]:
    return store.database.read(lambda tx: tx.all("read_journal", {"thread_id": "t"}))


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(plan=plans(), script=SCRIPTS, kind=st.sampled_from(("memory", "memory", "memory", "file")))
def test_graph_run_in_pieces_ends_as_if_run_in_one_go_and_makes_each_effect_once(
    driver: Driver, plan: GraphPlan, script: list[int], kind: str
):
    log, notes, effects = calm_end(plan)

    with opened(kind) as store:
        life = Life(plan, Script(script), driver, store)
        state = life.to_the_end()
        left = journal_of(store)

    assert state["log"] == log
    assert sorted(state["notes"]) == sorted([*notes, *life.edits])
    assert life.world.effects == effects
    assert life.world.offences == []
    assert left == []
