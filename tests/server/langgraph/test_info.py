"""What clients ask before anything else."""

from __future__ import annotations

import httpx

from bide import __version__
from tests.server.conftest import Running


def test_info_says_what_the_server_can_do(server: Running) -> None:
    told = httpx.get(f"{server.url}/info").json()

    assert told == {
        "version": __version__,
        "langgraph_py_version": "1.2.20",
        "flags": {"assistants": True, "crons": True, "langsmith": False, "strict_resume": True},
        "host": {"kind": "self-hosted", "project_id": None, "revision_id": None, "tenant_id": None},
    }


def test_ok_says_that_the_server_is_there_and_on_demand_its_database(server: Running) -> None:
    assert httpx.get(f"{server.url}/ok").json() == {"ok": True}
    assert httpx.get(f"{server.url}/ok", params={"check_db": 1}).json() == {"ok": True}

    server.app.store.database.close()

    broken = httpx.get(f"{server.url}/ok", params={"check_db": 1})
    assert (broken.status_code, broken.json()["ok"]) == (500, False)
    assert httpx.get(f"{server.url}/ok").json() == {"ok": True}
