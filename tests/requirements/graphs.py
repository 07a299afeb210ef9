"""Small words for the tests of requirements: a graph in a line, a thread's config, an answer by its question's id."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from bide import Command, CompiledGraph, Interrupt, StateGraph


def in_line(schema: Any, *nodes: Callable[..., Any]) -> StateGraph:
    """A graph that runs these functions one after the other, under their own names."""
    graph = StateGraph(schema).add_sequence(list(nodes))
    return graph.set_entry_point(nodes[0].__name__).set_finish_point(nodes[-1].__name__)


def thread(thread_id: Any, **more: Any) -> dict[str, Any]:
    """The config of a thread."""
    return {"configurable": {"thread_id": thread_id, **more}}


def answer(question: Interrupt, value: Any) -> Command:
    """The answer to one question, by its id."""
    return Command(resume={question.id: value})


def checkpoint_ids(graph: CompiledGraph, config: dict[str, Any]) -> list[str]:
    """The ids of a thread's checkpoints, oldest first."""
    history = graph.get_state_history(config, order="asc")
    return [snapshot.config["configurable"]["checkpoint_id"] for snapshot in history]


def url_of(folder: Path) -> str:
    """The URL of the one database in a folder."""
    return f"sqlite:///{folder / 'bide.db'}"


class Work(TypedDict, total=False):
    value: int
    nested: dict[str, Any]
    found: Annotated[list[str], operator.add]
    joined: list[str]


class Line:
    """a → b → c, with a note of every run of a node."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def a(self, state: Work) -> dict[str, Any]:
        return self._note("a")

    def b(self, state: Work) -> dict[str, Any]:
        return self._note("b")

    def c(self, state: Work) -> dict[str, Any]:
        return self._note("c")

    def _note(self, name: str) -> dict[str, Any]:
        self.ran.append(name)
        return {"found": [name]}

    def graph(self) -> StateGraph:
        return in_line(Work, self.a, self.b, self.c)
