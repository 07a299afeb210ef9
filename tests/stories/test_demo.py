"""The demo does what it says, says when it does not, and never hangs."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bide.demo.audit import Evidence, LogLine, Step, audit
from bide.demo.crew import Death, Files, WorkerFailed, worker
from bide.demo.shop import calls_of, write_down

WIDTH = 80


def run_demo(folder: Path, *words: str, typed: str | None = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as a user does; its files are made in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "bide.demo", *words],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "TMPDIR": str(folder), **env},
    )


@pytest.fixture(scope="module")
def approved(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """One run of `--yes`, looked at by several tests."""
    return run_demo(tmp_path_factory.mktemp("approved"), "--yes")


# ── The story ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_approved_order_survives_two_kills_and_is_charged_and_shipped_once(approved):
    done = approved

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert len(re.findall(r"✗ kill -9 +process \d+ is gone", done.stdout)) == 2
    assert re.search(r"charge +key (\w+)… +charge-2 +done\n +charge +key \1… +charge-2 +seen before", done.stdout)
    assert re.search(r"ship +key \w+… +ship-4 +done", done.stdout)
    assert "Killed twice: nothing was lost, and nothing was done twice." in done.stdout


def test_rejected_order_is_released_once_and_never_charged(tmp_path):
    done = run_demo(tmp_path, typed="n\n")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "interrupt() returns False" in done.stdout
    assert re.search(r"release +key (\w+)… .* done\n +release +key \1… .* seen before", done.stdout)
    assert "charge" not in done.stdout
    assert "Killed twice" in done.stdout


def test_timeline_tells_the_steps_the_kills_and_the_take_over_in_order(approved):
    timeline = approved.stdout.partition("What the database remembers")[2].partition("What the world outside")[0]
    kinds = re.findall(r"\d s +(step|kill -9|run\.\w+)", timeline)
    waiting = ["run.started", "step", "step", "step", "run.waiting"]
    assert kinds == [
        *waiting,
        "kill -9",
        "run.resumed",
        "step",
        "kill -9",
        "run.taken_over",
        "step",
        "step",
        "run.done",
    ]
    assert re.search(r"step +check_price, check_stock\n", timeline)


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["", "what?\n"], ids=["nothing", "rubbish"])
def test_nobody_to_answer_means_yes_with_a_note_and_no_hanging(tmp_path, typed):
    done = run_demo(tmp_path, typed=typed)

    assert done.returncode == 0
    assert "nobody is there to answer: taking yes" in done.stdout
    assert "interrupt() returns True" in done.stdout


@pytest.mark.slow
def test_pipe_that_stays_silent_does_not_hold_the_demo(tmp_path):
    silent, never_written = os.pipe()
    command = [sys.executable, "-m", "bide.demo"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}

    done = subprocess.run(command, stdin=silent, capture_output=True, text=True, timeout=60, check=False, env=env)
    os.close(never_written)
    os.close(silent)

    assert done.returncode == 0
    assert "nobody is there to answer" in done.stdout


@pytest.mark.slow
def test_unclear_answer_is_asked_again(tmp_path):
    done = run_demo(tmp_path, typed="perhaps\nno\n")

    assert "Please answer y or n." in done.stdout
    assert "interrupt() returns False" in done.stdout


# ── How it looks ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_output_for_a_pipe_is_plain_and_fits_the_screen(approved):
    own_lines = [line for line in approved.stdout.splitlines() if "orders.db" not in line]

    assert "\x1b" not in approved.stdout
    assert [line for line in own_lines if len(line) > WIDTH] == []


@pytest.mark.slow
@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_person_at_a_terminal_answers_and_sees_colours_unless_they_are_unwanted(tmp_path, no_color, is_coloured):
    person, terminal = pty.openpty()
    env = {**os.environ, "TMPDIR": str(tmp_path), "TERM": "xterm", "NO_COLOR": no_color}
    command = [sys.executable, "-m", "bide.demo"]

    with subprocess.Popen(command, stdin=terminal, stdout=terminal, env=env) as demo:
        os.close(terminal)
        os.write(person, b"n\n")
        shown = read_all(person)
    os.close(person)

    assert demo.returncode == 0
    assert "interrupt() returns False" in shown
    assert ("\x1b[" in shown) is is_coloured


def read_all(terminal: int) -> str:
    """Everything that is shown on a terminal until the program behind it has ended."""
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:  # how Linux says that the other side is closed
        pass
    return shown.decode()


@pytest.mark.slow
def test_ascii_terminal_shows_the_story_too(tmp_path):
    done = run_demo(tmp_path, "--yes", PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert "? receive" in done.stdout


def test_reader_who_leaves_early_gets_no_traceback(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "bide.demo", "--yes"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as demo:
        assert demo.stdout is not None
        demo.stdout.close()
        complaints = demo.stderr.read() if demo.stderr is not None else ""

    assert complaints == ""
    assert demo.returncode == 141
    assert list(tmp_path.iterdir()) == []


# ── Its files ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_nothing_is_left_behind_unless_asked_for(tmp_path):
    run_demo(tmp_path, "--yes")
    assert list(tmp_path.iterdir()) == []

    kept = run_demo(tmp_path, "--yes", "--keep")
    (folder,) = tmp_path.iterdir()
    assert {"orders.db", "orders.db.ledger.jsonl"} <= {path.name for path in folder.iterdir()}
    assert f"Kept: {folder / 'orders.db'}" in kept.stdout


@pytest.mark.slow
def test_own_database_is_used_again_by_the_next_demo(tmp_path):
    path = tmp_path / "mine.db"

    codes = [run_demo(tmp_path, "--yes", "--db", str(path)).returncode for _ in range(2)]

    orders = {line.split('"')[3] for line in Path(f"{path}.ledger.jsonl").read_text().splitlines()}
    assert codes == [0, 0]
    assert len(orders) == 2


def test_path_that_cannot_be_used_is_told_before_anything_starts(tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("not a database\n")

    done = run_demo(tmp_path, "--yes", "--db", str(note))

    assert done.returncode == 1
    assert "The demo could not go on:" in done.stderr
    assert "is not a database" in done.stderr
    assert "Traceback" not in done.stderr
    assert note.read_text() == "not a database\n"


# ── Its own checks can fail ────────────────────────────────────────────────────────────────────────────────────────


def honest_evidence(tmp_path: Path) -> Evidence:
    """What a good run leaves behind, with a ledger made by real calls."""
    ledger = str(tmp_path / "ledger.jsonl")
    calls = [
        write_down(ledger, "o", what, key)
        for what, key in [("reserve", "r"), ("charge", "c"), ("charge", "c"), ("ship", "s")]
    ]
    path = [("receive",), ("check_price", "check_stock"), ("reserve",), ("approve",), ("charge",), ("ship",)]
    return Evidence(
        is_approved=True,
        begun=Counter([*(node for ran in path for node in ran), "approve", "charge"]),
        deaths=[Death(1, 0, -9), Death(2, 0, -9)],
        steps=[Step(seq, seq, ran) for seq, ran in enumerate(path, 2)],
        log=[LogLine(1, 0, 1, "run.started", {}), LogLine(7, 9, 2, "run.done", {})],
        calls=calls,
        state={"approved": True, "reservation": "reserve-1", "payment": "charge-2", "parcel": "ship-4"},
        open_questions=0,
    )


def test_honest_run_passes_every_check(tmp_path):
    findings = audit(honest_evidence(tmp_path))

    assert len(findings) == 7
    assert [finding.problem for finding in findings if finding.problem] == []


def twice_charged(evidence):
    return replace(evidence, calls=[call._replace(has_effect=True) for call in evidence.calls])


def retried_under_another_key(evidence):
    reserve, charge, again, ship = evidence.calls
    return replace(evidence, calls=[reserve, charge, again._replace(key="other"), ship])


def node_that_ran_twice(evidence):
    return replace(evidence, steps=[*evidence.steps, evidence.steps[0]])


def node_that_was_lost(evidence):
    return replace(evidence, steps=evidence.steps[:-1])


def replay_of_a_finished_node(evidence):
    return replace(evidence, begun=evidence.begun + Counter(["reserve"]))


def lost_receipt(evidence):
    return replace(evidence, state={**evidence.state, "payment": "charge-9"})


def changed_answer(evidence):
    return replace(evidence, state={**evidence.state, "approved": False})


def gap_in_the_log(evidence):
    return replace(evidence, log=[evidence.log[0], evidence.log[1]._replace(number=3)])


def order_without_an_end(evidence):
    return replace(evidence, log=evidence.log[:1])


def question_left_open(evidence):
    return replace(evidence, open_questions=1)


def worker_that_ended_by_itself(evidence):
    return replace(evidence, deaths=[Death(1, 0, -9), Death(2, 0, 0)])


LIES = {
    twice_charged: "'charge' was effective twice",
    retried_under_another_key: "'charge' was called 2 times with 2 keys",
    node_that_ran_twice: "'receive' was finished twice",
    node_that_was_lost: "'ship' was finished never",
    replay_of_a_finished_node: "'reserve' was begun twice",
    lost_receipt: "charge-9",
    changed_answer: "The answer True became False",
    gap_in_the_log: "The log is numbered [1, 3]",
    order_without_an_end: "does not end with 'run.done'",
    question_left_open: "still open: 1",
    worker_that_ended_by_itself: "died by SIGKILL: 1, not 2",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_check_notices(tmp_path, lie):
    findings = audit(lie(honest_evidence(tmp_path)))

    assert LIES[lie] in " ".join(finding.problem for finding in findings)


def test_worker_that_fails_ends_the_demo_with_a_sentence(tmp_path, capfd):
    files = Files(str(tmp_path / "x.db"), str(tmp_path / "x.jsonl"))

    with (
        worker(files, "nobody", "go-on") as lost,
        pytest.raises(WorkerFailed, match="exit code 1 before it told: done"),
    ):
        list(lost.told("done"))

    assert "There is nothing to go on with" in capfd.readouterr().err


def test_ledger_answers_a_known_key_with_the_first_receipt(tmp_path):
    ledger = str(tmp_path / "ledger.jsonl")

    first, second = (write_down(ledger, "o", "charge", "key") for _ in range(2))

    assert first.has_effect
    assert not second.has_effect
    assert second.receipt == first.receipt
    assert calls_of(ledger, "o") == [first, second]
