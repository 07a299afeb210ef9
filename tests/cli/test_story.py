"""The whole story, with real processes: start, a worker elsewhere, the inbox, an answer, the end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.stores import SCHEMA

HERE = Path(__file__).parent
BIDE = [sys.executable, "-m", "bide.cli"]

pytestmark = pytest.mark.slow


class Shell:
    """A folder with a shop in it, and programs that are started there."""

    def __init__(self, folder: Path, store: str, schema: str | None = None) -> None:
        shutil.copy(HERE / "shop.py", folder / "shop.py")
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("BIDE_", "PYTHON"))},
            "BIDE_APP": "shop.py:app",
            "SHOP_STORE": store,
            **({"SHOP_SCHEMA": schema} if schema else {}),
            "COLUMNS": "100",
        }

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command, and return what it printed."""
        done = subprocess.run(
            [*BIDE, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def ask(self, *words: str) -> Any:
        """Run a command with --json, and return the document."""
        return json.loads(self.run(*words, "--json"))

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Let a command run for the length of a block."""
        with subprocess.Popen(
            [*BIDE, *words], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def read_until(process: subprocess.Popen[str], word: str) -> list[str]:
    """Read what a process prints, up to a line with this word."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or word not in lines[-1]:
        line = process.stdout.readline()
        assert line, f"it ended before it said {word!r}: {lines}"
        lines.append(line.rstrip("\n"))
    return lines


@pytest.fixture(params=["sqlite", "postgres"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    if request.param == "sqlite":
        return Shell(tmp_path, f"sqlite:///{tmp_path}/shop.db")
    return Shell(tmp_path, request.getfixturevalue("postgres_url"), SCHEMA)


def test_thread_is_started_here_driven_there_and_answered_from_anywhere(shell: Shell):
    # Given a worker in a process of its own
    with shell.running("worker", "--poll", "0.1") as worker:
        said = read_until(worker, "Working")

        # When somebody starts a thread, finds it in the inbox, and decides
        shell.run("start", "refunds", '{"amount": 500}', "--thread", "r1")
        asked = shell.run("follow", "r1", "--until", "rest")
        (wait,) = shell.ask("waits", "--assignee", "ann")["waits"]
        answered = shell.run("answer", wait["id"][:8], "approve", "--by", "ann")
        followed = shell.run("follow", "r1")

        # Then it has run to its end, and a signal lets the worker go home
        worker.send_signal(signal.SIGTERM)
        last = read_until(worker, "Stopped")
        assert worker.wait() == 0

    assert said[0] == "Bide worker"
    assert [line.split()[0] for line in said[1:6]] == ["store", "graphs", "queues", "at", "worker"]
    assert "? waits" in asked.splitlines()[-1]
    assert answered == "✓ Thread r1: approve answered with approve.\n"
    assert "✓ done" in followed.splitlines()[-1]
    assert last[-1] == "Stopped after 2 runs."
    assert shell.ask("show", "r1")["thread"]["values"] == {"amount": 500, "decision": "approve", "note": "paid"}


def test_store_is_looked_after_in_either_database(shell: Shell):
    shell.run("start", "chats", "{}", "--thread", "customer-1")
    shell.run("worker", "--until-idle")
    shell.run("deliver", "paid", '{"amount": 1}')

    document = shell.ask("doctor", "--deep")
    exported = shell.ask("export", "--all", "-o", "copies")["exported"]
    pruned = shell.ask("prune", "--keep-last", "1", "--yes")["pruned"]

    assert document["is_well"] is True, document
    assert [one["thread_id"] for one in exported] == ["customer-1"]
    assert pruned["failed"] == []
    assert shell.run("show", "customer").startswith("customer-1 · chats · waiting")
    assert shell.ask("schedules") == {"schedules": []}


def test_talkative_worker_prints_a_line_when_a_run_begins_and_when_it_rests(tmp_path: Path):
    shell = Shell(tmp_path, f"sqlite:///{tmp_path}/shop.db")
    shell.run("start", "chats", "{}", "--thread", "c1")

    with shell.running("worker", "-v", "--poll", "0.1") as worker:
        lines = read_until(worker, "waiting")

    assert [line.partition("  ")[2] for line in lines[-2:]] == [
        "Thread c1 (chats) is driven.",
        "Thread c1 (chats): waiting.",
    ]


def test_interrupted_command_says_130(tmp_path: Path):
    shell = Shell(tmp_path, f"sqlite:///{tmp_path}/shop.db")
    shell.run("start", "chats", "{}", "--thread", "c1")
    shell.run("worker", "--until-idle")

    with shell.running("follow", "c1") as following:
        read_until(following, "waits")
        following.send_signal(signal.SIGINT)

        assert following.wait() == 130


def test_reader_that_has_seen_enough_is_no_error(tmp_path: Path):
    shell = Shell(tmp_path, f"sqlite:///{tmp_path}/shop.db")
    shell.run("start", "chats", "{}", "--thread", "c1")

    with shell.running("follow", "c1", "--until", "never") as following:
        read_until(following, "accepted")
        assert following.stdout is not None
        following.stdout.close()
        shell.run("worker", "--until-idle")

        assert following.wait() == 0


def test_installed_script_is_the_same_program(tmp_path: Path):
    script = Path(sys.executable).with_name("bide")

    printed = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert printed.startswith("bide ")
