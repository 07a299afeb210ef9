"""An application with a clock that stands still, and workers that are driven by the test itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, TypedDict

from bide import END, START, Bide, CompiledGraph, StateGraph, Store

NOON = 1_800_000_000_000


class StillClock:
    """Time moves when a test says so."""

    def __init__(self, now: int = NOON) -> None:
        self.instant = now

    def now(self) -> int:
        return self.instant

    def sleep(self, seconds: float, stopped: Event) -> None:
        raise AssertionError("nobody sleeps here")

    async def asleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")

    def pass_by(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        self.instant += int((hours * 3600 + minutes * 60 + seconds) * 1000)


class State(TypedDict, total=False):
    given: Any
    answer: Any


def graph(node: Callable[[Any], Any], name: str = "asks") -> CompiledGraph:
    """A graph of one node."""
    builder = StateGraph(State)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(name=name)


class World:
    """One application over a store, as one worker sees it."""

    def __init__(
        self, store: Store, clock: StillClock, graphs: Mapping[str, CompiledGraph] | list[CompiledGraph]
    ) -> None:
        self.clock = clock
        self.store = store
        self.app = Bide(store, graphs)

    def settle(self) -> list[str]:
        """Tend and drive until nothing is left to do; return how each run was left."""
        outcomes: list[str] = []
        for _ in range(1000):
            tended = self.app.tend()
            driven = self.app.run_ready(most=10)
            outcomes += [one.outcome for one in driven]
            if not driven and not tended.is_something:
                return outcomes
        raise AssertionError(f"it never comes to rest: {outcomes[-10:]}")

    def kinds(self, thread_id: str) -> list[str]:
        """The kinds of the lines in a thread's log."""
        return [event.kind for event in self.store.events(thread_id)]
