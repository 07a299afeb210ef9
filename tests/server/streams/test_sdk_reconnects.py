"""The real SDK, behind a proxy that cuts its connections all the time, reconnects by itself, and sees everything."""

from __future__ import annotations

import asyncio
from typing import Any

import langgraph_sdk._async.http
import langgraph_sdk._sync.http
import pytest
from langgraph_sdk import get_client, get_sync_client

from tests.server.conftest import Running
from tests.server.streams.conftest import Serve
from tests.server.streams.cutting import cutting
from tests.server.streams.reading import read
from tests.server.streams.scenes import ALL_MODES

MODES = ["values", "updates", "custom", "messages", "messages-tuple", "tasks"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK come back at once; it would wait for a second and more."""
    for module in (langgraph_sdk._async.http, langgraph_sdk._sync.http):
        monkeypatch.setattr(module, "_reconnect_delay", lambda *args, **kwargs: 0)


@pytest.fixture
def server(serve: Serve) -> Running:
    return serve()


def port_of(server: Running) -> int:
    return int(server.url.rpartition(":")[2])


async def by_async_client(url: str, thread_id: str, **options: Any) -> list[tuple[str, Any]]:
    client = get_client(url=url)
    try:
        return [(part.event, part.data) async for part in client.runs.stream(thread_id, "journey", **options)]
    finally:
        await client.aclose()


def streamed_by(kind: str, url: str, thread_id: str, **options: Any) -> list[tuple[str, Any]]:
    if kind == "async":
        return asyncio.run(by_async_client(url, thread_id, **options))
    with get_sync_client(url=url) as client:
        return [(part.event, part.data) for part in client.runs.stream(thread_id, "journey", **options)]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("most", [3000, 8000])
def test_client_that_is_cut_off_every_few_kilobytes_sees_what_others_see(server, kind, most):
    with cutting(port_of(server), most) as proxy:
        told = streamed_by(
            kind,
            proxy.url,
            "t",
            input={"goal": "Rome"},
            stream_mode=MODES,
            stream_subgraphs=True,
            if_not_exists="create",
        )

    run_id = told[0][1]["run_id"]
    whole = [sent.told for sent in read(f"{server.url}/threads/t/runs/{run_id}/stream")]
    assert proxy.cuts > 1
    assert told == whole


def test_every_mode_comes_through(server):
    with cutting(port_of(server), 30_000) as proxy:
        told = streamed_by(
            "sync",
            proxy.url,
            "t",
            input={"goal": "Rome"},
            stream_mode=[*ALL_MODES],
            if_not_exists="create",
        )

    run_id = told[0][1]["run_id"]
    assert proxy.cuts > 1
    assert told == [sent.told for sent in read(f"{server.url}/threads/t/runs/{run_id}/stream")]
