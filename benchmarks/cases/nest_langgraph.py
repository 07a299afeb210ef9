"""A loop over a subgraph on LangGraph, in memory, on a SQLite file or on PostgreSQL."""

from __future__ import annotations

from case import report, settings, timing, took
from langgraph.graph import END, START, StateGraph
from langgraph_saver import open_saver
from nest import REPEATS, VISITS, graph_of


def main() -> None:
    asked = settings()
    visits = asked.amount(VISITS, 5)
    with open_saver(asked) as saver:
        graph = graph_of(StateGraph, START, END).compile(checkpointer=saver)

        def run(number: int) -> None:
            config = {"configurable": {"thread_id": f"nest-{number}"}, "recursion_limit": 10 * VISITS}
            assert graph.invoke({"n": 0, "limit": visits}, config, durability="sync")["n"] == visits

        samples = [took(lambda number=number: run(number)) for number in range(asked.amount(REPEATS, 1))]
    report(**timing("visit", "µs", samples, per=visits))


if __name__ == "__main__":
    main()
