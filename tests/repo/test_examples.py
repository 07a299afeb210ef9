"""Every example prints what its docstring shows, and what a newcomer mistypes while trying it out is told."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple, TypedDict

import pytest

from bide import START, BideError, MemorySaver, StateGraph, Store, errors, interrupt
from tests.repo.source_files import ROOT
from tests.repo.test_docs_run import blocks_of, run_page

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


class Command(NamedTuple):
    """One command of a shown session, and what it prints."""

    words: list[str]
    output: str


def session_of(path: Path) -> list[Command]:
    """Read the `$ python examples/…` lines of an example's docstring, each with the lines that follow it."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    parts = re.split(r"^ *\$ ", docstring, flags=re.MULTILINE)[1:]
    return [Command(shlex.split(line), textwrap.dedent(rest).strip()) for line, _, rest in map(split_line, parts)]


def split_line(text: str) -> tuple[str, str, str]:
    """Split a text after its first line."""
    return text.partition("\n")


@pytest.mark.requirement("Z0-41")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_what_it_shows(path, tmp_path):
    session = session_of(path)

    printed = [run(command, tmp_path) for command in session]

    assert session
    assert printed == [command.output for command in session]


def run(command: Command, folder: Path) -> str:
    """Run one command of a session as a reader would type it; return what it prints, errors too."""
    python, script, *words = command.words
    assert python == "python"
    whole = [sys.executable, "-W", "error", str(ROOT / script), *words]
    done = subprocess.run(whole, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return (done.stdout + done.stderr).strip()


def test_there_are_examples_and_each_session_names_its_own_file():
    named = {path: {command.words[1] for command in session_of(path)} for path in EXAMPLES}

    assert len(EXAMPLES) >= 3
    assert named == {path: {f"examples/{path.name}"} for path in EXAMPLES}


def test_session_is_read_with_arguments_and_output(tmp_path):
    script = tmp_path / "x.py"
    script.write_text(
        '"""Title.\n\n    $ python examples/x.py a b\n    one\n    two\n    $ python examples/x.py\n"""\n'
    )

    assert session_of(script) == [
        Command(["python", "examples/x.py", "a", "b"], "one\ntwo"),
        Command(["python", "examples/x.py"], ""),
    ]


def test_readme_shows_what_its_example_prints(tmp_path):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = [block.text for block in blocks_of(page) if block.info == "text"]

    done = run_page(page, tmp_path, "README.md")

    assert without_ids(done.stdout).strip() == without_ids(shown).strip()


def without_ids(text: str) -> str:
    """A text in which every question's id reads the same: each thread has its own."""
    return re.sub(r"id='[^']*'", "id='…'", text)


# ── What a newcomer mistypes ───────────────────────────────────────────────────────────────────────────────────────


class Payment(TypedDict, total=False):
    approved: bool
    note: str


def approve(payment: Payment) -> Payment:
    return {"approved": bool(interrupt("Pay 10000 EUR?"))}


def payments() -> StateGraph:
    """A graph that must not go on before somebody has answered."""
    return StateGraph(Payment).add_node(approve).add_edge(START, "approve")


THREAD = {"configurable": {"thread_id": "payment-1"}}


def test_misspelt_policy_at_compile_is_refused():
    with pytest.raises(BideError, match="eror"):
        payments().compile(checkpointer=MemorySaver(), on_paused="eror")


def test_misspelt_policy_of_a_call_is_refused_and_answers_nothing():
    graph = payments().compile(checkpointer=MemorySaver())
    graph.invoke({}, THREAD)

    with pytest.raises(BideError, match="eror"):
        graph.invoke({"note": "hello?"}, THREAD, on_paused="eror")

    assert len(graph.get_state(THREAD).interrupts) == 1


def test_misspelt_durability_is_refused():
    graph = payments().compile(checkpointer=MemorySaver())

    with pytest.raises(BideError, match="fast"):
        graph.invoke({}, THREAD, durability="fast")


def test_misspelt_option_is_refused():
    graph = payments().compile(checkpointer=MemorySaver())

    with pytest.raises((TypeError, BideError), match="interupt_before"):
        graph.invoke({}, THREAD, interupt_before=["approve"])


def test_thread_id_in_the_wrong_place_is_refused_instead_of_starting_a_nameless_thread():
    graph = payments().compile(checkpointer=MemorySaver())

    with pytest.raises(BideError, match="configurable"):
        graph.invoke({}, {"thread_id": "payment-1"})


def test_store_without_a_path_is_refused_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(errors.StoreUnavailableError):
        Store.open("sqlite:///")

    assert list(tmp_path.iterdir()) == []
