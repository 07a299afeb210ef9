"""The picture of a graph, and where a thread stands in it: what is drawn is what would happen."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import pytest

from bide import END, START, Command, Send, StateGraph, Store, interrupt
from bide.picture import Picture
from bide.picture.layout import layout
from tests.threads import one_node, side_by_side, thread


class State(TypedDict, total=False):
    name: str


def quiet(state: State) -> None:
    return None


def asks(state: State) -> State:
    return {"name": interrupt("Your name?")}


def marks(picture: Picture) -> dict[str, str]:
    return {id: node.mark for id, node in picture.nodes.items() if node.kind == "node"}


def ways(picture: Picture, source: str) -> list[tuple[str, bool]]:
    """Where the edges of a node lead, and whether they are dashed."""
    return [(edge.target, edge.is_conditional) for edge in picture.edges if edge.source == source]


# ── Marks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("returned", [None, {}])
def test_node_that_returned_nothing_is_visited_while_its_sibling_waits(store: Store, returned: Any):
    graph = side_by_side(State, {"done": lambda state: returned, "asks": asks}, checkpointer=store)
    graph.invoke({}, thread())

    picture = graph.get_graph(thread())

    assert marks(picture) == {"done": "visited", "asks": "paused"}


def test_node_is_open_as_long_as_one_of_its_tasks_is(store: Store):
    builder = StateGraph(State).add_node("worker", lambda arg: asks(arg) if arg["name"] == "asks" else None)
    builder.add_conditional_edges(START, lambda state: [Send("worker", {"name": name}) for name in ("asks", "ends")])
    graph = builder.compile(checkpointer=store)
    graph.invoke({}, thread())

    picture = graph.get_graph(thread())

    assert marks(picture) == {"worker": "paused"}


def test_failure_of_a_node_counts_more_than_the_pause_of_its_sibling_task(store: Store):
    def work(arg: State) -> State:
        return asks(arg) if arg["name"] == "asks" else {"name": str(1 / 0)}

    builder = StateGraph(State).add_node("worker", work)
    builder.add_conditional_edges(START, lambda state: [Send("worker", {"name": name}) for name in ("fails", "asks")])
    graph = builder.compile(checkpointer=store)
    with pytest.raises(ZeroDivisionError):
        graph.invoke({}, thread())

    picture = graph.get_graph(thread())

    assert marks(picture) == {"worker": "failed"}


# ── Order and title ────────────────────────────────────────────────────────────────────────────────────────────────


def test_nodes_side_by_side_keep_the_order_in_which_they_were_added():
    names = ["web", "docs", "archive"]
    graph = side_by_side(State, dict.fromkeys(names, quiet))

    left = {box.node.id: box.x for box in layout(graph.get_graph()).boxes}

    assert sorted(names, key=left.__getitem__) == names
    assert ways(graph.get_graph(), START) == [(name, False) for name in names]


@pytest.mark.parametrize(("options", "title"), [({}, ""), ({"name": "Refunds"}, "Refunds")])
def test_title_is_the_name_that_was_given_at_compile(options: dict[str, str], title: str):
    assert one_node(State, quiet, **options).get_graph().title == title


# ── Ways on ────────────────────────────────────────────────────────────────────────────────────────────────────────


def two_ways(decide: Any, **options: Any) -> Picture:
    """A graph whose first node goes on by a `Command`, if at all."""
    builder = StateGraph(State).add_node("decide", decide, **options).add_node("pay", quiet).add_node("decline", quiet)
    return builder.add_edge(START, "decide").compile().get_graph()


def test_choice_that_names_no_places_may_lead_to_every_node_and_to_the_end():
    builder = StateGraph(State).add_node("first", quiet).add_node("second", quiet).add_edge(START, "first")
    picture = builder.add_conditional_edges("first", lambda state: END).compile().get_graph()

    assert ways(picture, "first") == [("first", True), ("second", True), (END, True)]


def test_command_that_names_no_places_is_a_dashed_line_to_the_end():
    def by_its_code(state: State):
        return Command(goto="pay")

    def by_its_annotation(state: State) -> Command:
        return by_its_code(state)

    assert ways(two_ways(by_its_code), "decide") == [(END, True)]
    assert ways(two_ways(by_its_annotation), "decide") == [(END, True)]


def test_node_that_leads_nowhere_ends_its_branch():
    assert ways(two_ways(quiet), "decide") == [(END, False)]


def test_places_of_a_command_are_named_by_its_annotation_or_when_the_node_is_added():
    def annotated(state: State) -> Command[Literal["pay", "decline"]]:
        return Command(goto="pay")

    def bare(state: State):
        return Command(goto="pay")

    expected = [("pay", True), ("decline", True)]
    assert ways(two_ways(annotated), "decide") == expected
    assert ways(two_ways(bare, destinations=["decline", "pay"]), "decide") == expected
