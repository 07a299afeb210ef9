"""Threads that all rest until the same instant, and tell in which turn each of them went on."""

from __future__ import annotations

import os
from itertools import count
from typing import Any, TypedDict

from bide import START, CompiledGraph, StateGraph, sleep
from tests.fleet.place import Place
from tests.fleet.telling import teller

TURNS = count(1)
"""How many have gone on in this process."""


class State(TypedDict, total=False):
    turn: int


def rest(state: State) -> dict[str, Any]:
    sleep("1h")
    return {"turn": next(TURNS)}


def go(state: State) -> dict[str, Any]:
    return {"turn": next(TURNS)}


def build(_: Place) -> list[CompiledGraph]:
    """The graphs of a worker: one rests, and one does not."""
    return [
        StateGraph(State).add_node("rest", rest).add_edge(START, "rest").compile(name="herd"),
        StateGraph(State).add_node("go", go).add_edge(START, "go").compile(name="single"),
    ]


def work_at(place: list[Any], concurrency: int) -> None:
    """Be a worker at the time that the story has come to, until a signal comes."""
    where = Place(*place)
    told = teller(where, build(where))
    with told.app, told.app.store:
        told.app.worker(concurrency=concurrency, poll=0.05).run()
    os.write(1, f"{next(TURNS) - 1} turns\n".encode())
