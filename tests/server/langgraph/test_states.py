"""States as LangGraph's SDK reads and edits them: now, at a checkpoint, inside a graph inside, and in the past."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.server.langgraph.gates import ARRIVED, GATES, LONG

FIELDS = {"values", "next", "tasks", "checkpoint", "parent_checkpoint", "metadata", "created_at", "interrupts"}
TASK_FIELDS = {"id", "name", "path", "error", "interrupts", "checkpoint", "state", "result"}


@pytest.fixture
def done(sdk: Any) -> str:
    """A thread whose run is over."""
    thread = sdk.threads.create()["thread_id"]
    sdk.runs.wait(thread, "steps", input={"goal": "sea"}, metadata={"m": 1})
    return str(thread)


@pytest.fixture
def paused(sdk: Any) -> str:
    """A thread that asks, in a graph inside its graph."""
    thread = sdk.threads.create()["thread_id"]
    sdk.runs.wait(thread, "nested", input={"goal": "sea"})
    return str(thread)


# ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_new_thread_has_an_empty_state_and_no_past(sdk: Any) -> None:
    thread = sdk.threads.create()["thread_id"]

    state = sdk.threads.get_state(thread)

    assert set(state) >= FIELDS
    assert (state["values"], state["next"], state["tasks"], state["parent_checkpoint"]) == ({}, [], [], None)
    assert sdk.threads.get_history(thread) == []


def test_state_says_where_it_stands_and_where_it_comes_from(sdk: Any, done: str) -> None:
    state = sdk.threads.get_state(done)

    assert set(state) >= FIELDS
    assert state["values"] == {"goal": "sea", "steps": ["first", "second", "third"]}
    assert (state["checkpoint"]["thread_id"], state["checkpoint"]["checkpoint_ns"]) == (done, "")
    assert state["parent_checkpoint"]["checkpoint_id"] < state["checkpoint"]["checkpoint_id"]
    metadata = state["metadata"]
    assert (metadata["source"], metadata["step"], metadata["graph_id"], metadata["m"]) == ("loop", 3, "steps", 1)


def test_state_is_read_at_a_checkpoint_however_it_is_named(sdk: Any, done: str) -> None:
    then = sdk.threads.get_history(done)[1]

    by_id = sdk.threads.get_state(done, checkpoint_id=then["checkpoint"]["checkpoint_id"])
    by_checkpoint = sdk.threads.get_state(done, checkpoint=then["checkpoint"])
    newest = sdk.threads.get_state(done, checkpoint={"thread_id": done, "checkpoint_ns": ""})

    assert by_id == by_checkpoint == then
    assert (then["next"], [task["name"] for task in then["tasks"]]) == (["third"], ["third"])
    assert set(then["tasks"][0]) == TASK_FIELDS
    assert newest == sdk.threads.get_state(done)
    with pytest.raises(NotFoundError):
        sdk.threads.get_state(done, checkpoint_id="nothing-00000001")


def test_first_state_comes_from_the_empty_one(sdk: Any, done: str) -> None:
    before = sdk.threads.get_history(done)[-1]["parent_checkpoint"]

    state = sdk.threads.get_state(done, checkpoint=before)

    assert (state["values"], state["checkpoint"]["checkpoint_id"]) == ({}, before["checkpoint_id"])
    assert state["parent_checkpoint"] is None


def test_only_what_was_asked_for_is_told_of_a_state(sdk: Any, done: str) -> None:
    checkpoint = sdk.threads.get_state(done)["checkpoint"]

    assert set(sdk.threads.get_state(done, select=["values", "next"])) == {"values", "next"}
    assert set(sdk.threads.get_state(done, checkpoint=checkpoint, select=["values"])) == {"values"}
    assert [set(one) for one in sdk.threads.get_history(done, limit=2, select=["checkpoint"])] == [{"checkpoint"}] * 2


def test_state_of_a_graph_inside_is_read_from_outside_and_by_its_own_checkpoint(sdk: Any, paused: str) -> None:
    flat, deep = sdk.threads.get_state(paused), sdk.threads.get_state(paused, subgraphs=True)
    (task,), (whole,) = flat["tasks"], deep["tasks"]

    assert (flat["next"], task["name"], task["state"]) == (["inner"], "inner", None)
    assert task["checkpoint"]["checkpoint_ns"].startswith("inner:")
    assert (whole["state"]["next"], whole["state"]["values"]["goal"]) == (["ask"], "sea")
    assert [one["value"]["question"] for one in task["interrupts"]] == ["Where?"]
    inside = sdk.threads.get_state(paused, checkpoint=task["checkpoint"])
    assert inside["next"] == ["ask"]


def test_what_is_asked_is_the_same_everywhere(sdk: Any, paused: str) -> None:
    state, thread = sdk.threads.get_state(paused), sdk.threads.get(paused)

    (asked,) = state["interrupts"]
    assert asked["value"] == {"question": "Where?", "goal": "sea"}
    assert list(thread["interrupts"].values()) == [[asked]]
    assert state["tasks"][0]["interrupts"] == [asked]


# ── History ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_past_is_told_newest_first_and_can_be_narrowed(sdk: Any, done: str) -> None:
    history = sdk.threads.get_history(done)

    assert [state["next"] for state in history] == [[], ["third"], ["second"], ["first"]]
    assert [state["metadata"]["step"] for state in history] == [3, 2, 1, 0]
    for newer, older in itertools.pairwise(history):
        assert newer["parent_checkpoint"]["checkpoint_id"] == older["checkpoint"]["checkpoint_id"]
    assert sdk.threads.get_history(done, limit=2) == history[:2]
    assert sdk.threads.get_history(done, before=history[1]["checkpoint"]) == history[2:]
    assert sdk.threads.get_history(done, before={"configurable": history[1]["checkpoint"]}, limit=1) == history[2:3]
    assert sdk.threads.get_history(done, metadata={"step": 1}) == history[2:3]
    assert sdk.threads.get_history(done, metadata={"m": 2}) == []
    assert sdk.threads.get_history(done, checkpoint={"thread_id": done, "checkpoint_ns": ""}) == history


def test_past_of_a_graph_inside_is_its_own(sdk: Any, paused: str) -> None:
    place = sdk.threads.get_state(paused)["tasks"][0]["checkpoint"]
    place = {key: place[key] for key in ("thread_id", "checkpoint_ns")}

    assert [state["next"] for state in sdk.threads.get_history(paused, checkpoint=place)] == [["ask"]]


# ── Editing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_state_is_edited_as_a_node_and_goes_on_behind_it(sdk: Any, done: str) -> None:
    before = sdk.threads.get_state(done)

    written = sdk.threads.update_state(done, {"steps": ["edited"]}, as_node="first")

    after = sdk.threads.get_state(done)
    assert written["checkpoint"] == written["configurable"] == after["checkpoint"]
    assert (after["next"], after["metadata"]["source"]) == (["second"], "update")
    assert after["parent_checkpoint"] == before["checkpoint"]
    assert sdk.runs.wait(done, "steps", input=None)["steps"][-3:] == ["edited", "second", "third"]


def test_state_is_edited_at_an_older_checkpoint_on_a_branch(sdk: Any, done: str) -> None:
    history = sdk.threads.get_history(done)
    then = history[2]["checkpoint"]

    sdk.threads.update_state(done, {"goal": "hill"}, checkpoint=then)
    assert sdk.threads.get_state(done)["values"] == {"goal": "hill", "steps": ["first"]}
    sdk.threads.update_state(done, {"goal": "lake"}, checkpoint_id=then["checkpoint_id"])
    assert sdk.threads.get_state(done)["values"] == {"goal": "lake", "steps": ["first"]}

    branches = [one for one in sdk.threads.get_history(done, limit=20) if one["parent_checkpoint"] == then]
    assert len(branches) == 3
    assert sdk.threads.get_history(done, limit=20)[-4:] == history


def test_thread_is_ended_by_an_edit_as_the_end(sdk: Any) -> None:
    thread = sdk.threads.create()["thread_id"]
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})
    assert sdk.threads.get(thread)["status"] == "interrupted"

    sdk.threads.update_state(thread, None, as_node="__end__")

    ended = sdk.threads.get(thread)
    assert (ended["status"], ended["interrupts"], ended["values"]) == ("idle", {}, {"goal": "sea", "steps": ["first"]})
    assert sdk.threads.get_state(thread)["next"] == []


def test_edit_that_does_not_fit_changes_nothing(sdk: Any, done: str) -> None:
    for values, as_node in (({"nonsense": 1}, None), ({"goal": "x"}, "nobody"), ("text", "first")):
        with pytest.raises(UnprocessableEntityError):
            sdk.threads.update_state(done, values, as_node=as_node)
    with pytest.raises(UnprocessableEntityError, match="no graph yet"):
        sdk.threads.update_state(sdk.threads.create()["thread_id"], {"goal": "x"})

    assert len(sdk.threads.get_history(done)) == 4


def test_state_of_a_thread_that_runs_is_not_edited(sdk: Any) -> None:
    thread = sdk.threads.create()["thread_id"]
    run = sdk.runs.create(thread, "road", input={"gate": thread})
    assert ARRIVED[thread].wait(LONG)

    with pytest.raises(ConflictError, match="busy"):
        sdk.threads.update_state(thread, {"steps": ["edited"]})

    GATES[thread].set()
    assert sdk.runs.join(thread, run["run_id"])["steps"] == ["set out", f"passed {thread}"]
