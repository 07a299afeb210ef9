"""Pause and resume on LangGraph: each half is done by a graph that was compiled for it alone."""

from __future__ import annotations

from approval import config_of, graph_of, measure_pairs, new_order
from case import report, settings
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from langgraph_saver import of_its_own, open_saver


def main() -> None:
    asked = settings()
    graph = graph_of(StateGraph, START, END, interrupt)
    with open_saver(asked, in_flight=True) as saver:

        def pair(number: int) -> None:
            config = config_of(number)
            paused = graph.compile(checkpointer=of_its_own(saver)).invoke(new_order(), config, durability="sync")
            assert paused["__interrupt__"]
            done = graph.compile(checkpointer=of_its_own(saver)).invoke(Command(resume=True), config, durability="sync")
            assert done["text"] == "shipped"

        metrics = measure_pairs(asked, pair)
    report(**metrics)


if __name__ == "__main__":
    main()
