"""Our own font and our own rasteriser."""

from __future__ import annotations

import string
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bide.picture.canvas import Canvas, spans
from bide.picture.font import draw_text, strokes_of
from bide.picture.glyphs import GLYPHS
from bide.picture.outline import circle, dashes, flatten, rounded, stroke
from bide.picture.text import advance, columns_of, width_of, wrap

PRINTABLE = [chr(code) for code in range(33, 127)]


def area(polygons) -> float:
    return sum((end - start) * cover for _, start, end, cover in spans(polygons))


def written(text: str, size: float = 40) -> bytes:
    canvas = Canvas(140, 80, (255, 255, 255))
    draw_text(canvas, text, (10, 55), size, (0, 0, 0))
    return bytes(canvas.pixels)


BLANK = bytes(Canvas(140, 80, (255, 255, 255)).pixels)


# --- the font ---------------------------------------------------------------------------------------------------------


def test_every_printable_ascii_character_has_a_shape_of_its_own():
    shapes = {written(char) for char in PRINTABLE}

    assert len(shapes) == len(PRINTABLE) == 94
    assert BLANK not in shapes
    assert set(string.printable) - set(string.whitespace) <= set(GLYPHS)


@pytest.mark.parametrize("char", sorted(GLYPHS))
def test_glyph_stays_in_its_room(char):
    points = [point for path in strokes_of(char) for point in flatten(path)]

    assert all(-1 <= x <= advance(char) + 1 for x, _ in points)
    assert all(-18 <= y <= 78 for _, y in points)


def test_space_is_room_without_ink():
    assert written(" ") == BLANK
    assert advance(" ") > 0


def test_character_that_the_font_does_not_have_is_a_box_narrow_or_wide():
    assert written("ב") == written("ж") != BLANK
    assert written("漢") == written("🎉") != written("ב")
    assert advance("漢") > advance("ב")


@pytest.mark.parametrize("char", ["\u200d", "\ufe0f", "\u0301"])
def test_character_without_width_takes_no_room(char):
    assert advance(char) == 0
    assert written(char) == BLANK


@pytest.mark.parametrize(("char", "base"), [("é", "e"), ("Ü", "U"), ("ñ", "n"), ("ç", "c"), ("å", "a"), ("ž", "z")])
def test_accented_letter_is_its_letter_with_something_more(char, base):
    assert advance(char) == advance(base)
    with_accent, without = written(char), written(base)
    assert with_accent != without
    assert all(a <= b for a, b in zip(with_accent, without, strict=True)), "no ink of the letter is lost"


def test_text_is_as_wide_as_it_was_measured():
    canvas = Canvas(400, 60, (255, 255, 255))
    draw_text(canvas, "HHHH", (0, 45), 40, (0, 0, 0))

    inked = [x for x in range(400) if canvas.pixels[(30 * 400 + x) * 3] < 128]

    assert abs(max(inked) - width_of("HHHH", 40)) < 6


def test_bold_text_has_more_ink():
    plain, bold = Canvas(60, 60, (255, 255, 255)), Canvas(60, 60, (255, 255, 255))

    draw_text(plain, "B", (5, 45), 40, (0, 0, 0))
    draw_text(bold, "B", (5, 45), 40, (0, 0, 0), is_bold=True)

    assert sum(bold.pixels) < sum(plain.pixels)


# --- breaking lines ---------------------------------------------------------------------------------------------------


@given(st.text(max_size=300), st.integers(30, 200), st.integers(1, 4))
def test_broken_text_keeps_to_its_room(text, limit, lines):
    broken = wrap(text, limit, lines, 14)

    assert len(broken) <= lines
    assert all(width_of(line, 14) <= limit for line in broken)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=60))
def test_text_that_has_room_enough_loses_nothing(text):
    assert "".join(wrap(text, 150, 40, 14)) == text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ("one two", "three")),
        ("validate_customer", ("validate_", "customer")),
        ("path/to/file", ("path/to/", "file")),
        ("unbreakableword", ("unbreakabl", "eword")),
        ("a b c d e f g h i j k l m n", ("a b c d e", "f g h i...")),
        ("", ()),
        (" \n ", ()),
        ("漢字漢字漢字", ("漢字漢字漢", "字")),
    ],
)
def test_text_is_broken_between_words_and_parts_of_names(text, lines):
    assert wrap(text, 10, 2) == lines, "in columns of a terminal, where no letter is used that it may not have"
    assert all(columns_of(line) <= 10 for line in lines)


# --- the canvas -------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20)), min_size=3, max_size=3))
@example([(0.0, 0.0), (0.0, 5e-324), (1.0, 0.0)])
@example([(-5e-324, 0.0), (5e-324, 1.0), (0.0, 0.0)])
@example([(0.0, -5e-324), (1.0, 5e-324), (1.0, -5e-324)])
def test_covered_area_is_exact(triangle):
    (ax, ay), (bx, by), (cx, cy) = triangle
    expected = abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay)) / 2

    assert area([triangle]) == pytest.approx(expected, abs=0.15)


def test_pixel_that_is_half_covered_is_half_painted():
    canvas = Canvas(4, 3, (255, 255, 255))

    canvas.fill([[(1.5, 1.0), (3.0, 1.0), (3.0, 2.0), (1.5, 2.0)]], (0, 0, 0))

    row = [canvas.pixels[(4 + x) * 3] for x in range(4)]
    assert row[0] == row[3] == 255
    assert row[1] in (127, 128)
    assert row[2] == 0


def test_polygons_that_overlap_count_once():
    square = [(1.0, 1.0), (5.0, 1.0), (5.0, 5.0), (1.0, 5.0)]
    shifted = [(x + 2, y) for x, y in square]

    assert area([square, square]) == pytest.approx(16)
    assert area([square, shifted]) == pytest.approx(24)


def test_what_lies_outside_of_the_canvas_is_left_out():
    canvas = Canvas(3, 3, (255, 255, 255))

    canvas.fill([[(-5.0, -5.0), (8.0, -5.0), (8.0, 8.0), (-5.0, 8.0)]], (1, 2, 3))

    assert bytes(canvas.pixels) == bytes([1, 2, 3]) * 9


def test_shapes_have_the_area_that_geometry_gives_them():
    assert area([circle(20, 20, 10)]) == pytest.approx(314, rel=0.02)
    assert area([rounded(2, 2, 30, 20, 6)]) == pytest.approx(600 - (4 - 3.1416) * 36, rel=0.01)
    assert area(stroke([(2, 10), (32, 10)], 4, is_round=False)) == pytest.approx(120)
    assert area(stroke([(12, 10), (32, 10)], 4, is_round=True)) == pytest.approx(80 + 12.57, rel=0.02)
    corner = stroke([(5.0, 5.0), (25.0, 5.0), (25.0, 25.0)], 4, is_round=True)
    assert area(corner) == pytest.approx(160 - 4 + 1.25 * 12.57, rel=0.02)


def test_dashes_cover_their_share_of_the_line_also_around_corners():
    line = [(0.0, 0.0), (50.0, 0.0), (50.0, 41.0)]

    pieces = dashes(line, 6, 4)

    lengths = [sum(abs(b[0] - a[0]) + abs(b[1] - a[1]) for a, b in pairwise(piece)) for piece in pieces]
    assert lengths == pytest.approx([6.0] * 9 + [1.0])
