"""Which node stands above which, and how few edges cross."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bide.picture import Picture, PictureNode
from bide.picture.layout import layout
from bide.picture.rank import back_edges, components, ranks
from bide.picture.tracks import Wire, tracks_of
from tests.picture.pictures import edge

COUNT = 8
edges_between = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=24)


def downward(edges):
    back = back_edges(COUNT, edges, frozenset())
    return [(b, a) if index in back else (a, b) for index, (a, b) in enumerate(edges) if a != b]


@given(edges_between)
def test_every_edge_points_down_once_the_back_edges_are_turned(edges):
    edges = downward(edges)

    rank = ranks(COUNT, edges, frozenset(), frozenset())

    assert all(rank[source] < rank[target] for source, target in edges)
    assert min(rank) == 0


def test_graph_without_cycles_has_no_back_edges():
    assert back_edges(4, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)], frozenset()) == set()


def test_cycle_is_broken_where_the_walk_from_the_start_closes_it():
    assert back_edges(3, [(2, 0), (0, 1), (1, 2)], frozenset({0})) == {0}
    assert back_edges(3, [(2, 0), (0, 1), (1, 2)], frozenset({1})) == {1}


def test_of_the_ways_to_break_cycles_the_one_with_the_fewest_edges_back_is_taken():
    route, web, retrieve, grade, rewrite, generate, check = range(7)
    edges = [
        (route, web),
        (route, retrieve),
        (retrieve, grade),
        (grade, rewrite),
        (grade, generate),
        (rewrite, retrieve),
        (web, generate),
        (generate, check),
        (check, generate),
        (check, rewrite),
    ]

    back = back_edges(7, edges, frozenset({route}))

    assert {edges[index] for index in back} == {(rewrite, retrieve), (check, generate)}


def test_edge_to_itself_is_a_back_edge():
    assert back_edges(1, [(0, 0)], frozenset()) == {0}


def test_node_stands_below_the_longest_way_to_it():
    assert ranks(4, [(0, 1), (1, 2), (0, 2), (2, 3)], frozenset({0}), frozenset()) == [0, 1, 2, 3]


def test_node_that_nothing_leads_to_stands_next_to_where_it_leads():
    assert ranks(5, [(0, 1), (1, 2), (2, 3), (4, 3)], frozenset({0}), frozenset())[4] == 2


@given(edges_between)
def test_parts_hold_every_node_once_and_no_edge_joins_two(edges):
    parts = components(COUNT, edges)

    assert sorted(node for part in parts for node in part) == list(range(COUNT))
    part_of = {node: index for index, part in enumerate(parts) for node in part}
    assert all(part_of[source] == part_of[target] for source, target in edges)


def crossings(picture: Picture) -> int:
    """How many pairs of edges swap sides between the rows; of pictures whose edges go from one row to the next."""
    boxes = {box.node.id: box for box in layout(picture).boxes}
    ends = [(boxes[edge.source], boxes[edge.target]) for edge in picture.edges]
    return sum((a.x - c.x) * (b.x - d.x) < 0 for (a, b), (c, d) in combinations(ends, 2) if a.y == c.y and b.y == d.y)


@pytest.mark.parametrize(
    "edges",
    [
        [("a", "y"), ("b", "x")],
        [("a", "z"), ("b", "y"), ("c", "x"), ("a", "y"), ("b", "x")],
        [("a", "z"), ("z", "q"), ("b", "y"), ("y", "p"), ("c", "x"), ("x", "o"), ("a", "x")],
    ],
)
def test_graph_that_can_be_drawn_without_crossings_is(edges):
    names = dict.fromkeys(name for pair in edges for name in pair)
    root = [edge("root", name) for name in "abc" if name in names]
    picture = Picture(
        (PictureNode("root"), *map(PictureNode, sorted(names))), (*root, *(edge(*pair) for pair in edges))
    )

    assert crossings(picture) == 0


def wire(upper: int, lower: int) -> Wire:
    return Wire(upper, lower, (upper, 0), (lower, 1))


def test_straight_wires_need_no_line():
    assert tracks_of([wire(3, 3), wire(9, 9)]) == ({}, 0)


def test_wires_from_one_end_share_a_line():
    tracks, lines = tracks_of([wire(10, 2), wire(10, 18), wire(10, 10)])

    assert lines == 1
    assert set(tracks.values()) == {0}


def test_wires_that_would_touch_take_two_lines_and_those_apart_share_one():
    assert tracks_of([wire(0, 10), wire(5, 15)])[1] == 2
    assert tracks_of([wire(0, 4), wire(10, 15)])[1] == 1


def test_wire_that_comes_down_where_another_goes_on_is_above_it():
    falls, goes_on = wire(10, 20), wire(0, 10)

    tracks, _ = tracks_of([goes_on, falls])

    assert tracks[falls] < tracks[goes_on]
