"""Two servers, each a process with a store and a worker of its own, over one database: neither knows of the other, and
to their clients they are one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest

from bide import Store
from tests.server.streams.processes import Nursery, Served
from tests.server.streams.reading import CLIENT, Sent, opened, read, told
from tests.server.streams.scenes import ALL_MODES

pytestmark = pytest.mark.slow

MANY = 6
"""So many threads at once that both workers may have something to do."""
THREADS = [f"t-{number}" for number in range(MANY)]


@pytest.fixture
def pair(nursery: Nursery, database: str) -> tuple[Served, Served]:
    """Two servers at once."""
    return nursery.server(database), nursery.server(database)


def body_of(graph: str, folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    given = {"goal": "Rome", "folder": str(folder)}
    return {"assistant_id": graph, "input": given, "stream_mode": ALL_MODES, "if_not_exists": "create"}


def ledger(folder: Path) -> Counter[str]:
    return Counter((folder / "ledger.txt").read_text(encoding="utf-8").split("\n")[:-1])


def events_until_cut(url: str, body: Any, together: Barrier) -> list[Sent]:
    """Read a stream until its server dies, which it does when all of them have come half way."""
    events: list[Sent] = []
    try:
        with opened(url, body=body) as stream:
            for sent in stream:
                events.append(sent)
                if sent.told == ("custom", {"half": 1}):
                    together.wait(60)
    except httpx.TransportError:
        return events
    raise AssertionError("the stream ended, and was not cut")


def test_clients_of_a_server_that_is_killed_go_on_at_the_one_beside_it(nursery: Nursery, pair, database, tmp_path):
    dies, stays = pair
    together = Barrier(MANY, action=lambda: nursery.kill(dies.pid))

    def begun_of(thread_id: str) -> list[Sent]:
        body = body_of("gated", tmp_path / thread_id)
        return events_until_cut(f"{dies.url}/threads/{thread_id}/runs/stream", body, together)

    with ThreadPoolExecutor(MANY) as clients:
        begun = dict(zip(THREADS, clients.map(begun_of, THREADS), strict=True))
    for thread_id in THREADS:
        (tmp_path / thread_id / "open").touch()

    for thread_id, before in begun.items():
        url = f"{stays.url}/threads/{thread_id}/runs/{before[0].data['run_id']}/stream"
        url += "?" + "&".join(f"stream_mode={mode}" for mode in ALL_MODES)
        rest = read(url, after=before[-1].id)
        assert before + rest == read(url), "nothing is missing, and nothing comes twice"
        attempts = [sent.data["attempt"] for sent in before + rest if sent.event == "metadata"]
        assert attempts in ([1], [1, 2]), "it was driven beside the server that died, or begun again there"
        assert ledger(tmp_path / thread_id) == {"plan": 1, "gate": len(attempts), "end": 1}
    nursery.kill(stays.pid)
    with Store.open(database) as store:
        assert store.verify().is_sound


def test_answer_at_one_server_wakes_whoever_follows_at_the_other(nursery: Nursery, pair, database, tmp_path):
    here, there = pair
    servers = dict(zip(THREADS, [here, there] * MANY, strict=False))
    for thread_id, begins in servers.items():
        read(f"{begins.url}/threads/{thread_id}/runs/stream", body=body_of("asking", tmp_path / thread_id))
    waits = CLIENT.get(f"{there.url}/waits").json()["waits"]
    assert sorted(wait["thread_id"] for wait in waits) == THREADS

    with ExitStack() as until_the_end:
        streams = [
            until_the_end.enter_context(opened(f"{here.url}/threads/{thread_id}/stream?stream_mode=lifecycle"))
            for thread_id in THREADS
        ]
        feed = until_the_end.enter_context(opened(f"{here.url}/events"))
        with ThreadPoolExecutor(MANY) as clients:
            answers = list(clients.map(lambda wait: answered(there, wait["id"]), waits))
        heard = [until_done(stream) for stream in streams]
        kinds = Counter(one.event for one in until_all_are_done(feed))

    assert answers == ["resumed"] * MANY
    for lifecycle in heard:
        assert [kind for kind in lifecycle if kind in ("answered", "done")] == ["answered", "done"]
    assert (kinds["wait.answered"], kinds["run.done"]) == (MANY, MANY)
    for thread_id in THREADS:
        assert ledger(tmp_path / thread_id) == {"plan": 1, "answered yes": 1, "end": 1}
        seen = [read(f"{one.url}/threads/{thread_id}/stream", after="-", until=is_over) for one in pair]
        assert told(seen[0]) == told(seen[1]), "both tell the same"
    for server in pair:
        nursery.kill(server.pid)
    with Store.open(database) as store:
        assert store.verify().is_sound


def answered(server: Served, wait_id: str) -> str:
    return str(CLIENT.post(f"{server.url}/waits/{wait_id}/answer", json={"value": "yes"}).json()["status"])


def until_done(stream: Iterator[Sent]) -> list[str]:
    heard = []
    for sent in stream:
        heard.append(sent.data.get("event"))
        if heard[-1] == "done":
            break
    return heard


def until_all_are_done(feed: Iterator[Sent]) -> Iterator[Sent]:
    left = MANY
    while left:
        sent = next(feed)
        left -= sent.event == "run.done"
        yield sent


def is_over(sent: Sent) -> bool:
    """Whether the last step of a thread is told."""
    return sent.event == "values" and sent.data.get("seen") == ["plan", "ask", "end"]
