"""A client that is cut off after any event, in any mode, goes on from there: it sees everything, and nothing twice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import httpx
import pytest

from tests.server.conftest import Running
from tests.server.streams.conftest import Serve
from tests.server.streams.reading import Sent, opened, read, told
from tests.server.streams.scenes import ALL_MODES, WORDS

COMBINATIONS = (
    ("values",),
    ("updates", "values", "custom", "messages-tuple"),
    ("messages", "tools", "values", "checkpoints"),
    ("debug", "events", "tasks"),
    ALL_MODES,
)


@pytest.fixture
def servers(serve: Serve) -> tuple[Running, Running]:
    """Two servers over one store, and a worker."""
    return serve(), serve(worker=False)


def body_of(graph: str, modes: Any = ALL_MODES, **given: Any) -> dict[str, Any]:
    return {
        "assistant_id": graph,
        "input": {"goal": "Rome", **given},
        "stream_mode": list(modes),
        "stream_subgraphs": True,
        "if_not_exists": "create",
    }


def run_of(events: list[Sent]) -> str:
    assert events[0].event == "metadata"
    return str(events[0].data["run_id"])


def stream_of(server: Running, thread_id: str, run_id: str, modes: Any = ()) -> str:
    query = "&".join(f"stream_mode={mode}" for mode in modes)
    return f"{server.url}/threads/{thread_id}/runs/{run_id}/stream?{query}"


@pytest.mark.parametrize("modes", COMBINATIONS, ids="+".join)
def test_whoever_was_cut_off_anywhere_goes_on_there_on_another_server(servers, modes):
    here, there = servers
    whole = read(f"{here.url}/threads/t/runs/stream", body=body_of("journey", modes))
    again = stream_of(there, "t", run_of(whole), modes)

    assert whole[-1].told == ("end", {"run_id": run_of(whole), "status": "success"})
    assert told(read(again)) == told(whole), "told live, and told again"
    for count in range(1, len(whole)):
        rest = read(again, after=whole[count - 1].id)
        assert rest == whole[count:], f"cut behind event {count}, {whole[count - 1]}"


def test_ids_of_events_are_all_different_and_several_of_one_entry_count_its_parts(servers):
    here, _ = servers

    whole = read(f"{here.url}/threads/t/runs/stream", body=body_of("journey"))

    ids = [sent.id for sent in whole]
    assert len(set(ids)) == len(ids)
    assert any(str(one).endswith("~3") for one in ids), "some entries are told in several parts"


def test_reader_who_leaves_a_live_run_anywhere_misses_nothing(servers):
    here, there = servers
    modes = ("values", "updates", "messages", "custom")
    total = len(read(f"{here.url}/threads/t/runs/stream", body=body_of("walk", modes)))

    for count in range(1, total):
        thread_id = f"t-{count}"
        begun = read(f"{here.url}/threads/{thread_id}/runs/stream", body=body_of("walk", modes), most=count)
        again = stream_of(there, thread_id, run_of(begun), modes)
        rest = read(again, after=begun[-1].id)

        assert told(begun + rest) == told(read(again)), f"left behind event {count}"
        assert len(begun + rest) == total


def test_result_that_was_saved_before_its_siblings_is_told_once(servers, tmp_path):
    here, there = servers
    with opened(f"{here.url}/threads/t/runs/stream", body=body_of("siblings", folder=str(tmp_path))) as events:
        begun = []
        for sent in events:
            begun.append(sent)
            if sent.event == "updates" and "first" in sent.data:
                break
        (tmp_path / "open").touch()
        whole = [*begun, *events]

    updates = [next(iter(sent.data)) for sent in whole if sent.event == "updates"]
    results = [sent.data["name"] for sent in whole if sent.event == "tasks" and "result" in sent.data]
    assert updates == results == ["plan", "first", "second", "end"]
    assert told(read(stream_of(there, "t", run_of(whole)))) == told(whole)


def test_tokens_come_one_by_one_and_a_message_that_grows_is_told_whole_each_time(servers):
    here, _ = servers
    whole = read(f"{here.url}/threads/t/runs/stream", body=body_of("journey", ("messages", "messages-tuple")))

    tokens = [sent.data[0]["content"] for sent in whole if sent.event == "messages" and sent.data[0]["id"] == "said-1"]
    grown = [sent.data[0]["content"] for sent in whole if sent.event == "messages/partial"]

    assert "".join(tokens) == "".join(WORDS)
    assert grown[-1] == "".join(WORDS)
    assert all(later.startswith(earlier) for earlier, later in pairwise(grown))


# ── The stream of a thread ─────────────────────────────────────────────────────────────────────────────────────────


def two_turns(server: Running, modes: Any) -> None:
    """A thread that pauses, is answered by a run that takes over, and has another turn."""
    url = f"{server.url}/threads/t/runs"
    read(f"{url}/stream", body=body_of("asking", modes))
    read(f"{url}/stream", body={**body_of("asking", modes), "input": None, "command": {"resume": "yes"}})
    read(f"{url}/stream", body=body_of("asking", modes, goal="Oslo"))


@pytest.mark.requirement("Z1-26", "Z1-29")
@pytest.mark.parametrize("modes", [("messages", "values", "updates", "custom"), ("debug", "events")], ids="+".join)
def test_stream_of_a_thread_goes_on_from_any_event_across_its_runs(servers, modes):
    here, there = servers
    two_turns(here, modes)
    query = "stream_mode=run_modes&stream_mode=lifecycle&stream_mode=state_update"
    url = f"/threads/t/stream?{query}"
    done = iter(range(100))

    def is_last(sent: Sent) -> bool:
        return sent.data == {**sent.data, "status": "run_done"} and next(done) == 2 if _is_done(sent) else False

    whole = read(here.url + url, after="-", until=is_last)
    assert [sent.data["event"] for sent in whole if sent.event == "lifecycle"].count("waiting") == 2

    for count in range(1, len(whole)):
        rest = read(there.url + url, after=whole[count - 1].id, most=len(whole) - count)
        assert rest == whole[count:], f"cut behind event {count}"


def _is_done(sent: Sent) -> bool:
    return sent.event == "metadata" and sent.data.get("status") == "run_done"


# ── The thread protocol ────────────────────────────────────────────────────────────────────────────────────────────

CHANNELS = ["values", "updates", "messages", "tools", "lifecycle", "checkpoints", "tasks", "custom", "custom:progress"]


def command(server: Running, method: str, **params: Any) -> Any:
    said = {"id": 1, "method": method, "params": params}
    answer = httpx.post(f"{server.url}/threads/t/commands", json=said, timeout=60).json()
    assert answer["type"] == "success", answer
    return answer["result"]


def is_completed(sent: Sent) -> bool:
    about = sent.data["params"]
    return sent.event == "lifecycle" and not about["namespace"] and about["data"]["event"] == "completed"


def test_events_of_the_thread_protocol_have_the_same_numbers_on_every_server_and_go_on_from_any(servers):
    here, there = servers
    command(here, "run.start", assistant_id="journey", input={"goal": "Rome"})
    url, wanted = "/threads/t/stream/events", {"channels": CHANNELS}
    whole = read(here.url + url, body=wanted, until=is_completed)

    numbers = [sent.data["seq"] for sent in whole]
    assert numbers == sorted(set(numbers))
    assert read(there.url + url, body=wanted, until=is_completed) == whole
    for count in range(1, len(whole)):
        rest = read(there.url + url, body={**wanted, "since": numbers[count - 1]}, until=is_completed)
        assert rest == whole[count:], f"cut behind event {count}"


def test_numbers_of_the_thread_protocol_stay_when_older_states_are_let_go(servers, served_store):
    here, there = servers
    command(here, "run.start", assistant_id="journey", input={"goal": "Rome"})
    url, wanted = "/threads/t/stream/events", {"channels": CHANNELS}
    whole = read(here.url + url, body=wanted, until=is_completed)
    states = ("values", "checkpoints")

    served_store.prune(thread_id="t", keep_last=2)

    left = read(there.url + url, body=wanted, until=is_completed)
    assert len([sent for sent in left if sent.event == "values" and not sent.data["params"]["namespace"]]) == 2
    assert [sent.data for sent in left if sent.event not in (*states, "messages")] == [
        sent.data for sent in whole if sent.event not in (*states, "messages")
    ]
    assert all(sent in whole for sent in left if sent.event in states)
    assert served_store.verify().is_sound


# ── What is refused ────────────────────────────────────────────────────────────────────────────────────────────────


def test_event_of_another_life_of_the_thread_is_refused_and_not_answered_with_silence(servers, served_store):
    here, there = servers
    first = read(f"{here.url}/threads/t/runs/stream", body=body_of("journey", ("values",)))
    served_store.delete_thread("t")
    second = read(f"{here.url}/threads/t/runs/stream", body=body_of("asking", ("values",)))

    for url in (stream_of(there, "t", run_of(second)), f"{there.url}/threads/t/stream"):
        refused = httpx.get(url, headers={"last-event-id": str(first[-1].id)}, timeout=60)
        assert refused.status_code == 404
        assert "leave out Last-Event-ID" in refused.json()["detail"]


@pytest.mark.parametrize("given", ["12", "a.b.c", "1.2.3.4x~", "9.9.abcdef"])
def test_id_that_is_none_is_refused(servers, given):
    here, _ = servers
    whole = read(f"{here.url}/threads/t/runs/stream", body=body_of("journey", ("values",)))

    refused = httpx.get(stream_of(here, "t", run_of(whole)), headers={"last-event-id": given}, timeout=60)

    assert refused.status_code in (404, 422)
