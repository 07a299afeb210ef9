"""The picture as a value: what it refuses, how its nodes are found, and what it looks like as plain data."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

import bide.picture
from bide.errors import GraphError
from bide.picture import Picture, PictureEdge, PictureNode
from tests.picture.pictures import AGENT, ALL, EMPTY, NESTED, pictures


def test_node_is_found_by_id_and_by_place():
    assert AGENT.nodes["tools"] is AGENT.nodes[2]
    assert AGENT.nodes[0].id == "__start__"
    assert [node.id for node in AGENT.nodes[1:3]] == ["agent", "tools"]
    assert AGENT.nodes.get("nobody") is None
    assert AGENT.nodes.ids == ("__start__", "agent", "tools", "__end__")


def test_nodes_can_be_read_like_langgraphs_dict():
    assert list(AGENT.nodes.keys()) == ["__start__", "agent", "tools", "__end__"]
    assert list(AGENT.nodes.values()) == list(AGENT.nodes)
    assert dict(AGENT.nodes) == dict(AGENT.nodes.items())
    assert dict(AGENT.nodes)["tools"] is AGENT.nodes["tools"]


def test_picture_knows_which_nodes_it_has():
    assert "agent" in AGENT.nodes
    assert AGENT.nodes[1] in AGENT.nodes
    assert "nobody" not in AGENT.nodes
    assert len(AGENT.nodes) == 4


def test_unknown_id_is_a_key_error_that_suggests_what_was_meant():
    with pytest.raises(KeyError, match=r"no node 'agnet'.*Did you mean 'agent'"):
        AGENT.nodes["agnet"]


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (PictureNode("ask"), "ask"),
        (PictureNode("ask", "Ask a person"), "Ask a person"),
        (PictureNode("__start__", kind="start"), "START"),
        (PictureNode("__end__", kind="end"), "END"),
        (PictureNode("__end__", "done", kind="end"), "done"),
    ],
)
def test_name_in_the_picture_is_the_label_or_else_the_id(node, name):
    assert node.name == name


def test_edge_to_a_node_that_is_not_there_is_refused():
    with pytest.raises(GraphError, match=r"'ask' → 'replay'.*no node 'replay'.*Did you mean 'reply'.*PictureNode"):
        Picture((PictureNode("ask"), PictureNode("reply")), (PictureEdge("ask", "replay"),))


def test_two_nodes_with_one_id_are_refused():
    with pytest.raises(GraphError, match=r"Two nodes.*'ask'"):
        Picture((PictureNode("ask"), PictureNode("ask")), ())


@pytest.mark.parametrize("wrong", [{"kind": "nod"}, {"mark": "pause"}])
def test_unknown_kind_or_mark_is_refused_with_the_known_ones(wrong):
    with pytest.raises(GraphError, match=r"'ask'.*Did you mean.*Give one of"):
        PictureNode("ask", **wrong)


def test_picture_takes_any_sequence_and_compares_by_value():
    again = Picture(list(AGENT.nodes), list(AGENT.edges))

    assert again == AGENT
    assert hash(again) == hash(AGENT)
    assert isinstance(again.edges, tuple)


def test_picture_cannot_be_changed():
    with pytest.raises(AttributeError):
        AGENT.title = "other"


def test_plain_values_hold_everything_and_go_through_json():
    plain = json.loads(json.dumps(NESTED.to_dict()))

    assert [node["id"] for node in plain["nodes"]] == list(NESTED.nodes.ids)
    team = plain["nodes"][2]
    assert (team["label"], team["kind"], team["mark"]) == ("research team", "subgraph", "paused")
    assert [node["id"] for node in team["inside"]["nodes"]] == ["__start__", "query", "rank", "__end__"]
    assert plain["edges"][1] == {
        "source": "triage",
        "target": "team",
        "label": "research",
        "is_conditional": True,
        "is_join": False,
    }


def test_notebook_shows_the_svg():
    assert AGENT._repr_svg_() == AGENT.draw_svg()


def test_ascii_is_printed(capsys):
    AGENT.print_ascii()

    assert capsys.readouterr().out == AGENT.draw_ascii() + "\n"


def test_names_that_langgraph_users_know_draw_the_same_png(tmp_path):
    file = tmp_path / "agent.png"

    png = AGENT.draw_mermaid_png(output_file_path=str(file))

    assert png == AGENT.draw_png() == file.read_bytes()


def test_options_of_langgraph_change_nothing():
    assert AGENT.draw_mermaid(curve_style="linear", wrap_label_n_words=9) == AGENT.draw_mermaid()
    assert AGENT.draw_mermaid_png(draw_method="api", background_color="white") == AGENT.draw_png()


@pytest.mark.parametrize("option", ["output_file_pth", "max_retrys"])
def test_option_that_nobody_knows_is_refused(option):
    with pytest.raises(GraphError, match=rf"no option '{option}'\. Did you mean"):
        AGENT.draw_mermaid_png(**{option: 1})


@pytest.mark.parametrize("way", ["draw_mermaid", "draw_svg", "draw_png", "draw_ascii"])
@pytest.mark.parametrize("name", ALL)
def test_same_picture_is_drawn_the_same_to_the_byte(name, way):
    draw = getattr(ALL[name], way)

    assert draw() == draw()


@given(pictures(most=5))
@settings(max_examples=25, deadline=None)
def test_any_picture_can_be_drawn_in_every_way(picture):
    assert picture.draw_mermaid().endswith("\n")
    assert picture.draw_svg().endswith("</svg>")
    assert picture.draw_ascii()
    assert picture.draw_png(0.5).startswith(b"\x89PNG")


def test_picture_without_nodes_says_so():
    assert EMPTY.draw_ascii() == "(empty graph)"
    assert "empty graph" in EMPTY.draw_svg()
    assert EMPTY.draw_mermaid() == "graph TD\n"


def test_public_names():
    assert bide.picture.__all__ == ["Nodes", "Picture", "PictureEdge", "PictureNode"]


def test_pictures_need_the_standard_library_and_our_errors_and_nothing_else():
    imported = set()
    for file in Path(bide.picture.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}

    ours = {name for name in imported if name.startswith("bide")}
    assert {name for name in ours if not name.startswith("bide.picture")} == {"bide.errors"}
    assert {name.split(".")[0] for name in imported - ours} <= sys.stdlib_module_names
