"""Ten thousand paused threads on Bide: what one takes on disk and in memory, and how fast the oldest are listed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from approval import config_of, graph_of, new_order, price_of_a_pause
from bide_store import open_store
from case import most_memory, report, settings, timing, took

from bide import END, START, StateGraph, interrupt

WORKERS = 8


def pause_all(pause: Callable[[range], None], numbers: range) -> None:
    """Share the work among some threads; none keeps anything of what it has done."""
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(pause, [numbers[start::WORKERS] for start in range(WORKERS)]))


def main() -> None:
    asked = settings()
    first, threads = asked.amount(2_000, 10), asked.amount(10_000, 60)
    with open_store(asked) as store:
        empty = asked.bytes_when_empty()
        graph = graph_of(StateGraph, START, END, interrupt).compile(checkpointer=store)

        def pause(numbers: range) -> None:
            for number in numbers:
                graph.invoke(new_order(), config_of(number))

        pause_all(pause, range(first))
        memory = most_memory()
        pause_all(pause, range(first, threads))
        memory = most_memory() - memory
        listings = [took(lambda: store.open_waits(most=50)) for _ in range(asked.amount(20, 2))]
        assert len(store.open_waits(most=50)) == 50
    report(**price_of_a_pause(asked, threads, empty, memory / (threads - first)), **timing("listing", "ms", listings))


if __name__ == "__main__":
    main()
