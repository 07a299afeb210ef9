"""A loop over a subgraph on Bide, in memory or on a SQLite file."""

from __future__ import annotations

from case import report, settings, timing, took
from nest import REPEATS, VISITS, graph_of

from bide import END, START, MemorySaver, StateGraph, Store


def main() -> None:
    asked = settings()
    visits = asked.amount(VISITS, 5)
    with MemorySaver() if asked.store == "memory" else Store.open(f"sqlite:///{asked.database}") as store:
        graph = graph_of(StateGraph, START, END).compile(checkpointer=store)

        def run(number: int) -> None:
            config = {"configurable": {"thread_id": f"nest-{number}"}, "recursion_limit": 10 * VISITS}
            assert graph.invoke({"n": 0, "limit": visits}, config)["n"] == visits

        samples = [took(lambda number=number: run(number)) for number in range(asked.amount(REPEATS, 1))]
    report(**timing("visit", "µs", samples, per=visits))


if __name__ == "__main__":
    main()
