"""Runs at the terminal: start, retry, release, cancel, and a worker."""

from __future__ import annotations

import json

import pytest

from bide import Store
from bide.types import RunStatus
from tests.cli.terminal import Terminal


def test_start_accepts_a_run_and_says_how_to_look_at_it(terminal: Terminal):
    result = terminal.type("start", "chats", "{}", "--thread", "c1")

    assert result.stdout == "✓ Thread c1 started: chats, ready.\n"
    assert result.stderr == "See: bide show c1\nNobody works right now → bide worker\n"
    assert terminal.ask("threads")["threads"][0]["status"] == "ready"


def test_start_under_one_key_starts_one_run(terminal: Terminal):
    first = terminal.ask("start", "chats", "{}", "--key", "order-1")["run"]
    again = terminal.see("start", "chats", "{}", "--key", "order-1")
    code, said = terminal.fail("start", "refunds", '{"amount": 1}', "--key", "order-1")

    assert again == f"✓ Thread {first['thread_id']} was started before under this key, and is ready.\n"
    assert code == 4
    assert "was used before" in said
    assert len(terminal.ask("threads")["threads"]) == 1


def test_start_may_be_put_off(terminal: Terminal):
    seen = terminal.see("start", "chats", "{}", "--thread", "c1", "--delay", "2h30m")
    terminal.work()
    early = terminal.ask("show", "c1")["thread"]["status"]
    terminal.pass_time(hours=3)
    terminal.work()

    assert seen == "✓ Thread c1 started: chats, queued, due in 2h 30m.\n"
    assert early == "queued"
    assert terminal.ask("show", "c1")["thread"]["status"] == "waiting"


def test_start_at_a_moment_is_due_then(terminal: Terminal):
    run = terminal.ask("start", "chats", "{}", "--at", "2026-03-02T12:00:00+02:00")["run"]

    assert run["due_at"] == "2026-03-02T10:00:00+00:00"


def test_start_on_a_busy_thread_is_refused_unless_it_is_said_what_to_do(terminal: Terminal):
    terminal.start("chats", "c1")

    code, said = terminal.fail("start", "chats", "{}", "--thread", "c1")
    queued = terminal.ask("start", "chats", "{}", "--thread", "c1", "--if-busy", "enqueue")

    assert code == 4
    assert "--if-busy enqueue" in said
    assert queued["run"]["status"] == "queued"


def test_start_of_an_unknown_graph_names_those_there_are(terminal: Terminal):
    code, said = terminal.fail("start", "refund", "{}")

    assert code == 3
    assert "Did you mean 'refunds'?" in said


def test_input_that_is_no_json_is_a_mistake_of_the_caller(terminal: Terminal):
    code, said = terminal.fail("start", "refunds", "{amount: 5}")

    assert code == 2
    assert "The input is no JSON" in said


def test_input_that_the_state_cannot_take_is_not_valid(terminal: Terminal):
    code, said = terminal.fail("start", "refunds", '{"amoun": 5}', "--thread", "r1")

    assert code == 5
    assert "'amoun'" in said


def test_failed_thread_goes_on_with_what_did_not_finish(terminal: Terminal):
    terminal.start("refunds", "r1", {"amount": 500})
    terminal.see("answer", "r1", "approve")
    terminal.work(BANK="closed")
    failed = terminal.see("show", "r1")

    seen = terminal.see("retry", "r1")
    terminal.work()

    assert "✗ failed       ValueError: the bank is closed" in failed
    assert failed.endswith("→ bide retry r1\n")
    assert seen == "✓ Thread r1 goes on: refunds, ready.\n"
    assert terminal.ask("show", "r1")["thread"]["values"]["note"] == "paid"


@pytest.mark.parametrize("command", ["retry", "release"])
def test_thread_that_is_well_needs_neither_retry_nor_release(terminal: Terminal, command: str):
    terminal.start("chats", "c1")

    code, said = terminal.fail(command, "c1")

    assert code == 4
    assert "Thread c1 is waiting. Nothing was changed." in said
    assert "→ bide show c1" in said


def test_thread_out_of_service_is_released(terminal: Terminal):
    terminal.see("start", "chats", "{}", "--thread", "c1")
    put_out_of_service(terminal, "c1")
    seen, (code, said) = terminal.see("show", "c1"), terminal.fail("retry", "c1")

    told = terminal.see("release", "c1")
    terminal.work()

    assert seen.endswith("→ bide release c1\n")
    assert (code, "→ bide release c1" in said) == (4, True)
    assert told == "✓ Thread c1 is ready again (it was dead).\n"
    assert terminal.ask("show", "c1")["thread"]["status"] == "waiting"


def put_out_of_service(terminal: Terminal, thread_id: str) -> None:
    """Leave a run as it is when worker after worker died on it."""
    with Store.open(f"sqlite:///{terminal.folder}/shop.db") as store:

        def kill(tx) -> None:
            tx.connection.execute("UPDATE runs SET status = ?, crashes = 5", (RunStatus.DEAD.value,))

        store.database.write("kill", kill)


def test_cancelled_thread_waits_for_nothing(terminal: Terminal):
    terminal.start("chats", "c1")

    seen = terminal.see("cancel", "c1", "--reason", "customer left")

    assert seen == "✓ Thread c1 is cancelled.\n"
    assert "cancelled    customer left, by ann" in terminal.see("show", "c1")
    assert terminal.see("waits") == "Nobody waits.\n"


def test_cancelled_wait_is_withdrawn_and_its_node_is_told(terminal: Terminal):
    terminal.start("chats", "c1")
    wait = terminal.wait_of("c1")

    terminal.see("cancel", "--wait", wait[:8])
    terminal.work()
    code, _ = terminal.fail("cancel", "--wait", wait)

    assert "WaitCancelled" in terminal.ask("show", "c1")["thread"]["error"]
    assert code == 4


@pytest.mark.parametrize(
    ("typed", "code"), [([], 2), (["c1", "--wait", "x"], 2), (["c9"], 3), (["--wait", "nobody"], 3)]
)
def test_cancel_says_what_it_needs(terminal: Terminal, typed: list[str], code: int):
    terminal.start("chats", "c1")

    assert terminal.fail("cancel", *typed)[0] == code


def test_thread_that_has_ended_cannot_be_cancelled(terminal: Terminal):
    terminal.start("chats", "c1")
    terminal.see("cancel", "c1")

    assert terminal.fail("cancel", "c1")[0] == 4


def test_worker_until_idle_tells_what_it_drove(terminal: Terminal):
    terminal.see("start", "chats", "{}")
    terminal.see("start", "refunds", '{"amount": 5}')

    assert terminal.ask("worker", "--until-idle") == {"driven": 2, "outcomes": {"waiting": 2}}
    assert terminal.see("worker", "--until-idle") == "0 runs: nothing was ready.\n"


def test_worker_drives_graphs_that_are_named_behind_it_as_a_server_does(terminal: Terminal):
    terminal.see("start", "chats", "{}", "--thread", "c1")

    named = terminal.ask("worker", f"{terminal.folder}/shop.py:app", "--until-idle", BIDE_APP=None)

    assert named == {"driven": 1, "outcomes": {"waiting": 1}}


def test_worker_serves_the_queues_that_it_is_told_to(terminal: Terminal):
    terminal.see("start", "chats", "{}", "--thread", "c1", "--queue", "slow")

    idle, busy = terminal.ask("worker", "--until-idle"), terminal.ask("worker", "--until-idle", "--queue", "slow")

    assert (idle["driven"], busy["driven"]) == (0, 1)


@pytest.mark.parametrize("command", [["start", "chats"], ["worker"], ["fork", "c1"], ["graph"], ["replay-check"]])
def test_command_that_needs_graphs_says_how_to_name_them(terminal: Terminal, command: list[str]):
    terminal.start("chats", "c1")

    code, said = terminal.fail(*command, "--store", f"sqlite:///{terminal.folder}/shop.db", BIDE_APP=None)

    assert code == 2
    assert "export BIDE_APP=shop.py:app" in said


def test_run_as_json_has_documented_fields(terminal: Terminal):
    run = terminal.ask("start", "chats", json.dumps({}), "--thread", "c1", "--priority", "3")["run"]

    assert {"run_id", "thread_id", "graph", "status", "created_at", "queue", "priority", "is_new"} <= run.keys()
    assert (run["priority"], run["queue"], run["is_new"]) == (3, "default", True)
