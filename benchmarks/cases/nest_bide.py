"""A loop over a subgraph on Bide, in memory, on a SQLite file or on PostgreSQL."""

from __future__ import annotations

from bide_store import open_store
from case import report, settings, timing, took
from nest import REPEATS, VISITS, graph_of

from bide import END, START, StateGraph


def main() -> None:
    asked = settings()
    visits = asked.amount(VISITS, 5)
    with open_store(asked) as store:
        graph = graph_of(StateGraph, START, END).compile(checkpointer=store)

        def run(number: int) -> None:
            config = {"configurable": {"thread_id": f"nest-{number}"}, "recursion_limit": 10 * VISITS}
            assert graph.invoke({"n": 0, "limit": visits}, config)["n"] == visits

        samples = [took(lambda number=number: run(number)) for number in range(asked.amount(REPEATS, 1))]
    report(**timing("visit", "µs", samples, per=visits))


if __name__ == "__main__":
    main()
