"""The Mermaid text: what it says, and that no label can break out of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from bide.picture import Picture, PictureNode
from tests.picture.pictures import AGENT, DIAMOND, HOSTILE_LABELS, NESTED, PAUSED, edge, pictures

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
QUOTED = r'"[^"`\[\]{}|;%]*(?:#\d+;[^"`\[\]{}|;%]*)*"'
STATEMENT = re.compile(
    rf"graph TD|end|direction TB|subgraph {NAME}\[{QUOTED}\]"
    rf"|{NAME}(?:\({QUOTED}\)|\(\[{QUOTED}\]\)|\[\[{QUOTED}\]\])"
    rf"|{NAME} (?:-->|-\.->|==>)(?:\|{QUOTED}\|)? {NAME}"
    rf"|classDef {NAME} [\w:#,.-]+|class {NAME}(?:,{NAME})* {NAME}|style {NAME} [\w:#,.-]+"
)


def check_grammar(text: str) -> None:
    """Every line is a statement that Mermaid knows, and every subgraph ends."""
    lines = text.splitlines()
    if lines[0] == "---":
        assert lines[1].startswith('title: "')
        assert lines[2] == "---"
        lines = lines[3:]
    assert lines[0] == "graph TD"
    for line in lines:
        assert STATEMENT.fullmatch(line.strip()), line
    words = [line.split()[0] for line in lines]
    assert words.count("subgraph") == words.count("end") == words.count("direction")


def test_agent_in_mermaid():
    assert AGENT.draw_mermaid(with_styles=False).replace("\t", "    ") == (
        "graph TD\n"
        '    __start__(["START"])\n'
        '    agent("agent")\n'
        '    tools("tools")\n'
        '    __end__(["END"])\n'
        "    __start__ --> agent\n"
        '    agent -.->|"continue"| tools\n'
        '    agent -.->|"end"| __end__\n'
        "    tools --> agent\n"
    )


def test_picture_inside_a_node_is_a_subgraph_block_with_names_of_its_own():
    text = NESTED.draw_mermaid(with_styles=False)

    assert (
        'subgraph team["‖ research team"]\n'
        "\t\tdirection TB\n"
        '\t\tteam____start__(["START"])\n'
        '\t\tteam__query("query")\n'
        '\t\tteam__rank("rank")\n'
        '\t\tteam____end__(["END"])\n'
        "\t\tteam____start__ --> team__query\n"
    ) in text
    assert "\t\t\touter__deep__plan --> outer__deep__search_web\n" in text
    assert '\tbilling[["billing"]]\n' in text
    assert "\tteam --> outer\n" in text


def test_join_is_a_thick_arrow_and_the_title_stands_above():
    text = DIAMOND.draw_mermaid()

    assert text.startswith('---\ntitle: "A diamond"\n---\ngraph TD\n')
    assert "search_web ==> merge" in text


def test_marks_are_signs_and_classes():
    text = PAUSED.draw_mermaid()

    assert 'approve("‖ approve<br/>Refund 500 € to Ada?")' in text
    assert 'notify("✗ notify")' in text
    assert 'refund("▶ refund")' in text
    assert 'classify("✓ classify")' in text
    assert "class approve paused" in text
    assert re.search(r"classDef paused fill:#\w{6},stroke:#\w{6},color:#\w{6}", text)


def test_text_without_styles_has_none():
    assert "classDef" not in PAUSED.draw_mermaid(with_styles=False)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ('say "hi"', "say #34;hi#34;"),
        ("a < b & c > d", "a #60; b #38; c #62; d"),
        ("#quot; #35;", "#35;quot#59; #35;35#59;"),
        ("one\ntwo\r\n\r\nthree", "one<br/>two<br/>three"),
        ("`code`", "#96;code#96;"),
        ("%%{init: {}}%%", "#37;#37;#123;init: #123;#125;#125;#37;#37;"),
        ("1. first", "1#46; first"),
        ("12) twelfth", "12#41; twelfth"),
        ("- item", "#45; item"),
        ("fa:fa-car", "fa#58;fa-car"),
        ("$$x$$", "#36;#36;x#36;#36;"),
        ("search_web, then 2.5 - 1", "search_web, then 2.5 - 1"),
        ("漢字 🎉", "漢字 🎉"),
        ("nul \x00", "nul �"),
    ],
)
def test_label_is_escaped_where_it_could_mean_more(label, shown):
    picture = Picture((PictureNode("a", label), PictureNode("b")), (edge("a", "b", label),))

    text = picture.draw_mermaid(with_styles=False)

    assert f'\ta("{shown}")\n' in text
    assert f'\ta -->|"{shown}"| b\n' in text


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("ask", "ask"),
        ("__start__", "__start__"),
        ("call-llm", "call_llm"),
        ("a b.c", "a_b_c"),
        ("end", "node_end"),
        ("Graph", "node_Graph"),
        ("1st", "node_1st"),
        ("漢字", "node"),
        ("", "node"),
    ],
)
def test_id_is_kept_as_far_as_mermaid_allows(id, name):
    text = Picture((PictureNode(id, "x"),), ()).draw_mermaid(with_styles=False)

    assert text == f'graph TD\n\t{name}("x")\n'


def test_ids_that_would_become_one_name_stay_apart():
    ids = ["a-b", "a b", "a_b", "A_B", "漢", "字"]
    text = Picture(tuple(map(PictureNode, ids)), ()).draw_mermaid(with_styles=False)

    names = re.findall(r"\t(\w+)\(", text)
    assert len({name.lower() for name in names}) == len(ids)


@given(pictures())
@settings(max_examples=80, deadline=None)
def test_text_of_any_picture_has_mermaid_grammar(picture):
    check_grammar(picture.draw_mermaid())


@pytest.mark.parametrize("label", HOSTILE_LABELS)
def test_hostile_title_stays_in_its_line(label):
    check_grammar(Picture((PictureNode("a"),), (), title=label).draw_mermaid())
