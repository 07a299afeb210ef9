"""Which database is meant: the one beside the application, never a new one for somebody who only looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

RELATIVE = "sqlite:///near.db"


@pytest.fixture
def elsewhere(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another folder than the shop's, where somebody stands."""
    folder = terminal.folder / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    terminal.environment["SHOP_STORE"] = RELATIVE
    terminal.environment["BIDE_APP"] = "../shop.py:app"
    return folder


@pytest.mark.parametrize("command", [["waits"], ["threads"], ["doctor"], ["show", "c1"], ["migrate", "--check"]])
def test_looking_makes_no_database(terminal: Terminal, elsewhere: Path, command: list[str]):
    code, said = terminal.fail(*command)

    assert code == 6
    assert f"There is no database '{terminal.folder}/near.db' yet, which ../shop.py:app names" in said
    assert "→ bide start GRAPH" in said
    assert not list(elsewhere.iterdir())
    assert not (terminal.folder / "near.db").exists()


def test_relative_database_of_a_file_is_beside_it_wherever_one_stands(terminal: Terminal, elsewhere: Path):
    terminal.start("chats", "c1")

    assert (terminal.folder / "near.db").exists()
    assert not list(elsewhere.iterdir())
    assert [one["thread_id"] for one in terminal.ask("threads")["threads"]] == ["c1"]
    assert Path.cwd() == elsewhere


def test_picture_of_a_graph_needs_no_database(terminal: Terminal, elsewhere: Path):
    assert "approve" in terminal.see("graph", "refunds")
    assert not (terminal.folder / "near.db").exists()


def test_migrate_makes_the_database_of_an_application(terminal: Terminal, elsewhere: Path):
    terminal.see("migrate")

    assert terminal.see("waits") == "Nobody waits.\n"


@pytest.mark.parametrize("other", ["sqlite:///other.db", "postgresql://bide:secret@nowhere/shop"])
def test_store_beside_the_one_of_the_application_is_refused(terminal: Terminal, other: str):
    code, said = terminal.fail("waits", "--store", other)

    assert code == 2
    assert f"has a store of its own, '{terminal.folder}/shop.db', and --store (or BIDE_STORE) names another" in said
    assert "secret" not in said
    assert not (terminal.folder / "other.db").exists()


def test_store_that_is_the_one_of_the_application_may_be_said(terminal: Terminal):
    assert terminal.see("waits", "--store", "sqlite:///shop.db") == "Nobody waits.\n"
