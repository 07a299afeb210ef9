"""Servers die by SIGKILL in the middle of streams: whoever comes back sees exactly what was missed."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from bide import Store
from tests.server.streams.processes import Nursery
from tests.server.streams.reading import CLIENT, Sent, opened, read, told

pytestmark = pytest.mark.slow

MODES = ["values", "updates", "custom", "messages-tuple", "messages"]
STEPS = ["plan", "talk", "gate", "end"]


def body_of(folder: Path, graph: str = "gated") -> dict[str, Any]:
    given = {"goal": "Rome", "folder": str(folder)}
    return {"assistant_id": graph, "input": given, "stream_mode": MODES, "if_not_exists": "create"}


def read_until_cut(url: str, body: Any, is_time: Any = None, cut: Any = None) -> list[Sent]:
    """Read a stream; when it is time, have it cut, and read on until it breaks."""
    events: list[Sent] = []
    try:
        with opened(url, body=body) as stream:
            for sent in stream:
                events.append(sent)
                if is_time is not None and is_time(sent):
                    cut()
    except httpx.TransportError:
        return events
    raise AssertionError("the stream ended, and was not cut")


def until_it_breaks(stream: Iterator[Sent]) -> list[Sent]:
    """Read a stream to its end, or until it breaks."""
    events = []
    with suppress(httpx.TransportError):
        events.extend(stream)
    return events


def is_half(sent: Sent) -> bool:
    return sent.told == ("custom", {"half": 1})


def ledger(folder: Path) -> Counter[str]:
    return Counter((folder / "ledger.txt").read_text(encoding="utf-8").split("\n")[:-1])


def check_each_step_is_told_once(events: list[Sent]) -> None:
    assert [next(iter(sent.data)) for sent in events if sent.event == "updates"] == STEPS
    seen = [sent.data["seen"] for sent in events if sent.event == "values"]
    assert seen == [STEPS[:count] for count in range(len(STEPS) + 1)]
    assert events[-1].told == ("end", {"run_id": events[0].data["run_id"], "status": "success"})
    ids = [sent.id for sent in events]
    assert len(set(ids)) == len(ids)


@pytest.mark.requirement("Z1-26", "Z1-29")
def test_server_that_drives_runs_is_killed_in_the_middle_of_a_stream(nursery: Nursery, database, tmp_path):
    server = nursery.server(database)
    url = f"{server.url}/threads/t/runs/stream"

    begun = read_until_cut(url, body_of(tmp_path), is_half, lambda: nursery.kill(server.pid))
    (tmp_path / "open").touch()
    other = nursery.server(database)
    again = f"{other.url}/threads/t/runs/{begun[0].data['run_id']}/stream"
    rest = read(again, after=begun[-1].id)

    check_each_step_is_told_once(begun + rest)
    assert told(read(again)) == told(begun + rest)
    attempts = [sent.data["attempt"] for sent in begun + rest if sent.event == "metadata"]
    assert attempts == [1, 2], "the node that was cut short is told to begin again"
    halves = [sent.data["half"] for sent in begun + rest if sent.event == "custom" and "half" in sent.data]
    assert halves == [1, 1, 2]
    assert ledger(tmp_path) == {"plan": 1, "gate": 2, "end": 1}
    with Store.open(database) as store:
        assert store.verify().is_sound


def test_server_is_killed_while_a_worker_elsewhere_goes_on(nursery: Nursery, database, tmp_path):
    server = nursery.server(database, worker=False)
    worker = nursery.worker(database)
    url = f"{server.url}/threads/t/runs/stream"

    begun = read_until_cut(url, body_of(tmp_path), is_half, lambda: nursery.kill(server.pid))
    (tmp_path / "open").touch()
    other = nursery.server(database, worker=False)
    again = f"{other.url}/threads/t/runs/{begun[0].data['run_id']}/stream"
    rest = read(again, after=begun[-1].id)

    check_each_step_is_told_once(begun + rest)
    assert told(read(again)) == told(begun + rest)
    assert [sent.event for sent in begun + rest].count("metadata") == 1
    assert ledger(tmp_path) == {"plan": 1, "gate": 1, "end": 1}
    nursery.kill(worker)


POINTS = (
    "start:committed",
    "enter:committed",
    "tell:written",
    "tell:committed",
    "commit:insert_event@5",
    "commit:committed@2",
    "commit:end_run",
    "commit:committed@4",
)


@pytest.mark.parametrize("point", POINTS)
def test_server_dies_where_it_writes_and_whoever_reads_its_stream_misses_nothing(nursery: Nursery, point, tmp_path):
    database = f"sqlite:///{tmp_path / 'bide.db'}"
    server = nursery.server(database, point=point)
    if not point.startswith("tell:"):
        (tmp_path / "open").touch()

    begun = read_until_cut(f"{server.url}/threads/t/runs/stream", body_of(tmp_path))
    assert nursery.ended(server.pid) == -signal.SIGKILL
    (tmp_path / "open").touch()
    other = nursery.server(database)
    run_id = CLIENT.get(f"{other.url}/threads/t/runs").json()[0]["run_id"]
    again = f"{other.url}/threads/t/runs/{run_id}/stream"
    rest = read(again, after=begun[-1].id if begun else None)

    check_each_step_is_told_once(begun + rest)
    assert told(read(again)) == told(begun + rest)
    with Store.open(database) as store:
        assert store.verify().is_sound


def test_server_that_is_asked_to_stop_ends_its_streams_at_once_and_another_goes_on(
    nursery: Nursery, database, tmp_path
):
    server = nursery.server(database, worker=False, heartbeat=60.0)
    worker = nursery.worker(database)
    with (
        opened(f"{server.url}/threads/t/runs/stream", body=body_of(tmp_path)) as stream,
        opened(f"{server.url}/events") as feed,
    ):
        begun = []
        for sent in stream:
            begun.append(sent)
            if is_half(sent):
                break
        with opened(f"{server.url}/threads/t/stream") as thread, opened(f"{server.url}/inbox/live") as inbox:
            assert nursery.kill(server.pid, signal.SIGTERM) == 0

            begun += until_it_breaks(stream)
            for other_stream in (thread, feed, inbox):
                until_it_breaks(other_stream)
            assert [sent.event for sent in begun].count("end") == 0
    (tmp_path / "open").touch()
    other = nursery.server(database, port=server.port, worker=False)

    again = f"{other.url}/threads/t/runs/{begun[0].data['run_id']}/stream"
    check_each_step_is_told_once([*begun, *read(again, after=begun[-1].id)])
    nursery.kill(worker)
