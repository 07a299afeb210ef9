"""Who is claimed next, when one slot of a busy worker comes free: everybody in turn, owners and graphs alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from bide import START, Bide, CompiledGraph, StateGraph, Store
from tests.stores import KINDS, opened_store


class State(TypedDict, total=False):
    who: str


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


def graph(name: str, ran: list[str]) -> CompiledGraph:
    """A graph that tells whose run it was."""

    def node(state: State) -> dict[str, Any]:
        ran.append(state["who"])
        return {}

    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(name=name)


def test_nobody_is_passed_over_for_long_by_an_owner_with_more_runs(store):
    ran: list[str] = []
    app = Bide(store, [graph("job", ran)])
    for _ in range(30):
        app.start("job", {"who": "nobody"})
    for owner in ("ann", "bob"):
        for _ in range(5):
            app.start("job", {"who": owner}, owner=owner)

    for _ in range(18):
        app.run_ready(most=1)

    assert ran.count("ann") == ran.count("bob") == 5


def test_no_graph_is_passed_over_for_long_by_one_with_more_runs(store):
    ran: list[str] = []
    app = Bide(store, [graph("mails", ran), graph("bills", ran)])
    for _ in range(30):
        app.start("mails", {"who": "mails"})
    for _ in range(5):
        app.start("bills", {"who": "bills"})

    for _ in range(12):
        app.run_ready(most=1)

    assert ran.count("bills") == 5
