"""docs/langgraph.md tells the truth about every public name of LangGraph: what is said to be here is, the rest is not.

A row names things of LangGraph, says what became of them, and why:

    | `add_messages`, `StateGraph.add_node`, `.add_edge`, `StateGraph.compile(store=, cache=)` | same | … |

A name that begins with a dot belongs to the class that was named last.

`same` and `different` mean that the name is in `bide`; `→ bide.errors.X` that it is there instead; `not yet` and `no`
that it is not. LangGraph itself is not imported: its names were listed by a program, and their number is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import isfunction, ismethod, signature
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest

import bide
from bide import START, StateGraph
from bide.types import TaskSnapshot
from tests.repo.source_files import ROOT

ROW = re.compile(r"^\| (?P<names>`[^|]+`) \| (?P<status>same|different|not yet|no|→ `[\w.]+`)(?: \|(?P<why>[^|]*))?\|$")
NAME = re.compile(r"`(?P<owner>\w+)?(?P<member>\.\w+)?(?:\((?P<arguments>[\w=, ]+)\))?`")
GRAPH = StateGraph({"x": int}).add_node("node", lambda state: None).add_edge(START, "node")
OURS = {"CompiledStateGraph": GRAPH.compile(), "BaseCheckpointSaver": bide.Store, "PregelTask": TaskSnapshot}
"""What has another name here, and whose members are spoken of. A graph is an object: it gets most when it is made."""
NAMES_OF_LANGGRAPH = 502
MODULES = {"errors", "types"}
MISSING = object()


class Row(NamedTuple):
    """One name of LangGraph, an argument of it perhaps, and what is said of it."""

    name: str
    argument: str | None
    status: str


def rows_of(page: str) -> list[Row]:
    """The rows of all tables of names, one for each name and each argument."""
    matches = [match for line in page.splitlines() if (match := ROW.match(line))]
    return [Row(*named, match["status"]) for match in matches for named in names_in(match["names"])]


def names_in(cell: str) -> Iterator[tuple[str, str | None]]:
    """The names in a cell, each with one argument or none."""
    owner = ""
    for match in NAME.finditer(cell):
        owner = match["owner"] or owner
        arguments = [argument.strip(" =") for argument in (match["arguments"] or "").split(",")]
        yield from ((owner + (match["member"] or ""), argument or None) for argument in arguments)


def thing_at(path: str) -> Any:
    """What a dotted path leads to, from `bide` on; MISSING, if nowhere."""
    first, *rest = path.removeprefix("bide.").split(".")
    if first in MODULES:
        thing: Any = import_module(f"bide.{first}")
    elif first in OURS and rest:
        thing = OURS[first]
    else:
        thing = getattr(bide, first) if first in bide.__all__ else vars(bide).get(first, MISSING)
    for name in rest:
        thing = getattr(thing, name, MISSING)
    return thing


def is_here(name: str, argument: str | None) -> bool:
    """Whether `bide` has this name, and the function under it this argument."""
    thing = thing_at(name)
    if thing is MISSING or argument is None:
        return thing is not MISSING
    return argument in signature(thing).parameters or argument in options_of(thing)


def options_of(function: Any) -> dict[str, Any]:
    """The options that a function takes as `**options: Unpack[…]`."""
    if not isfunction(function) and not ismethod(function):
        return {}
    unpacked = get_type_hints(function).get("options")
    return get_args(unpacked)[0].__annotations__ if get_args(unpacked) else {}


def lie_of(row: Row) -> str:
    """Say what is wrong with a row; nothing if it is right."""
    shown = row.name if row.argument is None else f"{row.name}({row.argument}=)"
    here = is_here(row.name, row.argument)
    if row.status.startswith("→"):
        target = row.status.split("`")[1]
        return "" if is_here(target, None) else f"{shown} is said to be {target}, which is not there"
    if row.status in ("same", "different"):
        return "" if here else f"{shown} is said to be here ({row.status}), and is not"
    return f"{shown} is said not to be here ({row.status}), and is" if here else ""


def names_page() -> str:
    return (ROOT / "docs" / "langgraph.md").read_text(encoding="utf-8")


def test_page_says_the_truth_about_every_name():
    found = [lie for row in rows_of(names_page()) if (lie := lie_of(row))]

    assert not found, "\n".join(found)


def test_no_name_is_left_out_or_said_twice():
    names = [row[:2] for row in rows_of(names_page())]

    assert len(names) == len(set(names)) == NAMES_OF_LANGGRAPH


def test_no_line_of_the_tables_is_overlooked():
    tables = names_page().partition("## Every name")[2]
    lines = [line for line in tables.splitlines() if line.startswith("| `")]

    assert [line for line in lines if not ROW.match(line)] == []


@pytest.mark.parametrize(
    ("row", "lie"),
    [
        ("| `Teapot` | same | |", "Teapot is said to be here (same), and is not"),
        ("| `StateGraph.pour` | different | hot |", "StateGraph.pour is said to be here (different), and is not"),
        ("| `StateGraph.add_node(tea=)` | same | |", "StateGraph.add_node(tea=) is said to be here (same), and is not"),
        ("| `StateGraph` | not yet | |", "StateGraph is said not to be here (not yet), and is"),
        (
            "| `CompiledStateGraph.invoke(durability=)` | no | |",
            "CompiledStateGraph.invoke(durability=) is said not to be here (no), and is",
        ),
        ("| `Cup` | → `bide.types.Cup` | |", "Cup is said to be bide.types.Cup, which is not there"),
    ],
)
def test_lie_is_found(row, lie):
    assert [lie_of(each) for each in rows_of(row)] == [lie]


@pytest.mark.parametrize(
    "row",
    [
        "| `StateGraph`, `CompiledStateGraph.invoke(durability=, context=)`, `.name`, `Runtime.context` | same | |",
        "| `StateGraph.compile(checkpointer=)` | different | a URL will do |",
        "| `Teapot`, `CompiledStateGraph.invoke(tea=)` | no | no tea |",
        "| `EmptyInputError` | → `bide.errors.EmptyInputError` | |",
    ],
)
def test_truth_is_left_alone(row):
    assert rows_of(row)
    assert not any(map(lie_of, rows_of(row)))


def test_names_of_a_cell_are_read_with_their_class_and_one_by_one():
    cell = "`Cup`, `Pot.pour`, `.fill(tea=, water=)`, `.lid`"

    assert list(names_in(cell)) == [
        ("Cup", None),
        ("Pot.pour", None),
        ("Pot.fill", "tea"),
        ("Pot.fill", "water"),
        ("Pot.lid", None),
    ]
