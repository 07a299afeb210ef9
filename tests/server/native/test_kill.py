"""A server dies by SIGKILL while it takes an answer: whoever asks again, under the same key, is told the truth."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from bide import Bide, Store
from tests.server.native.world import graphs

PROGRAM = Path(__file__).parent / "programs" / "mortal_server.py"
HEADERS = {"idempotency-key": "k-1"}


@contextmanager
def server(database: str, failpoint: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own."""
    environment = {**os.environ, "BIDE_FAILPOINT": failpoint}
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), database], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


@pytest.fixture(params=("file", "postgres"))
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"sqlite:///{tmp_path / 'bide.db'}"
    return str(request.getfixturevalue("postgres_database"))


@pytest.mark.requirement("Z1-08")
@pytest.mark.parametrize(
    ("point", "first_time"), [("wake:settle_wait", "resumed"), ("wake:committed", "already_resolved")]
)
def test_answer_that_was_cut_short_is_given_again_under_its_key_and_counts_once(database, point, first_time):
    with Store.open(database) as store:
        app = Bide(store, graphs())
        app.start("question", {}, thread_id="t")
        app.run_ready()
        wait_id = app.waits()[0].id
    address, body = f"/waits/{wait_id}/answer", {"value": 7}

    with server(database, point) as (process, url):
        with pytest.raises(httpx.TransportError):
            httpx.post(url + address, json=body, headers=HEADERS, timeout=60)
        assert process.wait(30) == -signal.SIGKILL

    with server(database) as (_, url):
        told = [httpx.post(url + address, json=body, headers=HEADERS, timeout=60).json() for _ in range(2)]

    assert [one["status"] for one in told] == [first_time, "already_resolved"]
    with Store.open(database) as store:
        app = Bide(store, graphs())
        app.run_ready()
        assert app.get("t").values["answer"] == 7
        assert [event.kind for event in store.events("t")].count("wait.answered") == 1
