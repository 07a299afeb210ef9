"""What holds for every command: help, JSON, exit codes, and a page in the manual."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from bide.cli.commands import app
from bide.cli.exits import Exit
from tests.cli.terminal import Terminal

ROOT = Path(__file__).parents[2]
MANUAL = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

TYPED = {
    "answer": ["answer", "c1", "hello"],
    "backup": ["backup", "copy.db"],
    "cancel": ["cancel", "c1"],
    "deliver": ["deliver", "paid", "{}"],
    "deliveries": ["deliveries"],
    "doctor": ["doctor"],
    "explain": ["explain", "c1"],
    "export": ["export", "c1"],
    "follow": ["follow", "c1", "--until", "rest"],
    "fork": ["fork", "done"],
    "graph": ["graph", "chats"],
    "history": ["history", "c1"],
    "import": ["import", "saved.bide"],
    "keys": ["keys"],
    "migrate": ["migrate"],
    "prune": ["prune", "--keep-last", "1", "--yes"],
    "release": ["release", "c1"],
    "replay-check": ["replay-check"],
    "retry": ["retry", "c1"],
    "schedules": ["schedules"],
    "serve": ["serve", "--check"],
    "show": ["show", "c1"],
    "start": ["start", "chats", "{}"],
    "threads": ["threads"],
    "version": ["version"],
    "waits": ["waits"],
    "wake": ["wake", "c1", "5"],
    "worker": ["worker", "--until-idle"],
}
REFUSED = {"release": 4, "retry": 4}
"""Those that a thread which is well does not need; their error is JSON, too."""


def test_every_command_is_tried():
    assert sorted(TYPED) == COMMANDS


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose shop has one thread that waits, one that is done, and one that has moved out."""
    folder = tmp_path_factory.mktemp("shop")
    terminal = Terminal(folder)
    for thread_id in ("moved", "c1", "done"):
        terminal.see("start", "chats", "{}", "--thread", thread_id)
    terminal.work()
    terminal.see("answer", "done", "x")
    terminal.work()
    terminal.see("export", "moved", "-o", str(folder / "saved.bide"))
    terminal.see("cancel", "moved")
    terminal.pass_time(days=1)
    terminal.see("prune", "--ttl", "1h", "--thread", "moved", "--yes")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_command_prints_json_that_can_be_read(terminal: Terminal, lived_in: Path, name: str):
    shutil.copytree(lived_in, terminal.folder, dirs_exist_ok=True)

    result = terminal.type(*TYPED[name], "--json")

    assert result.exit_code == REFUSED.get(name, 0), result.output
    printed = result.stdout if name not in REFUSED else result.stderr
    lines = printed.splitlines() if name == "follow" else [printed]
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_has_help_and_a_line_in_the_manual(name: str):
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]

    assert command.help
    assert f"`bide {name}" in MANUAL, f"docs/cli.md does not tell what `bide {name}` does"


def test_manual_lists_every_exit_code():
    rows = dict(re.findall(r"^\| (\d+) \| (\w+)", MANUAL, re.MULTILINE))

    assert {int(code) for code in rows} == {int(code) for code in Exit}


def test_manual_speaks_of_no_command_that_is_not_there():
    spoken = re.findall(r"(?:`|^\$ )bide ([a-z][a-z-]+)", MANUAL, re.MULTILINE)

    assert spoken
    assert set(spoken) <= set(COMMANDS)


def test_mistyped_option_is_a_usage_error(terminal: Terminal):
    assert terminal.type("waits", "--mosst", "5").exit_code == 2


def test_help_loads_nothing_that_it_does_not_need():
    program = (
        "import sys; from typer.testing import CliRunner; from bide.cli.commands import app; "
        "result = CliRunner().invoke(app, ['--help']); assert result.exit_code == 0, result.output; "
        "print(sorted({'bide.runtime', 'bide.picture.svg', 'psycopg', 'rich.progress'} & sys.modules.keys()))"
    )

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str):
    hidden = f"import sys; sys.modules['{missing}'] = None; sys.argv = ['bide', 'version']"
    program = f"{hidden}; from bide.cli import main; main()"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f'The command line needs packages that are not installed ({missing} is missing): pip install "bide[cli]"'
    ]


def test_colours_are_for_terminals_alone(terminal: Terminal):
    terminal.start("chats", "c1")

    plain, forced = terminal.see("threads"), terminal.see("threads", FORCE_COLOR="1")
    refused = terminal.see("threads", FORCE_COLOR="1", NO_COLOR="1")

    assert "\x1b[" not in plain
    assert "\x1b[33mwaiting" in forced
    assert "\x1b[33m" not in refused


def test_store_that_is_not_there_is_unavailable(terminal: Terminal):
    code, said = terminal.fail("threads", "--store", "postgresql://nobody@127.0.0.1:1/none", BIDE_APP=None)

    assert code == 6
    assert "bide doctor" in said
