"""A child ends while its parent begins to wait for it: the parent sees the whole of its end, whoever is first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypedDict

import pytest

from bide import START, Bide, StateGraph, Store, all_of, any_of, spawn, wait_for
from bide.testing import FakeClock
from bide.waits import ChildResult, child, event
from tests.runtime.overlapping import race
from tests.stores import SCHEMA


class Letter(TypedDict, total=False):
    shape: str
    summary: str
    ended: ChildResult


def write(state: Letter) -> Letter:
    return {"summary": "nine lines"}


def delegate(state: Letter) -> Letter:
    writer = child(spawn("writer"))
    if state["shape"] == "any":
        return {"ended": wait_for(any_of(event("stop"), writer)).value}
    if state["shape"] == "all":
        return {"ended": wait_for(all_of(writer=writer)).value["writer"].value}
    return {"ended": wait_for(writer).value}


def graph(name: str, node: Any, store: Store) -> Any:
    return StateGraph(Letter).add_node("node", node).add_edge(START, "node").compile(name=name, checkpointer=store)


@contextmanager
def two_applications(url: str) -> Iterator[tuple[Bide, Bide]]:
    """Two processes, as far as the database can tell: one knows the parent's graph, and one the child's."""
    with ExitStack() as stack:
        stores = [stack.enter_context(Store.open(url, schema=SCHEMA, clock=FakeClock())) for _ in range(2)]
        yield (
            Bide(stores[0], [graph("parent", delegate, stores[0])]),
            Bide(stores[1], [graph("writer", write, stores[1])]),
        )


@pytest.mark.parametrize("shape", ["one", "any", "all"])
@pytest.mark.parametrize("point", ["commit:expect_end", "commit:how_it_ended", "commit:written"])
def test_child_that_ends_while_its_parent_begins_to_wait_is_seen_whole(point: str, shape: str, postgres_url: str):
    with two_applications(postgres_url) as (parents, children):
        # given a parent that has looked for what its child has told, and found nothing
        run = parents.start("parent", {"shape": shape})

        # when the child ends just then
        race(postgres_url, parents, point, lambda: parents.run_ready(), lambda: children.run_ready())
        parents.run_ready()

        # then the parent sees its end, with all that was told of it
        ended = parents.get(run.thread_id).values["ended"]
        assert (ended.status, ended.summary) == ("done", "nine lines")
        assert children.output(ended)["summary"] == "nine lines"
