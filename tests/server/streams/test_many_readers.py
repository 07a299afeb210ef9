"""Many who follow, on several servers; those who read slowly, and those who leave."""

from __future__ import annotations

import asyncio
import gc
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bide import Bide, Store
from bide.server.streams.hub import Hub
from tests.server.conftest import Running
from tests.server.running import until
from tests.server.streams.conftest import Serve
from tests.server.streams.processes import Nursery
from tests.server.streams.reading import CLIENT, Sent, opened, read
from tests.server.streams.scenes import all_graphs

MANY = 300


def hub_of(server: Running) -> Hub:
    assert server.api is not None
    found: Hub = server.api.state.bide.hub
    return found


def body_of(graph: str, **given: Any) -> dict[str, Any]:
    return {
        "assistant_id": graph,
        "input": {"goal": "Rome", **given},
        "stream_mode": ["values", "updates", "custom"],
        "if_not_exists": "create",
    }


# ── Several servers ────────────────────────────────────────────────────────────────────────────────────────────────


def is_answered(sent: Sent) -> bool:
    return sent.event == "lifecycle" and sent.data["event"] == "done"


@pytest.mark.requirement("Z1-04", "Z1-26", "Z1-29")
def test_one_starts_here_another_follows_there_and_hears_that_it_waits_and_goes_on(serve: Serve):
    here, there = serve(), serve()
    url = f"{there.url}/threads/t/stream?stream_mode=run_modes&stream_mode=lifecycle"
    CLIENT.post(f"{here.url}/threads", json={"thread_id": "t"})
    with opened(url) as follows, opened(f"{there.url}/events") as feed:
        read(f"{here.url}/threads/t/runs/stream", body=body_of("asking"))
        waiting = next(sent for sent in follows if sent.event == "lifecycle" and sent.data["event"] == "waiting")
        wait_id = CLIENT.get(f"{there.url}/waits?thread_id=t").json()["waits"][0]["id"]
        answered = CLIENT.post(f"{here.url}/waits/{wait_id}/answer", json={"value": "yes"})
        after = [waiting]
        for sent in follows:
            after.append(sent)
            if is_answered(sent):
                break
        kinds = []
        for sent in feed:
            kinds.append(sent.event)
            if sent.event == "run.done":
                break

    assert answered.status_code == 200
    assert {"ask": {"answer": "yes", "seen": ["ask"]}} in [sent.data for sent in after if sent.event == "updates"]
    assert [kind for kind in kinds if kind in ("run.waiting", "wait.answered", "run.done")] == [
        "run.waiting",
        "wait.answered",
        "run.done",
    ]


def test_thread_that_is_deleted_while_it_is_followed_ends_its_streams(serve: Serve, served_store):
    server = serve()
    read(f"{server.url}/threads/t/runs/stream", body=body_of("asking"))
    with opened(f"{server.url}/threads/t/stream", after="-") as follows:
        assert next(follows).event == "metadata"
        served_store.delete_thread("t")
        rest = list(follows)

    assert all(sent.event != "error" for sent in rest)
    until(lambda: hub_of(server).followers == 0, "nobody follows any more")


# ── Many ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Crowd:
    """Connections that follow threads, on one event loop."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.news: asyncio.Queue[int] = asyncio.Queue()
        self.tasks: list[asyncio.Task[None]] = []

    async def follow(self, number: int, thread_id: str) -> None:
        host, port = self.server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            request = f"GET /threads/{thread_id}/stream?stream_mode=lifecycle HTTP/1.1\r\nHost: {host}\r\n\r\n"
            writer.write(request.encode())
            while line := await reader.readline():
                if line.startswith(b"data:") and b'"event":"done"' in line:
                    await self.news.put(number)
        finally:
            writer.close()

    async def gather(self, threads: list[str]) -> None:
        self.tasks = [asyncio.create_task(self.follow(number, one)) for number, one in enumerate(threads)]
        await self._until(len(threads))

    async def _until(self, count: int) -> None:
        hub = hub_of(self.server)
        await asyncio.to_thread(until, lambda: hub.followers == count, f"{count} follow")

    async def leave(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self._until(0)


async def test_hundreds_who_follow_one_thread_all_hear_of_it_and_when_they_leave_nothing_is_left(serve: Serve):
    server = serve()
    await asyncio.to_thread(CLIENT.post, f"{server.url}/threads", json={"thread_id": "t", "if_exists": "do_nothing"})
    crowd = Crowd(server)
    await crowd.gather(["t"] * MANY)

    await asyncio.to_thread(CLIENT.post, f"{server.url}/threads/t/runs", json=body_of("walk"))
    heard = {await asyncio.wait_for(crowd.news.get(), 60) for _ in range(MANY)}

    assert heard == set(range(MANY))
    await crowd.leave()
    assert not hub_of(server)._watches
    assert not hub_of(server)._known


async def test_hundreds_who_follow_different_threads_cost_one_look_at_a_time(serve: Serve, served_store, monkeypatch):
    server = serve()
    looks: list[int] = []
    at_once: list[int] = []
    peek = Hub._peek

    def counted(hub: Hub, wanted: list[str]) -> Any:
        at_once.append(1)
        looks.append(len(wanted))
        assert len(at_once) == 1, "two look at the same time"
        try:
            return peek(hub, wanted)
        finally:
            at_once.pop()

    monkeypatch.setattr(Hub, "_peek", counted)
    threads = [f"t-{number}" for number in range(MANY)]
    for thread_id in threads:
        CLIENT.post(f"{server.url}/threads", json={"thread_id": thread_id})
    crowd = Crowd(server)
    await crowd.gather(threads)
    looks.clear()

    await asyncio.to_thread(CLIENT.post, f"{server.url}/threads/t-7/runs", json=body_of("walk"))
    assert await asyncio.wait_for(crowd.news.get(), 60) == 7

    assert crowd.news.empty(), "nobody else was told anything"
    assert max(looks) == MANY
    await crowd.leave()


def test_reader_who_leaves_while_something_is_sent_to_it_is_let_go_at_once(serve: Serve, served_store):
    server = serve()
    read(f"{server.url}/threads/t/runs/stream", body=body_of("pouring") | {"input": {"parts": 40, "bulk": 250_000}})
    hub = hub_of(server)
    gc.disable()  # nobody else tidies up
    try:
        with opened(f"{server.url}/threads/t/stream", after="-") as follows:
            next(follows)
            until(lambda: hub.followers == 1, "somebody follows, and does not read on")

        until(lambda: hub.followers == 0, "nobody follows any more")
        assert not gc.isenabled()
    finally:
        gc.enable()


# ── Slow ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MEGABYTE = 1024 * 1024
PARTS, BULK = 200, 250_000


def memory_of(pid: int) -> int:
    """How many bytes a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.slow
def test_reader_who_does_not_read_costs_the_server_little_and_gets_everything_in_the_end(nursery: Nursery, tmp_path):
    database = f"sqlite:///{tmp_path / 'bide.db'}"
    server = nursery.server(database, worker=False)
    with Store.open(database) as store, ExitStack() as until_the_end:
        app = Bide(store, all_graphs())
        run = app.start("pouring", {"parts": PARTS, "bulk": BULK}, thread_id="t", tell=("custom",))
        url = f"{server.url}/threads/t/runs/{run.run_id}/stream?stream_mode=custom"
        slow = [until_the_end.enter_context(opened(url)) for _ in range(5)]  # and read nothing of it
        before = memory_of(server.pid)
        app.run_ready()
        assert app.get("t").status == "done"
        CLIENT.get(f"{server.url}/ok")
        grown = memory_of(server.pid) - before

        numbers = [sent.data["number"] for sent in slow[0] if sent.event == "custom"]

    assert grown < 40 * MEGABYTE, f"{grown / MEGABYTE:.0f} MB more, for five who do not read 50 MB"
    assert numbers == list(range(PARTS))
    nursery.kill(server.pid)
