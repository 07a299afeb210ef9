"""Texts that no database keeps, times beyond the calendar, bodies that say nothing: told so, and never a 500."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.server.conftest import Running

CRON = {"assistant_id": "chat", "schedule": "0 9 * * *"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/assistants/a%00b", None, 404),
        ("DELETE", "/assistants/a%00b", None, 404),
        ("POST", "/assistants/chat/latest", {"version": 10**30}, 422),
        ("POST", "/assistants/search", {"name": "\0", "graph_id": "\0"}, 200),
        ("POST", "/assistants/search", None, 200),
        ("POST", "/assistants/search", {"limit": 0}, 422),
        ("POST", "/assistants/search", {"select": ["nonsense"]}, 422),
        ("POST", "/assistants", {"graph_id": "chat", "name": "\0", "metadata": {"a\0": 10**40}}, 200),
        ("POST", "/assistants", {"graph_id": "chat", "assistant_id": "no id\0"}, 422),
        ("POST", "/assistants", {"graph_id": "\ud800"}, 404),
        ("GET", "/assistants/nested/graph?xray=99999999999999999999", None, 200),
        ("POST", "/threads/a%00b/runs/crons", CRON, 404),
        ("POST", "/runs/crons", {**CRON, "metadata": {"a\0": "\0"}}, 200),
        ("POST", "/runs/crons", {**CRON, "end_time": "9999-12-31T23:59:59-12:00"}, 422),
        ("POST", "/runs/crons", {**CRON, "end_time": "0001-01-01T00:00:00"}, 422),
        ("DELETE", "/runs/crons/%00", None, 404),
        ("POST", "/runs/crons/count", None, 200),
        ("POST", "/store/namespaces", None, 200),
        ("PUT", "/store/items", {"namespace": ["\0"], "key": "\ud800", "value": {"v": 10**40}}, 204),
        ("POST", "/store/items/search", {"offset": 2**60}, 422),
    ],
)
def test_odd_request_gets_an_answer(server: Running, method: str, path: str, body: Any, status: int) -> None:
    content = None if body is None else json.dumps(body)

    answer = httpx.request(method, server.url + path, content=content, headers={"content-type": "application/json"})

    assert answer.status_code == status, answer.text
    assert status == 204 or answer.json() is not None
    assert httpx.post(f"{server.url}/runs/crons/search", json={}).status_code == 200
