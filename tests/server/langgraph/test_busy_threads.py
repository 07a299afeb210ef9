"""Runs that meet another one on their thread, and runs that are cancelled."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError

from tests.server.langgraph.gates import ARRIVED, GATES, LONG
from tests.server.running import until


@pytest.fixture
def gate() -> Any:
    """A gate that stays closed until a test opens it."""
    name = uuid4().hex
    yield name
    GATES[name].set()


@pytest.fixture
def busy(sdk: Any, gate: str) -> tuple[str, str]:
    """A thread whose run stands at a gate: its id, and the run's."""
    thread = str(sdk.threads.create()["thread_id"])
    sdk.runs.wait(thread, "road", input={})
    run = sdk.runs.create(thread, "road", input={"gate": gate})
    assert ARRIVED[gate].wait(LONG)
    return thread, str(run["run_id"])


BEFORE = ["set out", "passed None"]


def status(sdk: Any, thread: str, run: str) -> str:
    return str(sdk.runs.get(thread, run)["status"])


# ── Several runs of one thread ─────────────────────────────────────────────────────────────────────────────────────


def test_thread_is_busy_while_it_runs(sdk: Any, busy: tuple[str, str]) -> None:
    thread, run = busy

    assert (sdk.threads.get(thread)["status"], status(sdk, thread, run)) == ("busy", "running")
    assert [one["run_id"] for one in sdk.runs.list(thread, status="running")] == [run]
    with pytest.raises(ConflictError, match="has a live run"):
        sdk.runs.create(thread, "road", input={}, multitask_strategy="reject")


def test_run_is_put_behind_the_one_that_is_there(sdk: Any, busy: tuple[str, str], gate: str) -> None:
    thread, first = busy

    second = sdk.runs.create(thread, "road", input={"gate": ""}, multitask_strategy="enqueue")

    assert second["status"] == "pending"
    GATES[gate].set()
    result = sdk.runs.join(thread, second["run_id"])
    assert result["steps"] == [*BEFORE, "set out", f"passed {gate}", "set out", "passed "]
    assert [status(sdk, thread, run) for run in (first, second["run_id"])] == ["success", "success"]


def test_run_takes_the_place_of_another_and_goes_on_from_where_that_stood(sdk: Any, busy: tuple[str, str]) -> None:
    thread, first = busy

    result = sdk.runs.wait(thread, "road", input={"gate": ""}, multitask_strategy="interrupt")

    assert result["steps"] == [*BEFORE, "set out", "set out", "passed "]
    assert status(sdk, thread, first) == "interrupted"
    assert sdk.threads.get(thread)["status"] == "idle"


def test_run_takes_the_place_of_another_as_if_that_had_never_been(sdk: Any, busy: tuple[str, str]) -> None:
    thread, first = busy

    result = sdk.runs.wait(thread, "road", input={"gate": ""}, multitask_strategy="rollback")

    assert result["steps"] == [*BEFORE, "set out", "passed "]
    with pytest.raises(NotFoundError):
        sdk.runs.get(thread, first)


# ── Cancelling ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("waits", [False, True])
def test_run_that_is_cancelled_stops_and_keeps_what_it_has_done(
    sdk: Any, busy: tuple[str, str], *, waits: bool
) -> None:
    thread, run = busy

    sdk.runs.cancel(thread, run, wait=waits)

    until(lambda: status(sdk, thread, run) == "interrupted", "the run is cancelled")
    shown = sdk.threads.get(thread)
    assert (shown["status"], shown["values"]["steps"]) == ("idle", [*BEFORE, "set out"])
    assert sdk.runs.join(thread, run)["steps"] == [*BEFORE, "set out"]
    with pytest.raises((NotFoundError, httpx.HTTPStatusError), match=r"404|nothing to cancel"):
        sdk.runs.cancel(thread, run)


def test_run_that_is_rolled_back_is_as_if_it_had_never_been(sdk: Any, busy: tuple[str, str]) -> None:
    thread, run = busy

    sdk.runs.cancel(thread, run, wait=True, action="rollback")

    assert sdk.threads.get(thread)["values"] == {"steps": BEFORE}
    with pytest.raises(NotFoundError):
        sdk.runs.get(thread, run)
    assert sdk.runs.wait(thread, "road", input={"gate": ""})["steps"] == [*BEFORE, "set out", "passed "]


def test_first_run_of_a_thread_is_rolled_back_to_nothing(sdk: Any, gate: str) -> None:
    thread = sdk.threads.create()["thread_id"]
    run = sdk.runs.create(thread, "road", input={"gate": gate})
    assert ARRIVED[gate].wait(LONG)

    sdk.runs.cancel(thread, run["run_id"], wait=True, action="rollback")

    assert sdk.threads.get(thread)["values"] == {"steps": []}
    assert sdk.runs.wait(thread, "road", input={"gate": ""})["steps"] == ["set out", "passed "]


def test_several_runs_are_cancelled_at_once(sdk: Any, busy: tuple[str, str]) -> None:
    thread, running = busy
    queued = sdk.runs.create(thread, "road", input={})["run_id"]
    kept = sdk.runs.create(thread, "road", input={"gate": ""})["run_id"]

    sdk.runs.cancel_many(thread_id=thread, run_ids=[running, queued])

    assert [status(sdk, thread, run) for run in (running, queued)] == ["interrupted", "interrupted"]
    assert sdk.runs.join(thread, kept)["steps"][-1] == "passed "


def test_all_runs_with_a_status_are_cancelled(sdk: Any, busy: tuple[str, str], gate: str) -> None:
    thread, running = busy
    queued = sdk.runs.create(thread, "road", input={})["run_id"]

    sdk.runs.cancel_many(status="pending")
    assert [status(sdk, thread, run) for run in (running, queued)] == ["running", "interrupted"]
    sdk.runs.cancel_many(status="all", action="rollback")

    assert sdk.threads.get(thread)["values"] == {"steps": BEFORE}


def test_run_whose_reader_leaves_goes_on_or_is_cancelled_as_was_asked(sdk: Any) -> None:
    for on_disconnect, becomes in (("cancel", "interrupted"), ("continue", "success")):
        name = uuid4().hex
        thread = sdk.threads.create()["thread_id"]

        stream = sdk.runs.stream(
            thread, "road", input={"gate": name}, stream_mode="updates", on_disconnect=on_disconnect
        )
        seen = [next(stream).event, next(stream).event]
        stream.close()
        (run,) = sdk.runs.list(thread)
        if on_disconnect == "continue":
            GATES[name].set()

        assert seen == ["metadata", "updates"]
        until(lambda run=run, becomes=becomes: status(sdk, run["thread_id"], run["run_id"]) == becomes, becomes)
        GATES[name].set()


def test_run_that_is_alive_is_cancelled_when_it_is_deleted(sdk: Any, busy: tuple[str, str]) -> None:
    thread, run = busy

    sdk.runs.delete(thread, run)

    assert sdk.threads.get(thread)["status"] == "idle"
    with pytest.raises(NotFoundError):
        sdk.runs.get(thread, run)
