"""`bide serve` as a real process: it says where it is, answers, and ends when it is asked to."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from bide import Bide, Store
from tests.cli.terminal import HERE, Terminal

AGENTS = """
from typing import TypedDict
from bide import START, StateGraph, step, wait_for
from bide.waits import approval

class Refund(TypedDict, total=False):
    amount: int
    decision: str

def approve(state):
    return {"decision": wait_for(approval(f"Refund {state['amount']}?")).value}

def hang(state):
    import pathlib, threading
    pathlib.Path("hangs").touch()
    threading.Event().wait(60)

refunds = StateGraph(Refund).add_node(approve).add_edge(START, "approve")
hanging = StateGraph(Refund).add_node(hang).add_edge(START, "hang").compile(name="hanging")
"""
SECONDS = 30.0


class Served:
    """A server that runs, and what it has printed."""

    def __init__(self, process: subprocess.Popen[str], said: dict[str, Any]) -> None:
        self.process = process
        self.said = said["serving"]
        self.url = self.said["url"]
        self.client = httpx.Client(base_url=self.url, timeout=SECONDS, trust_env=False)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal, and return the exit code and what was printed since."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "bide.cli", *words]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BIDE_")}
    return {**kept, "NO_COLOR": "1", "COLUMNS": "100", **more}


@contextmanager
def serving(folder: Path, *words: str, **env: str) -> Iterator[Served]:
    """Run a server at any port, until the block is left."""
    with subprocess.Popen(
        command("serve", *words, "--port", "0", "--json"),
        cwd=folder,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate(timeout=SECONDS)[1]
            served = Served(process, json.loads(line))
            with served.client:
                yield served
        finally:
            if process.poll() is None:
                process.kill()


def refused(folder: Path, *words: str, **env: str) -> tuple[int, str]:
    """Run a server that cannot begin; return its exit code and what it says."""
    done = subprocess.run(
        command("serve", *words), cwd=folder, env=environment(**env), capture_output=True, text=True, timeout=SECONDS
    )
    assert "Traceback" not in done.stderr
    return done.returncode, " ".join(done.stderr.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents.py").write_text(AGENTS)
    return tmp_path


def logged(err: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in err.splitlines()]


# ── Beginning ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_graph_is_served_with_its_worker_without_any_configuration(folder: Path) -> None:
    with serving(folder, "agents.py:refunds", "--json-logs") as served:
        ready = served.client.get("/ready")
        paused = served.client.post("/runs/wait", json={"assistant_id": "refunds", "input": {"amount": 5}}).json()
        (wait,) = served.client.get("/waits").json()["waits"]
        answered = served.client.post(f"/waits/{wait['id']}/answer", json={"value": "approve"})
        joined = served.client.post(
            f"/threads/{wait['thread_id']}/runs/wait", json={"assistant_id": "refunds", "input": {"amount": 7}}
        )
        inbox = served.client.get("/")
        code, out, err = served.end()

    assert served.said["graphs"] == ["refunds"]
    assert served.said["store"] == str(folder / "bide.db")
    assert ready.json()["checks"]["worker"] == "ok"
    assert paused["__interrupt__"]
    assert answered.status_code == 200
    assert joined.status_code < 500
    assert inbox.headers["content-type"].startswith("text/html")
    assert (code, json.loads(out)) == (0, {"stopped": True})
    lines = logged(err)
    assert {"POST /runs/wait", "GET /waits"} <= {f"{one.get('method')} {one.get('route')}" for one in lines}
    assert all(one["level"] == "info" for one in lines), err


def test_banner_says_where_everything_is(folder: Path) -> None:
    with subprocess.Popen(
        command("serve", "agents.py:refunds", "--port", "0", "--no-worker"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        shown = "".join(iter(process.stdout.readline, "Ctrl-C stops after what is under way.\n"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)

    assert process.returncode == 0
    assert re.search(r"inbox +http://127\.0\.0\.1:\d+/\n", shown)
    assert re.search(rf"store +{folder}/bide\.db\n", shown)
    assert re.search(r"graphs +refunds\n +auth +none: whoever is on this machine\n +worker +elsewhere", shown), shown
    assert re.search(r"→ curl http://127\.0\.0\.1:\d+/runs/wait --json", shown)


def test_settings_file_of_the_folder_is_found_and_what_is_typed_counts(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "bide.toml").write_text(
        '[app]\ngraphs = ["agents.py:refunds", "agents.py:hanging"]\nstore = "sqlite:///data/shop.db"\n'
        '[server]\nconcurrency = 3\nworker = true\n[auth]\nmode = "keys"\n'
    )
    made = subprocess.run(
        command("keys", "create", "ann", "--scope", "read"),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    with serving(folder, "--no-worker") as served:
        codes = [
            served.client.get("/waits", headers=headers).status_code
            for headers in ({}, {"x-api-key": made.stdout.strip()})
        ]
        assert served.end()[0] == 0

    assert served.said["graphs"] == ["refunds", "hanging"]
    assert served.said["store"] == str(folder / "data" / "shop.db")
    assert (served.said["auth"], served.said["worker"], served.said["concurrency"]) == ("keys", False, 3)
    assert codes == [401, 200]
    assert "It is shown this once" in made.stderr


def test_application_is_served_over_the_store_that_it_has(tmp_path: Path) -> None:
    shutil.copy(HERE / "shop.py", tmp_path / "shop.py")

    with serving(tmp_path, "shop.py:app", SHOP_STORE=f"sqlite:///{tmp_path}/own.db") as served:
        assert served.end()[0] == 0

    assert served.said["store"] == str(tmp_path / "own.db")
    assert "careful" in served.said["graphs"]


def test_check_begins_nothing(terminal: Terminal) -> None:
    told = terminal.see("serve", "--check")

    assert told.startswith("It could begin: refunds, payments, contracts, counting, chats, careful at http://127.0.0.1")


# ── What is refused ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_internal_auth.py::forwarded-for not trusted")
@pytest.mark.parametrize(("believed", "statuses"), [("[]", {202, 429}), ('["127.0.0.1"]', {202})])
def test_address_that_a_caller_claims_counts_only_if_a_named_proxy_says_it(
    folder: Path, believed: str, statuses: set[int]
) -> None:
    """Whoever calls too often is not let in by claiming to be somebody else each time."""
    toml = f"""[server]
trusted_proxies = {believed}
[limits]
public_rate = 0.001
public_burst = 3
[[hooks]]
name = "open"
scheme = "none"
"""
    (folder / "bide.toml").write_text(toml)
    with serving(folder, "agents.py:refunds") as served:
        answers = [
            served.client.post("/hooks/open", json={"number": number}, headers={"X-Forwarded-For": f"10.0.0.{number}"})
            for number in range(8)
        ]

    assert {answer.status_code for answer in answers} == statuses


def test_second_server_at_a_port_gets_a_sentence(folder: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        code, said = refused(folder, "agents.py:refunds", "--port", str(port))

    assert code == 2
    assert f"Port {port} of 127.0.0.1 is taken: another server listens there." in said


def test_open_door_is_refused_unless_somebody_knows_why(folder: Path) -> None:
    code, said = refused(folder, "agents.py:refunds", "--host", "0.0.0.0", "--port", "0")

    assert code == 2
    assert "asks nobody who they are" in said
    assert "--insecure" in said
    with serving(folder, "agents.py:refunds", "--host", "0.0.0.0", "--insecure") as served:
        assert served.client.get("/health").status_code == 200
        assert served.end()[0] == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "bide serve needs your graphs"),
        (("agents.py:refund",), "Did you mean 'refunds'?"),
        (("agents.py:refunds", "agents.py:refunds"), "Two graphs are named 'refunds'"),
        (("agents.py:refunds", "shop.py:app"), "shop.py:app is an application"),
        (("--config", "other.toml"), "other.toml cannot be read"),
        (("agents.py:refunds", "--store", "shop.db"), "is no URL of a store"),
    ],
)
def test_what_cannot_be_meant_is_told(terminal: Terminal, words: tuple[str, ...], why: str) -> None:
    (terminal.folder / "agents.py").write_text(AGENTS)

    code, said = terminal.fail("serve", *words, "--check", BIDE_APP=None)

    assert code in (2, 6)
    assert why in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--auth", "jwt"), "[auth.jwt]"),
        (("--auth", "keys", "--host", "203.0.113.7"), "Nobody can listen at 203.0.113.7"),
    ],
)
def test_server_that_cannot_begin_says_why(folder: Path, words: tuple[str, ...], why: str) -> None:
    code, said = refused(folder, "agents.py:refunds", "--port", "0", *words)

    assert code == 2
    assert why in said


def test_without_the_extra_it_says_what_to_install(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "fastapi" else found(name))

    code, said = terminal.fail("serve", "--check")

    assert code == 1
    assert 'fastapi is missing): pip install "bide[server]"' in said


def test_whoever_uses_bide_without_a_server_loads_none() -> None:
    program = "import sys, bide, bide.runtime; print(sorted({'fastapi', 'uvicorn', 'starlette'} & sys.modules.keys()))"

    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


# ── Ending ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_open_stream_is_ended_and_the_process_with_it(folder: Path) -> None:
    with serving(folder, "agents.py:refunds", "--grace", "20") as served:
        with served.client.stream("GET", "/events", headers={"accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            assert next(lines) is not None
            served.process.send_signal(signal.SIGTERM)
            rest = list(lines)
        out, err = served.process.communicate(timeout=10)  # far less than the grace: nobody had to be waited for

    assert stream.status_code == 200
    assert rest is not None
    assert served.process.returncode == 0, err
    assert json.loads(out) == {"stopped": True}


@pytest.mark.slow
def test_run_under_way_is_given_back_when_its_time_is_up(folder: Path) -> None:
    with serving(folder, "agents.py:hanging", "--grace", "1") as served:
        thread_id = served.client.post("/threads", json={}).json()["thread_id"]
        served.client.post(f"/threads/{thread_id}/runs", json={"assistant_id": "hanging", "input": {"amount": 1}})
        until_there(folder / "hangs")
        code, _, err = served.end()

    assert code == 0
    assert "did not come to a step in time" in err


@pytest.mark.slow
def test_second_signal_ends_it_at_once(folder: Path) -> None:
    with serving(folder, "agents.py:hanging", "--grace", "600") as served:
        thread_id = served.client.post("/threads", json={}).json()["thread_id"]
        served.client.post(f"/threads/{thread_id}/runs", json={"assistant_id": "hanging", "input": {"amount": 1}})
        until_there(folder / "hangs")
        served.process.send_signal(signal.SIGTERM)
        until_refused(served.url)
        code, _, err = served.end()

    assert code == 128 + signal.SIGTERM
    assert "Ended at once" in err
    with Store.open(f"sqlite:///{folder}/bide.db") as store:
        Bide(store).tend()
        assert [event.kind for event in store.events(thread_id)][-1] == "run.reaped"


def until_there(path: Path) -> None:
    """Wait until another process has made a file."""
    waiting = threading.Event()
    for _ in range(3000):
        if path.exists():
            return
        waiting.wait(0.01)
    raise AssertionError(f"nobody has made {path}")


def until_refused(url: str) -> None:
    """Wait until nobody listens any more."""
    waiting = threading.Event()
    for _ in range(3000):
        try:
            httpx.get(f"{url}/health", trust_env=False)
        except httpx.TransportError:
            return
        waiting.wait(0.01)
    raise AssertionError("it still listens")


# ── Keys ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_key_is_made_listed_and_revoked(terminal: Terminal) -> None:
    made = terminal.ask("keys", "create", "phone", "--owner", "ann", "--scope", "resolve", "--expires", "30d")

    assert re.fullmatch(r"bide_[0-9a-f]{16}_[0-9a-f]{64}", made["key"])
    listed = terminal.see("keys")
    assert re.search(rf"{made['key_id']} +phone +ann +resolve +– +in 30d", listed)
    assert made["key"] not in listed

    assert terminal.see("keys", "revoke", made["key_id"]) == f"Key {made['key_id']} is revoked.\n"
    assert terminal.see("keys", "revoke", made["key_id"]) == f"Key {made['key_id']} was revoked before.\n"
    assert re.search(r"nothing any more +– +revoked", terminal.see("keys", "list"))


def test_unknown_key_and_unknown_scope_are_refused(terminal: Terminal) -> None:
    assert terminal.fail("keys", "revoke", "abc") == (3, "✗ There is no key 'abc'. → bide keys")

    code, said = terminal.fail("keys", "create", "phone", "--scope", "everything")

    assert code == 2
    assert "read, run, resolve, admin" in said
