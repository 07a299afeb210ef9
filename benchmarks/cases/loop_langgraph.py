"""The loop on LangGraph: without a checkpointer, or with one that is asked to be durable before the next step."""

from __future__ import annotations

from contextlib import nullcontext

from case import report, settings
from langgraph.graph import END, START, StateGraph
from langgraph_saver import open_saver
from loop import REPEATS, STOPWATCH, graph_of, rounds_of


def main() -> None:
    asked = settings()
    rounds = rounds_of(asked)
    with nullcontext() if asked.store == "none" else open_saver(asked) as saver:
        graph = graph_of(StateGraph, START, END).compile(checkpointer=saver)
        options = {} if saver is None else {"durability": "sync"}

        def run(number: int) -> None:
            config = {"configurable": {"thread_id": f"loop-{number}"}, "recursion_limit": 10 * rounds}
            done = graph.invoke({"n": 0, "limit": rounds, "text": ""}, config, **options)
            assert done["n"] == rounds, done

        for number in range(asked.amount(REPEATS, 1)):
            STOPWATCH.time(lambda number=number: run(number))
    report(**STOPWATCH.metrics())


if __name__ == "__main__":
    main()
