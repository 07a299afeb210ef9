"""Looking after a store at the terminal: its schema, what may go, copies, threads in and out."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal


def test_migrate_makes_a_database_once(terminal: Terminal):
    url = f"sqlite:///{terminal.folder}/new.db"

    code, _ = terminal.fail("migrate", "--check", "--store", url, BIDE_APP=None)
    made = terminal.ask("migrate", "--store", url, BIDE_APP=None)
    again = terminal.see("migrate", "--store", url, BIDE_APP=None)
    check = terminal.ask("migrate", "--check", "--store", url, BIDE_APP=None)

    assert code == 6
    assert (made["before"], made["is_current"]) == (None, True)
    assert "which is current" in " ".join(again.split())
    assert (check["before"], check["is_current"]) == (made["now"], True)


def test_migrate_leaves_the_database_of_somebody_else_alone(terminal: Terminal):
    (terminal.folder / "notes.txt").write_text("not a database, and long enough to be read as one" * 50)

    code, said = terminal.fail("migrate", "--store", f"sqlite:///{terminal.folder}/notes.txt", BIDE_APP=None)

    assert code == 6
    assert "→ bide doctor" in said


def test_looking_into_the_wrong_folder_makes_no_database(terminal: Terminal):
    code, said = terminal.fail("threads", BIDE_APP=None)

    assert code == 6
    assert "There is no database 'bide.db'" in said
    assert not (terminal.folder / "bide.db").exists()


def test_prune_lets_old_checkpoints_go(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 5})
    terminal.see("answer", "r1", "approve")
    terminal.work()

    pruned = terminal.ask("prune", "--keep-last", "1", "--yes")["pruned"]

    assert pruned["checkpoints"] > 0
    assert pruned["failed"] == []
    assert len(terminal.ask("history", "r1")["checkpoints"]) == 1


def test_prune_deletes_threads_in_which_nothing_happens(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 5})
    terminal.start("chats", "c1")
    terminal.see("cancel", "c1")
    terminal.pass_time(days=100)

    seen = terminal.see("prune", "--ttl", "90d", "--yes")

    assert seen.startswith("Gone: 1 thread, ")
    assert [one["thread_id"] for one in terminal.ask("threads")["threads"]] == ["r1"]


@pytest.mark.parametrize(
    "typed", [["--yes"], ["--keep-last", "1"], ["--keep-last", "0", "--yes"], ["--ttl", "x", "-y"]]
)
def test_prune_deletes_nothing_that_was_not_meant(terminal: Terminal, typed: list[str]):
    terminal.start("chats", "c1")

    assert terminal.fail("prune", *typed)[0] == 2


def test_exported_thread_is_imported_elsewhere_and_goes_on_there(terminal: Terminal):
    terminal.start("chats", "c1")
    seen = terminal.see("export", "c1", "-o", "c1.bide")

    other = {"SHOP_STORE": f"sqlite:///{terminal.folder}/other.db"}
    brought = terminal.see("import", "c1.bide", **other)
    terminal.see("answer", "c1", "hello", **other)
    terminal.work(**other)

    assert (seen, brought) == ("c1 → c1.bide\n", "c1.bide → c1\n")
    assert terminal.ask("show", "c1", **other)["thread"]["values"] == {"note": "hello"}
    assert terminal.ask("show", "c1")["thread"]["status"] == "waiting"


def test_all_threads_are_exported_under_names_that_a_folder_can_hold(terminal: Terminal):
    for thread_id in ("c1", "../c2", "a/b"):
        terminal.start("chats", thread_id)

    exported = terminal.ask("export", "--all", "-o", "copies")["exported"]

    files = sorted(path.name for path in (terminal.folder / "copies").iterdir())
    assert sorted(one["thread_id"] for one in exported) == ["../c2", "a/b", "c1"]
    assert len(files) == 3
    assert files[-1] == "c1.bide"


def test_import_of_what_is_there_is_a_conflict_until_it_is_said_what_to_do(terminal: Terminal):
    terminal.start("chats", "c1")
    terminal.see("export", "c1")

    code, said = terminal.fail("import", "c1.bide")
    renamed = terminal.ask("import", "c1.bide", "--as", "c2")["imported"][0]
    replaced = terminal.ask("import", "c1.bide", "--replace")["imported"][0]

    assert code == 4
    assert "bide import FILE --as ANOTHER_ID" in said
    assert (renamed["thread_id"], replaced["thread_id"]) == ("c2", "c1")


def test_export_does_not_replace_a_file_unasked(terminal: Terminal):
    terminal.start("chats", "c1")
    terminal.see("export", "c1")

    code, _ = terminal.fail("export", "c1")

    assert code == 4
    assert terminal.see("export", "c1", "--overwrite")


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (["export"], 2),
        (["export", "c1", "--all"], 2),
        (["export", "c9"], 3),
        (["import", "nothing.bide"], 3),
        (["import", "shop.py"], 5),
        (["import", "a", "b", "--as", "c"], 2),
    ],
)
def test_export_and_import_say_what_they_need(terminal: Terminal, typed: list[str], code: int):
    terminal.start("chats", "c1")

    assert terminal.fail(*typed)[0] == code


def test_backup_is_a_store_of_its_own(terminal: Terminal):
    terminal.start("chats", "c1")

    copied = terminal.ask("backup", "copy.db")["file"]
    code, _ = terminal.fail("backup", "copy.db")

    assert copied == str(terminal.folder / "copy.db")
    assert code == 4
    assert terminal.ask("show", "c1", SHOP_STORE=f"sqlite:///{copied}")["thread"]["status"] == "waiting"


def test_version_tells_what_is_installed(terminal: Terminal):
    result, document = terminal.type("--version"), terminal.ask("version")

    assert result.stdout == f"bide {document['bide']}\n"
    assert json.dumps(document["packages"]["typer"])
