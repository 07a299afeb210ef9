"""Where graphs come from, and whose mistake it is when they do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bide import CompiledGraph
from bide.cli.exits import CliError, Exit
from bide.cli.loading import load
from bide.runtime import Bide

GRAPH = """
from typing import TypedDict
from bide import END, START, MemorySaver, StateGraph
from bide.runtime import Bide

class State(TypedDict):
    x: int

def ask(state):
    return {}

def make(name):
    return StateGraph(State).add_node(ask).add_edge(START, "ask").add_edge("ask", END)

"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a file that nobody has imported yet, beside which the terminal is."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules), list(sys.path)

    def write(name: str, code: str) -> str:
        (tmp_path / name).write_text(GRAPH + code, encoding="utf-8")
        return name

    yield write
    for name in set(sys.modules) - before[0]:
        if not name.startswith("bide"):
            del sys.modules[name]
    sys.path[:] = before[1]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("found = make('a').compile(name='one')", ["one"]),
        ("found = make('a')", ["found"]),
        ("found = [make('a').compile(name='one'), make('b').compile(name='two')]", ["one", "two"]),
        ("found = {'one': make('a'), 'two': make('b')}", ["one", "two"]),
        ("class shop:\n    found = make('a').compile(name='one')", ["one"]),
    ],
)
def test_graph_builder_list_and_dict_are_graphs(write, code: str, names: list[str]):
    place = write("many.py", code)

    loaded = load(f"{place}:{'shop.found' if 'class' in code else 'found'}")

    if names == ["found"]:
        assert isinstance(loaded.graphs["found"], CompiledGraph)
    assert list(loaded.graphs) == names


def test_application_is_taken_as_it_is(write):
    place = write("shop_app.py", "app = Bide(':memory:', [make('a').compile(name='one')])")

    loaded = load(f"{place}:app")

    assert isinstance(loaded.app, Bide)
    loaded.app.close()


def test_file_alone_means_its_only_application(write):
    place = write("shop_app.py", "graph = make('a').compile(name='one')\napp = Bide(':memory:', [graph])")

    loaded = load(place)

    assert loaded.app is not None
    loaded.app.close()


def test_module_is_found_from_the_folder_where_one_stands(write):
    write("shop_module.py", "graph = make('a').compile(name='one')")

    assert list(load("shop_module:graph").graphs) == ["one"]


def test_store_of_the_graphs_is_used(write):
    place = write("kept.py", "graph = make('a').compile(name='one', checkpointer=MemorySaver())")

    loaded = load(f"{place}:graph")

    assert loaded.store is loaded.graphs["one"].store
    assert loaded.store is not None
    loaded.store.close()


def test_what_a_file_prints_does_not_mix_with_the_result(write, capsys: pytest.CaptureFixture[str]):
    place = write("loud.py", "print('hello')\ngraph = make('a').compile(name='one')")

    load(f"{place}:graph")

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\ngraph = mak()\n", ["broken.py, line 16:", "graph = mak()", "NameError: name 'mak' is not defined"]),
        ("def f(:\n", ["broken.py, line 15:", "def f(:", "SyntaxError: invalid syntax"]),
        ("import nowhere_at_all\n", ["line 15:", "No module named 'nowhere_at_all'", "not installed here"]),
        ("graph = StateGraph(State).compile()\n", ["broken.py, line 15:", "GraphError"]),
        ("raise SystemExit(3)\n", ["sys.exit()", "ended the program while it was being loaded"]),
    ],
)
def test_mistake_in_a_file_is_told_with_its_own_line(write, code: str, said: list[str]):
    place = write("broken.py", code)

    with pytest.raises(CliError) as caught:
        load(f"{place}:graph")

    assert all(part in str(caught.value) for part in said), str(caught.value)
    assert "loading.py" not in str(caught.value)
    assert caught.value.code == Exit.FAILED


def test_store_that_cannot_be_opened_has_its_own_exit_code(write):
    place = write("lost.py", "app = Bide('sqlite:////nonexistent/shop.db')")

    with pytest.raises(CliError, match=r"lost.py, line 15") as caught:
        load(f"{place}:app")

    assert caught.value.code == Exit.UNAVAILABLE


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nothing.py:app", "There is no file 'nothing.py'"),
        ("fin.py:app", "Did you mean 'fine.py'?"),
        ("bare.py", "Keep one in a variable there, such as app = Bide(store, [graph])"),
        ("nothing_here:app", "There is no module 'nothing_here'"),
        ("fine.py:grap", "Did you mean 'graph'? Usable there: graph, builder"),
        ("fine.py:number", "fine.py:number is int"),
        ("fine.py:empty", "holds no graphs"),
        ("fine.py", "holds several. Say which: fine.py:graph, fine.py:builder"),
        (":app", "neither a file nor a module"),
    ],
)
def test_place_that_leads_nowhere_is_a_mistake_of_the_caller(write, place: str, said: str):
    write("fine.py", "graph = make('a').compile(name='one')\nbuilder = make('b')\nnumber = 5\nempty = []\n")
    write("bare.py", "")

    with pytest.raises(CliError) as caught:
        load(place)

    assert said in str(caught.value)
    assert "--app" not in str(caught.value), "bide serve is told places without it"
    assert caught.value.code == Exit.USAGE


def test_function_without_arguments_is_called_for_what_it_makes(write):
    place = write("makes.py", "def open_app(name='one'):\n    return Bide(':memory:', [make('a').compile(name=name)])")

    loaded = load(f"{place}:open_app")

    assert isinstance(loaded.app, Bide)
    assert [one.name for one in loaded.app.graphs] == ["one"]
    loaded.app.close()


@pytest.mark.parametrize(
    ("code", "said", "exit_code"),
    [
        ("def open_app(url): ...", "it wants url", Exit.USAGE),
        ("async def open_app(): ...", "it is async", Exit.USAGE),
        ("def open_app(): return 5", "makes.py:open_app is int", Exit.USAGE),
        ("def open_app():\n    return nothing", "makes.py, line 16", Exit.FAILED),
    ],
)
def test_function_that_makes_no_application_is_told(write, code: str, said: str, exit_code: Exit):
    place = write("makes.py", code)

    with pytest.raises(CliError) as caught:
        load(f"{place}:open_app")

    assert said in str(caught.value)
    assert caught.value.code == exit_code
