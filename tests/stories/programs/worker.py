"""A process that runs a thread and stops in the middle of a node until it is told to go on.

    python worker.py FOLDER WHO

It obeys lines of JSON: `["start", thread]`, `["go on", thread]`, `["answer", thread]`. Inside the node it says "inside"
and reads a line, whatever that is, before it goes on; in the end it says how the call ended.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from bide import END, START, Command, CompiledGraph, StateGraph, Store, step
from bide.errors import BideError


class State(TypedDict):
    done_by: list[str]


def build(folder: Path, who: str, store: Store, in_the_middle: Callable[[], object]) -> CompiledGraph:
    """A graph with one long node: a step, the middle, another step."""

    def mark(what: str) -> str:
        with (folder / "marks.txt").open("a", encoding="utf-8") as marks:
            marks.write(f"{what} by {who}\n")
        return f"{what} by {who}"

    def work(state: State) -> dict[str, Any]:
        first = step(mark, "first")
        in_the_middle()
        return {"done_by": [first, step(mark, "second")]}

    graph = StateGraph(State)
    graph.add_node(work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph.compile(checkpointer=store)


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


def wait_inside() -> None:
    say("inside")
    sys.stdin.readline()


def obey(graph: CompiledGraph, what: str, thread: str) -> dict[str, Any]:
    given = {"start": {"done_by": []}, "go on": None, "answer": Command(resume="yes")}[what]
    try:
        return {"done_by": graph.invoke(given, {"configurable": {"thread_id": thread}})["done_by"]}
    except BideError as error:
        return {"error": type(error).__name__, "message": str(error)}


def main(folder: Path, who: str) -> None:
    graph = build(folder, who, Store.open(f"sqlite:///{folder / 'bide.db'}"), wait_inside)
    for line in sys.stdin:
        say(obey(graph, *json.loads(line)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
