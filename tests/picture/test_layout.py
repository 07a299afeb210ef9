"""What holds for every drawing: nothing overlaps, every edge is there, arrows touch their nodes."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, pairwise
from math import ceil

import pytest
from hypothesis import given, settings

from bide.picture import Picture, PictureEdge, PictureNode
from bide.picture.drawing import Box, Caption, Drawing, Line
from bide.picture.layout import layout
from bide.picture.outline import flatten
from tests.picture.pictures import AGENT, ALL, DIAMOND, NESTED, PAUSED, TWINS, choice, edge, pictures

Rect = tuple[float, float, float, float]


def rect(thing: Box | Caption) -> Rect:
    """Left, top, right, bottom."""
    if isinstance(thing, Box):
        return thing.x, thing.y, thing.x + thing.width, thing.y + thing.height
    x, y = thing.x - thing.width / 2, thing.y - thing.height / 2
    return x, y, x + thing.width, y + thing.height


def overlap(one: Rect, other: Rect) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def holds(outer: Rect, inner: Rect) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def siblings(drawing: Drawing, parent: tuple[str, ...]) -> dict[str, Box]:
    return {box.node.id: box for box in drawing.boxes if box.path[:-1] == parent}


def parents(drawing: Drawing) -> set[tuple[str, ...]]:
    return {box.path[:-1] for box in drawing.boxes}


def lines_in(drawing: Drawing, parent: tuple[str, ...]) -> list[Line]:
    return [line for line in drawing.lines if line.parent == parent]


def is_on_border(x: float, y: float, box: Box) -> bool:
    left, top, right, bottom = rect(box)
    on_side = x in (left, right) and top < y < bottom
    on_end = y in (top, bottom) and left < x < right
    return on_side or on_end


@lru_cache(maxsize=256)
def points_of(line: Line) -> tuple[tuple[float, float], ...]:
    """Points along a line, no farther apart than four pixels."""
    points: list[tuple[float, float]] = []
    for (x, y), (to_x, to_y) in pairwise(flatten(line.path)):
        pieces = ceil(max(abs(to_x - x), abs(to_y - y)) / 4) or 1
        points += [(x + (to_x - x) * piece / pieces, y + (to_y - y) * piece / pieces) for piece in range(pieces + 1)]
    return tuple(points)


def goes_through(line: Line, area: Rect, margin: float = 1.0) -> bool:
    left, top, right, bottom = area[0] + margin, area[1] + margin, area[2] - margin, area[3] - margin
    return any(left < x < right and top < y < bottom for x, y in points_of(line))


def check(picture: Picture) -> Drawing:
    """Check everything that must hold for any drawing."""
    drawing = layout(picture)
    check_boxes(drawing)
    check_lines(picture, drawing, ())
    for parent in parents(drawing):
        check_captions(drawing, parent)
    return drawing


def check_boxes(drawing: Drawing) -> None:
    by_path = {box.path: box for box in drawing.boxes}
    page = (0.0, 0.0, float(drawing.width), float(drawing.height))
    for box in drawing.boxes:
        outer = rect(by_path[box.path[:-1]]) if len(box.path) > 1 else page
        assert holds(outer, rect(box)), f"{box.path} leaves what it stands in"
    for parent in parents(drawing):
        for one, other in combinations(siblings(drawing, parent).values(), 2):
            assert not overlap(rect(one), rect(other)), f"{one.path} and {other.path} overlap"


def check_lines(picture: Picture, drawing: Drawing, parent: tuple[str, ...]) -> None:
    boxes, lines = siblings(drawing, parent), lines_in(drawing, parent)
    assert sorted(map(repr, (line.edge for line in lines))) == sorted(map(repr, picture.edges))
    for line in lines:
        check_ends(line, boxes)
        assert not [id for id, box in boxes.items() if goes_through(line, rect(box))], f"{line.edge} crosses a node"
    for node in picture.nodes:
        if node.inside is not None and node.inside.nodes:
            check_lines(node.inside, drawing, (*parent, node.id))


def check_ends(line: Line, boxes: dict[str, Box]) -> None:
    source, target, head = boxes[line.edge.source], boxes[line.edge.target], line.head
    assert is_on_border(*line.path[0][-2:], source), f"{line.edge} does not begin at its source"
    assert is_on_border(head.x, head.y, target), f"{line.edge} does not end at its target"
    inside = (head.x + head.dx, head.y + head.dy)
    left, top, right, bottom = rect(target)
    assert left <= inside[0] <= right, f"the head of {line.edge} points away"
    assert top <= inside[1] <= bottom, f"the head of {line.edge} points away"
    x, y = line.path[-1][-2:]
    assert (head.x - x, head.y - y) == (9 * head.dx, 9 * head.dy), f"{line.edge} is torn from its head"


def check_captions(drawing: Drawing, parent: tuple[str, ...]) -> None:
    lines = lines_in(drawing, parent)
    captions = [(line, rect(line.caption)) for line in lines if line.caption is not None]
    assert len(captions) == sum(bool(line.edge.label.strip()) for line in lines)
    for line, area in captions:
        assert holds((0, 0, drawing.width, drawing.height), area)
        for box in siblings(drawing, parent).values():
            assert not overlap(area, rect(box)), f"the label of {line.edge} lies on {box.path}"
        for other in lines:
            assert other is line or not goes_through(other, area), f"{other.edge} crosses the label of {line.edge}"
    for (_, one), (_, other) in combinations(captions, 2):
        assert not overlap(one, other)


@pytest.mark.parametrize("name", ALL)
def test_drawing_of_a_known_picture_is_sound(name):
    check(ALL[name])


@given(pictures())
@settings(max_examples=150, deadline=None)
def test_drawing_of_any_picture_is_sound(picture):
    check(picture)


@given(pictures())
@settings(max_examples=25, deadline=None)
def test_same_picture_is_laid_out_the_same(picture):
    assert layout(picture) == layout(picture)


def test_large_picture_with_many_cycles_is_sound():
    count = 70
    nodes = tuple(PictureNode(f"n{index}") for index in range(count))
    forward = tuple(
        edge(f"n{index}", f"n{(index * 7 + 3) % count}", "x" if index % 5 == 0 else "") for index in range(count)
    )
    onward = tuple(edge(f"n{index}", f"n{index + 1}") for index in range(count - 1))

    drawing = check(Picture(nodes, forward + onward))

    assert len(drawing.boxes) == count


def middle(drawing: Drawing, *path: str) -> tuple[float, float]:
    box = next(box for box in drawing.boxes if box.path == path)
    return box.x + box.width / 2, box.y + box.height / 2


def test_line_of_nodes_stands_in_one_straight_column():
    nodes = tuple(PictureNode(name) for name in ("a", "a longer name", "b", "the longest name of all"))
    edges = tuple(edge(one.id, other.id) for one, other in pairwise(nodes))

    drawing = layout(Picture(nodes, edges))

    assert len({box.x + box.width / 2 for box in drawing.boxes}) == 1
    assert all(len(line.path) == 2 for line in drawing.lines), "a straight line has two ends and nothing between"


def test_diamond_is_symmetric():
    drawing = layout(DIAMOND)

    left, right = middle(drawing, "search_web"), middle(drawing, "search_docs")
    top, bottom = middle(drawing, "plan"), middle(drawing, "merge")

    assert left[1] == right[1]
    assert top[0] == bottom[0]
    assert abs((left[0] + right[0]) / 2 - top[0]) <= 1


def test_flow_goes_down_and_start_and_end_are_first_and_last():
    drawing = layout(PAUSED)
    height = {box.node.id: box.y for box in drawing.boxes}

    assert min(height, key=height.__getitem__) == "__start__"
    assert max(height, key=height.__getitem__) == "__end__"
    assert height["classify"] < height["approve"] < height["refund"]


def test_end_stands_at_the_bottom_even_when_it_is_reached_early():
    picture = Picture(
        (PictureNode("a"), PictureNode("__end__", kind="end"), PictureNode("b"), PictureNode("c")),
        (choice("a", "__end__"), choice("a", "b"), edge("b", "c")),
    )

    drawing = layout(picture)

    assert middle(drawing, "__end__")[1] == middle(drawing, "c")[1]


def test_back_edge_goes_around_the_side():
    drawing = layout(AGENT)
    back = next(line for line in drawing.lines if line.edge.source == "tools")
    boxes = siblings(drawing, ())
    beside = [x for x, _ in flatten(back.path)]

    assert back.head.dy == 0
    assert back.head.dx != 0
    both = [rect(boxes["agent"]), rect(boxes["tools"])]
    assert max(beside) > max(box[2] for box in both) or min(beside) < min(box[0] for box in both)


def test_many_edges_back_to_one_node_come_up_between_the_others():
    drawing = layout(ALL["supervisor"])
    back = [line for line in drawing.lines if line.edge.target == "supervisor" and line.edge.source != "__start__"]

    assert {(line.head.dx, line.head.dy) for line in back} == {(0, -1)}
    assert len({line.head.x for line in back}) == len(back), "each arrow has a place of its own"


def test_twin_edges_do_not_lie_on_one_another():
    drawing = layout(TWINS)
    ways = [tuple(flatten(line.path)) for line in drawing.lines]

    assert len(set(ways)) == len(TWINS.edges)


def test_loop_leaves_its_node_and_comes_back():
    drawing = layout(Picture((PictureNode("a"),), (edge("a", "a", "again"),)))
    box, loop = drawing.boxes[0], drawing.lines[0]

    assert max(x for x, _ in flatten(loop.path)) > box.x + box.width
    assert is_on_border(*loop.path[0][-2:], box)
    assert is_on_border(loop.head.x, loop.head.y, box)


def test_inner_picture_stands_inside_its_node_under_its_name():
    drawing = layout(NESTED)
    outer = next(box for box in drawing.boxes if box.path == ("team",))
    inner = [box for box in drawing.boxes if box.path[:1] == ("team",) and len(box.path) == 2]

    assert outer.is_open
    assert len(inner) == 4
    assert all(box.y - outer.y >= 30 for box in inner)
    assert next(box for box in drawing.boxes if box.path == ("outer", "deep", "merge")).depth == 2


def test_marks_in_use_are_explained_once_also_those_of_inner_pictures():
    inner = Picture((PictureNode("x", mark="failed"),), ())
    picture = Picture((PictureNode("a", mark="paused"), PictureNode("b", mark="paused", inside=inner)), ())

    assert [mark for mark, _, _ in layout(picture).legend] == ["paused", "failed"]
    assert layout(AGENT).legend == ()


def test_parts_that_nothing_joins_stand_side_by_side_and_then_in_shelves():
    drawing = layout(Picture(tuple(PictureNode(f"n{index}") for index in range(40)), ()))

    assert drawing.width < 1300
    assert 1 < len({box.y for box in drawing.boxes}) < 10


def test_long_label_is_broken_and_shortened_to_a_box_of_reasonable_size():
    drawing = layout(Picture((PictureNode("a", "very long words " * 70, note="n" * 1000),), ()))
    box = drawing.boxes[0]

    assert box.lines[-1].endswith("…")
    assert box.notes[-1].endswith("…")
    assert box.width <= 240
    assert box.height <= 160


def test_label_of_a_choice_stands_near_the_node_that_decides():
    drawing = layout(PAUSED)
    boxes = siblings(drawing, ())
    for line in drawing.lines:
        if line.edge.source == "classify" and line.caption is not None:
            assert boxes["classify"].y + boxes["classify"].height < line.caption.y < boxes["approve"].y


def test_edge_that_only_has_spaces_for_a_label_has_no_label():
    picture = Picture((PictureNode("a"), PictureNode("b")), (PictureEdge("a", "b", " \n "),))

    assert layout(picture).lines[0].caption is None
