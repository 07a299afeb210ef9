"""The SVG: well formed, harmless, readable without eyes, and in two themes."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from bide.picture import Picture, PictureNode
from bide.picture.layout import layout
from tests.picture.pictures import AGENT, ALL, DIAMOND, HOSTILE, HOSTILE_LABELS, NESTED, PAUSED, pictures

NS = "{http://www.w3.org/2000/svg}"
ALLOWED = {"svg", "title", "desc", "style", "g", "rect", "path", "circle", "text"}


def parsed(picture: Picture) -> ET.Element:
    return ET.fromstring(picture.draw_svg().encode("utf-8"))


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{NS}text")]


def classes(root: ET.Element, tag: str) -> list[str]:
    return [element.get("class", "") for element in root.iter(NS + tag)]


def check_harmless(root: ET.Element) -> None:
    """Nothing but shapes and text: no script, no link, no handler, nothing from elsewhere."""
    for element in root.iter():
        assert element.tag.removeprefix(NS) in ALLOWED
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert "href" not in name
            assert "url(" not in value


@pytest.mark.parametrize("name", ALL)
def test_svg_is_well_formed_and_harmless(name):
    check_harmless(parsed(ALL[name]))


@given(pictures())
@settings(max_examples=60, deadline=None)
def test_svg_of_any_picture_is_well_formed_and_harmless(picture):
    check_harmless(parsed(picture))


def test_size_is_that_of_the_drawing():
    root, drawing = parsed(AGENT), layout(AGENT)

    assert (root.get("width"), root.get("height")) == (str(drawing.width), str(drawing.height))
    assert root.get("viewBox") == f"0 0 {drawing.width} {drawing.height}"


def test_every_edge_has_a_line_and_a_head_and_conditional_ones_are_dashed():
    root = parsed(AGENT)
    paths = classes(root, "path")

    assert paths.count("bide-head") == len(AGENT.edges)
    assert paths.count("bide-edge bide-dashed") == 2
    assert paths.count("bide-edge") == 2


def test_join_is_drawn_with_a_bar():
    assert classes(parsed(DIAMOND), "path").count("bide-join") == 2


def test_names_and_labels_are_read_as_text():
    assert set(texts(parsed(AGENT))) == {"START", "agent", "tools", "END", "continue", "end"}


def test_first_children_tell_what_it_is_for_those_who_do_not_see_it():
    root = parsed(PAUSED)

    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [NS + "title", NS + "desc"]
    assert root[0].text == "Refunds"
    description = root[1].text or ""
    assert "approve (paused), Refund 500 € to Ada?" in description
    assert "classify → approve, large (conditional)" in description


def test_description_goes_into_pictures_inside():
    description = parsed(NESTED)[1].text or ""

    assert "research team (paused) [Nodes: START; query; rank; END." in description
    assert "rank → query, too few (conditional)" in description


def test_picture_without_a_title_is_still_called_something():
    assert parsed(AGENT)[0].text == "Graph"


def test_mark_is_a_sign_and_a_word_and_not_only_a_colour():
    root = parsed(PAUSED)

    for mark, strokes in (("visited", 1), ("paused", 2), ("failed", 2), ("next", 2)):
        discs = classes(root, "circle").count(f"bide-disc-{mark}")
        assert discs == 1 + sum(node.mark == mark for node in PAUSED.nodes), "one at each node, and one in the legend"
        assert mark in texts(root), "the legend says what the sign means"
        alone = parsed(Picture((PictureNode("a", mark=mark),), ()))
        assert classes(alone, "path") == ["bide-sign"] * 2 * strokes


def test_tooltip_of_a_node_has_the_whole_label_however_long():
    label = "a very long label " * 50
    root = parsed(Picture((PictureNode("a", label),), ()))

    tooltips = [title.text for title in root.iter(f"{NS}title")]
    assert label.strip() in tooltips
    assert all(len(text) < 60 for text in texts(root))


def test_dark_pages_get_dark_colours_for_everything_that_has_a_light_one():
    style = next(parsed(PAUSED).iter(f"{NS}style")).text or ""
    light, dark = style.split("@media (prefers-color-scheme:dark)")

    coloured = re.findall(r"([^{}]+)\{[^{}]*#[0-9a-f]{6}", light)
    again = re.findall(r"([^{}]+)\{[^{}]*#[0-9a-f]{6}", dark[1:])
    assert coloured == again
    assert set(re.findall("#[0-9a-f]{6}", light)) != set(re.findall("#[0-9a-f]{6}", dark))


def luminance(colour: str) -> float:
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_on_its_ground_in_both_themes():
    from bide.picture.style import DARK, LIGHT

    for theme in (LIGHT, DARK):
        for look in theme.boxes.values():
            assert contrast(look.ink, look.fill) >= 4.5
        for ground in (theme.paper, *(frame.fill for frame in theme.frames)):
            assert contrast(theme.faint, ground) >= 4.5
            assert contrast(theme.edge, ground) >= 3
        for mark in ("visited", "paused", "failed", "next"):
            assert contrast(theme.boxes[mark].line, theme.paper) >= 2.5


def test_hostile_labels_are_shown_and_not_run():
    svg = HOSTILE.draw_svg()

    assert "<script" not in svg
    assert svg.count("</svg>") == 1
    shown = " ".join(texts(ET.fromstring(svg)))
    assert "</svg><script>" in shown
    assert "漢字" in shown


def test_characters_that_no_xml_can_hold_are_replaced():
    svg = Picture((PictureNode("a", HOSTILE_LABELS[6]),), ()).draw_svg()

    assert "nul � bell � escape � surrogate � last �" in svg
    svg.encode("utf-8")


def test_text_is_fitted_into_its_box_whatever_font_there_is():
    for element in parsed(AGENT).iter(f"{NS}text"):
        assert element.get("lengthAdjust") == "spacingAndGlyphs"
        assert 0 < float(element.get("textLength", "0")) < 200
