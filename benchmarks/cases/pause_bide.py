"""Pause and resume on Bide: each half is done by a graph that was compiled for it alone."""

from __future__ import annotations

from approval import config_of, graph_of, measure_pairs, new_order
from bide_store import open_store
from case import report, settings

from bide import END, START, Command, StateGraph, interrupt


def main() -> None:
    asked = settings()
    graph = graph_of(StateGraph, START, END, interrupt)
    with open_store(asked) as store:

        def pair(number: int) -> None:
            paused = graph.compile(checkpointer=store).invoke(new_order(), config_of(number))
            assert paused.is_interrupted
            done = graph.compile(checkpointer=store).invoke(Command(resume=True), config_of(number))
            assert done["text"] == "shipped"

        metrics = measure_pairs(asked, pair)
    report(**metrics)


if __name__ == "__main__":
    main()
