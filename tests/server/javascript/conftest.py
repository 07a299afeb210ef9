"""LangGraph's clients for JavaScript, under the Node that comes with the tests, before a real server in a process of
its own. What they see they print as JSON, and the tests look at it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import fresh_database
from tests.repo.source_files import ROOT
from tools.javascript import bring_clients, node_wheel
from tools.venv import Venv

SCRIPTS = Path(__file__).parent / "scripts"
Script = Callable[..., Any]
Start = Callable[..., "subprocess.Popen[str]"]


class Site:
    """A server that can be killed, and started again at the same address."""

    def __init__(self, database: str, *options: str) -> None:
        self.database = database
        self.options = options
        # Ours as well: while the server is away, callers wait in the queue, however slow this machine starts it again.
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = "http://{}:{}".format(*self.listening.getsockname())
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        number = self.listening.fileno()
        command = [sys.executable, "-m", "tests.server.javascript.served", self.database, str(number), *self.options]
        self.process = subprocess.Popen(command, cwd=ROOT, pass_fds=[number])

    def stop(self) -> None:
        """End it as an orderly restart does."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(30)

    def kill(self) -> None:
        """Kill it as a power cut would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def close(self) -> None:
        """Let nobody call any more."""
        self.kill()
        self.listening.close()


@pytest.fixture(scope="package", params=("file", "postgres"))
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server over a database of each kind, for all tests here."""
    with ExitStack() as until_the_end:
        if request.param == "file":
            database = f"sqlite:///{tmp_path_factory.mktemp('javascript') / 'bide.db'}"
        else:
            database = until_the_end.enter_context(fresh_database(request.getfixturevalue("postgres_dsn")))
        made = Site(database)
        made.start()
        until_the_end.callback(made.close)
        yield made


@pytest.fixture(scope="package")
def door(site: Site) -> Iterator[Site]:
    """Another server over the same database, without a worker: whoever kills it stops no run, and starts it again."""
    made = Site(site.database, "alone")
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="session")
def node() -> Path:
    """Node, beside which the clients are installed."""
    venv = Venv(ROOT)
    bring_clients(venv)
    return node_wheel(venv) / "bin" / "node"


@pytest.fixture
def start(node: Path, tmp_path: Path) -> Iterator[Start]:
    """Start a script, which is told where a server is, where it may write, and what else it is given."""
    with ExitStack() as until_the_end:

        def started(name: str, **given: Any) -> subprocess.Popen[str]:
            said = json.dumps({"folder": str(tmp_path), **given})
            command = [str(node), str(SCRIPTS / f"{name}.mjs"), said]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            until_the_end.enter_context(process)
            until_the_end.callback(process.kill)
            return process

        yield started


@pytest.fixture
def script(start: Start, site: Site) -> Script:
    """Run a script before the server to its end, and return what it has seen."""
    return lambda name, **given: seen_by(start(name, url=site.url, **given))


def seen_by(process: subprocess.Popen[str]) -> Any:
    """Wait for the end of a script, and return what it has seen."""
    told, _ = process.communicate(timeout=90)
    assert process.returncode == 0, f"{process.args[1]} ended with {process.returncode}; its words are above."
    return json.loads(told)
