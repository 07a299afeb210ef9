"""The picture in plain text, as a terminal shows it."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given, settings

from bide.picture import Picture, PictureNode
from bide.picture.text import columns_of
from tests.picture.pictures import AGENT, ALL, DIAMOND, HOSTILE, LINEAR, LOOSE, NESTED, PAUSED, choice, edge, pictures


def drawn(text: str) -> str:
    return dedent(text).strip("\n")


def test_line_of_nodes():
    assert LINEAR.draw_ascii() == drawn("""
         .-------.
         ( START )
         '-------'
             |
             v
         +-------+
         | fetch |
         +-------+
             |
             v
        +---------+
        | publish |
        +---------+
             |
             v
          .-----.
          ( END )
          '-----'
    """)


def test_fork_and_join():
    assert DIAMOND.draw_ascii() == drawn("""
        A diamond

                    .-------.
                    ( START )
                    '-------'
                        |
                        v
                    +-------+
                    | plan  |
                    +-------+
                        |
               +--------+--------+
               v                 v
        +-------------+   +-------------+
        | search_web  |   | search_docs |
        +-------------+   +-------------+
               |                 |
               +========+========+
                        v
                    +-------+
                    | merge |
                    +-------+
                        |
                        v
                     .-----.
                     ( END )
                     '-----'
    """)


def test_choice_is_dotted_and_the_way_back_goes_around():
    assert AGENT.draw_ascii() == drawn("""
                  .-------.
                  ( START )
                  '-------'
                      |
                      v
                  +-------+
        +-------->| agent |
        |         +-------+
        |             :
        |       ............
        |   continue      end
        |       v          v
        |   +-------+   .-----.
        +---| tools |   ( END )
            +-------+   '-----'
    """)


def test_loop_and_parts_that_nothing_joins():
    assert LOOSE.draw_ascii() == drawn("""
        +-------+     +-----+                  +-------+
        | only  |     |     |--+               | four  |
        +-------+     |     |  | again         +-------+
                      | two |<-+
                      |     |
                      |     |<------------+
                      +-----+             |
                         |                |
                         v                |
                     +-------+            |
                     | three |------------+
                     +-------+
    """)


def test_mark_is_a_word_and_the_note_stands_below():
    text = PAUSED.draw_ascii()

    assert re.search(r"approve .*\n.*\(paused\).*\n.*Refund 500 € to Ada\?", text)
    assert text.count("(visited)") == 2


def test_many_ways_there_and_back_are_lines_with_two_heads():
    text = ALL["supervisor"].draw_ascii()

    assert text.count("^") == 5
    assert "^ ^ ^ ^ ^ :" in text


def test_picture_inside_a_node_stands_in_its_frame():
    lines = NESTED.draw_ascii().splitlines()
    top = next(index for index, line in enumerate(lines) if "research team" in line) - 1
    left, right = lines[top].index("+="), lines[top].index("=+") + 1
    bottom = next(index for index in range(top + 1, len(lines)) if lines[index][left : left + 2] == "+=")

    inside = "\n".join(line[left + 1 : right] for line in lines[top + 1 : bottom])
    assert all(line[left] == line[right] == "|" for line in lines[top + 1 : bottom])
    assert "query" in inside
    assert "too few" in inside


@pytest.mark.parametrize("name", [name for name in ALL if name != "hostile"])
def test_every_name_and_every_label_can_be_read(name):
    text = ALL[name].draw_ascii()

    def check_shown(picture: Picture) -> None:
        for node in picture.nodes:
            assert node.name in text
            if node.inside is not None:
                check_shown(node.inside)
        for labelled in picture.edges:
            assert labelled.label in text

    check_shown(ALL[name])


def test_every_edge_has_a_head():
    picture = Picture(
        tuple(map(PictureNode, ("a", "b", "c", "d"))),
        (edge("a", "b"), choice("a", "c", "x"), edge("b", "d"), edge("c", "d"), edge("d", "a"), edge("d", "d")),
    )

    text = picture.draw_ascii()

    assert text.count("v") == 3, "two edges meet in one head"
    assert text.count("<") + text.count(">") == 2


def test_lines_are_drawn_with_ascii_alone():
    assert AGENT.draw_ascii().isascii()
    assert DIAMOND.draw_ascii().isascii()
    assert Picture((PictureNode("a", "long " * 100),), ()).draw_ascii().isascii()


def test_hostile_labels_are_kept_in_their_boxes():
    text = HOSTILE.draw_ascii()

    assert "</svg><script>alert(1)</" in text
    assert "\x1b" not in text, "no label can command the terminal"
    assert "\x00" not in text


def test_wide_characters_do_not_break_the_frame():
    lines = Picture((PictureNode("a", "漢字 🎉 x"),), ()).draw_ascii().splitlines()

    assert len({columns_of(line) for line in lines}) == 1


@given(pictures())
@settings(max_examples=60, deadline=None)
def test_text_of_any_picture_is_printable(picture):
    text = picture.draw_ascii()

    assert text
    assert all(char == "\n" or char.isprintable() or ord(char) > 127 for char in text)
    text.encode("utf-8")


def check_wire(lines: list[str], x: int, y: int, end: str) -> None:
    while lines[y][x] in ":|":
        y += 1
    assert lines[y][x] == end


def test_straight_edge_is_one_unbroken_line_to_its_head():
    lines = LINEAR.draw_ascii().splitlines()

    check_wire(lines, lines[3].index("|"), 3, "v")
