"""`bide doctor`: what is well, what is weak, what is stuck, and what to do about it."""

from __future__ import annotations

import json
import os

import pytest

from bide import Store
from bide.types import RunStatus
from tests.cli.terminal import Terminal


def test_doctor_finds_all_well(terminal: Terminal):
    terminal.environment["SHOP_NOW"] = None
    terminal.start("chats", "c1")
    os.chmod(terminal.folder / "shop.db", 0o600)

    lines = terminal.see("doctor", COLUMNS="300").splitlines()

    assert lines[0].startswith("bide 0.")
    assert [line[:13] for line in lines[2:-2]] == [
        "✓ application",
        "✓ store      ",
        "✓ database   ",
        "✓ durability ",
        "✓ clock      ",
        "· workers    ",
        "✓ threads    ",
        "✓ invariants ",
    ]
    assert "synchronous FULL, journal_mode wal" in "\n".join(lines)
    assert lines[-1] == "All is well."


def test_doctor_as_json_has_versions_stats_and_checks(terminal: Terminal):
    terminal.start("chats", "c1")

    document = terminal.ask("doctor", "--deep")

    assert document["is_well"] is True
    assert document["versions"]["bide"]
    assert document["stats"]["threads_by_status"] == {"waiting": 1}
    assert {one["verdict"] for one in document["checks"]} <= {"ok", "note", "warning"}


def checks_of(terminal: Terminal, about: str, **more: str | None) -> list[tuple[str, str, str]]:
    """Return what the doctor says about something."""
    found = json.loads(terminal.type("doctor", "--json", **more).stdout)["checks"]
    return [(one["verdict"], one["what"], one["advice"]) for one in found if one["about"] == about]


def test_doctor_sees_runs_that_nobody_drives(terminal: Terminal):
    terminal.see("start", "chats", "{}")

    assert ("warning", "1 run ready, and nobody to drive them", "bide worker") in checks_of(terminal, "workers")


@pytest.mark.parametrize(("status", "advice"), [(RunStatus.DEAD, "release"), (RunStatus.BLOCKED, "replay-check")])
def test_doctor_sees_threads_that_are_out_of_service(terminal: Terminal, status: RunStatus, advice: str):
    terminal.see("start", "chats", "{}", "--thread", "c1")
    change(terminal, "UPDATE runs SET status = ?", status.value)

    ((verdict, what, said),) = checks_of(terminal, "threads")

    assert verdict == "warning"
    assert "(c1)" in what
    assert advice in said


def change(terminal: Terminal, statement: str, *values: object) -> None:
    """Change the database behind everybody's back."""
    with Store.open(f"sqlite:///{terminal.folder}/shop.db") as store:
        store.database.write("change", lambda tx: tx.connection.execute(statement, values) and None)


def test_doctor_sees_deadlines_that_nobody_has_seen_to(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 5})
    terminal.pass_time(days=3)

    ((verdict, what, _),) = checks_of(terminal, "waits")

    assert (verdict, what) == ("warning", "1 wait past the deadline, and nobody has seen to it")


def test_doctor_sees_workers_that_are_gone_and_still_hold_runs(terminal: Terminal):
    terminal.see("start", "chats", "{}", "--thread", "c1")
    change(terminal, "UPDATE runs SET status = 'running', worker_id = 'w-lost'")

    found = checks_of(terminal, "workers")

    assert (
        "warning",
        "w-lost (unknown, pid 0) is gone, and holds 1 run",
        "Any worker takes them over: bide worker.",
    ) in found


def test_doctor_mentions_deliveries_that_woke_nobody(terminal: Terminal):
    terminal.see("migrate")
    delivery = terminal.ask("deliver", "paid", "{}")["delivery"]["id"]

    assert checks_of(terminal, "deliveries") == [("note", "1 delivery woke nobody", f"bide explain {delivery}")]


def test_doctor_warns_of_a_clock_that_goes_wrong(terminal: Terminal):
    terminal.start("chats", "c1")

    ((verdict, what, _),) = checks_of(terminal, "clock")

    assert verdict == "warning"
    assert "the store" in what


def test_doctor_fails_on_what_must_not_be(terminal: Terminal):
    terminal.start("chats", "c1")
    change(terminal, "DELETE FROM waits")

    result = terminal.type("doctor", SHOP_NOW=None)

    assert result.exit_code == 1
    assert "✗ invariants" in result.stdout
    assert "I4" in result.stdout


def test_strict_doctor_fails_on_warnings_too(terminal: Terminal):
    terminal.see("start", "chats", "{}")

    assert terminal.type("doctor").exit_code == 0
    assert terminal.type("doctor", "--strict").exit_code == 1


def test_doctor_without_graphs_looks_at_the_store_alone(terminal: Terminal):
    terminal.start("chats", "c1")

    seen = terminal.see("doctor", "--store", f"sqlite:///{terminal.folder}/shop.db", BIDE_APP=None)

    assert "no graphs are named, so only the store is looked at" in seen
