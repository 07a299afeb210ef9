"""Runs as LangGraph's SDK starts, waits for, lists, joins and deletes them, on a thread and without one."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.server.conftest import Running
from tests.server.running import until

FIELDS = {"run_id", "thread_id", "assistant_id", "created_at", "updated_at", "status", "metadata", "kwargs"} | {
    "multitask_strategy"
}
KWARGS = {"input", "command", "config", "context", "stream_mode", "interrupt_before", "interrupt_after", "webhook"} | {
    "feedback_keys",
    "temporary",
    "subgraphs",
    "resumable",
    "durability",
}


def new_thread(sdk: Any, **said: Any) -> str:
    return str(sdk.threads.create(**said)["thread_id"])


def asked(sdk: Any, thread: str) -> list[dict[str, Any]]:
    return [one for listed in sdk.threads.get(thread)["interrupts"].values() for one in listed]


# ── Starting and looking ───────────────────────────────────────────────────────────────────────────────────────────


def test_run_is_started_and_found_again_with_what_it_was_asked(sdk: Any) -> None:
    thread = new_thread(sdk, metadata={"team": "a"})
    created: list[Any] = []

    run = sdk.runs.create(
        thread,
        "steps",
        input={"goal": "sea"},
        metadata={"m": 1},
        config={"tags": ["t"], "configurable": {"model": "small"}},
        stream_mode=["values", "updates"],
        stream_resumable=True,
        durability="exit",
        on_run_created=created.append,
    )

    assert set(run) >= FIELDS
    assert set(run["kwargs"]) >= KWARGS
    assert UUID(run["run_id"])
    assert created == [{"run_id": run["run_id"], "thread_id": thread}]
    assert (run["thread_id"], run["multitask_strategy"]) == (thread, "enqueue")
    assert run["assistant_id"] == sdk.assistants.get("steps")["assistant_id"]
    assert run["metadata"] == {"created_by": "system", "team": "a", "m": 1, "graph_id": "steps"} | {
        "assistant_id": run["assistant_id"]
    }
    kwargs = run["kwargs"]
    assert (kwargs["input"], kwargs["stream_mode"], kwargs["durability"]) == (
        {"goal": "sea"},
        ["values", "updates"],
        "exit",
    )
    place = {"run_id": run["run_id"], "thread_id": thread, "graph_id": "steps", "assistant_id": run["assistant_id"]}
    assert kwargs["config"]["configurable"] == {"model": "small", **place}
    assert sdk.runs.join(thread, run["run_id"])["steps"] == ["first", "second", "third"]
    found = sdk.runs.get(thread, run["run_id"])
    assert {key: found[key] for key in ("run_id", "metadata", "kwargs")} == {
        key: run[key] for key in ("run_id", "metadata", "kwargs")
    }
    assert found["status"] == "success"


def test_graph_is_told_config_and_context_and_who_it_is(sdk: Any) -> None:
    config = {"configurable": {"model": "small"}, "tags": ["t"], "recursion_limit": 7}

    told = sdk.runs.wait(None, "telling", input={}, config=config, context={"colour": "green"})

    assert told["context"] == {"colour": "green"}
    assert (told["config"]["model"], told["config"]["tags"]) == ("small", ["t"])
    assert told["config"]["graph_id"] == "telling"
    assert told["config"]["assistant_id"] == sdk.assistants.get("telling")["assistant_id"]


def test_first_run_says_of_which_graph_a_thread_is(sdk: Any) -> None:
    thread = new_thread(sdk, metadata={"team": "a"})

    sdk.runs.wait(thread, "steps", input={})

    metadata = sdk.threads.get(thread)["metadata"]
    assistant = sdk.assistants.get("steps")["assistant_id"]
    assert metadata == {"team": "a", "graph_id": "steps", "assistant_id": assistant}
    with pytest.raises(UnprocessableEntityError, match="is one of graph 'steps'"):
        sdk.runs.create(thread, "asking", input={})


def test_runs_are_listed_newest_first(sdk: Any) -> None:
    thread = new_thread(sdk)
    for number in range(3):
        sdk.runs.wait(thread, "steps", input={"goal": str(number)})

    runs = sdk.runs.list(thread)

    assert [run["kwargs"]["input"]["goal"] for run in runs] == ["2", "1", "0"]
    assert sdk.runs.list(thread, limit=1, offset=1) == runs[1:2]
    assert sdk.runs.list(thread, status="success") == runs
    assert sdk.runs.list(thread, status="error") == []
    assert sdk.runs.list(thread, select=["run_id", "status"]) == [
        {"run_id": run["run_id"], "status": "success"} for run in runs
    ]


def test_run_that_is_deleted_is_forgotten_and_what_it_did_stays(sdk: Any) -> None:
    thread = new_thread(sdk)
    run = sdk.runs.create(thread, "steps", input={"goal": "sea"})
    sdk.runs.join(thread, run["run_id"])

    assert sdk.runs.delete(thread, run["run_id"]) is None

    for look in (sdk.runs.get, sdk.runs.delete, sdk.runs.join, sdk.runs.cancel):
        with pytest.raises((NotFoundError, httpx.HTTPStatusError), match=r"404|There is no run"):
            look(thread, run["run_id"])
    assert sdk.threads.get(thread)["values"]["goal"] == "sea"


def test_run_on_a_thread_that_is_not_there_is_refused_unless_it_may_be_made(sdk: Any) -> None:
    name = str(uuid4())

    with pytest.raises(NotFoundError, match=name):
        sdk.runs.create(name, "steps", input={})
    with pytest.raises(NotFoundError):
        sdk.runs.create(name, "steps", input={}, if_not_exists="reject")

    assert sdk.runs.wait(name, "steps", input={}, if_not_exists="create")["steps"] == ["first", "second", "third"]
    assert sdk.threads.get(name)["metadata"]["graph_id"] == "steps"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"assistant_id": "nobody"}, "Invalid assistant ID: 'nobody'"),
        ({"input": None}, "needs an input"),
        ({"input": [1]}, "Give a dict"),
        ({"input": {"nonsense": 1}}, "is a key of the graph's input"),
        ({"stream_mode": "nonsense"}, "no stream mode 'nonsense'"),
        ({"interrupt_before": ["nobody"]}, "no node 'nobody'"),
        ({"webhook": "https://127.0.0.1/hook"}, "127.0.0.1"),
        ({"after_seconds": -1}, "after_seconds"),
        ({"multitask_strategy": "nonsense"}, "multitask_strategy"),
    ],
)
def test_run_that_cannot_be_is_refused_before_it_begins(sdk: Any, said: dict[str, Any], words: str) -> None:
    thread = new_thread(sdk)

    with pytest.raises((UnprocessableEntityError, NotFoundError)) as refused:
        sdk.runs.create(thread, **{"assistant_id": "steps", "input": {}, **said})

    assert words in str(refused.value.body or refused.value)
    assert sdk.runs.list(thread) == []


def test_run_may_be_put_off(sdk: Any) -> None:
    thread = new_thread(sdk)

    later = sdk.runs.create(thread, "steps", input={}, after_seconds=3600)
    soon = sdk.runs.wait(new_thread(sdk), "steps", input={}, after_seconds=0.1)

    assert later["status"] == "pending"
    assert sdk.threads.get(thread)["status"] == "busy"
    assert soon["steps"] == ["first", "second", "third"]
    sdk.runs.cancel(thread, later["run_id"])


# ── Failing ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_that_fails_says_why_wherever_one_looks(sdk: Any) -> None:
    thread = new_thread(sdk)

    result = sdk.runs.wait(thread, "failing", input={}, raise_error=False)

    error = {"error": "ValueError", "message": "no way"}
    assert result == {"__error__": error}
    shown = sdk.threads.get(thread)
    assert (shown["status"], shown["error"]) == ("error", error)
    assert [run["status"] for run in sdk.runs.list(thread)] == ["error"]
    assert sdk.threads.get_state(thread)["tasks"][0]["error"] == "ValueError('no way')"
    with pytest.raises(Exception, match="ValueError: no way"):
        sdk.runs.wait(thread, "failing", input={})
    assert sdk.runs.join(thread, sdk.runs.list(thread)[0]["run_id"]) == {"__error__": error}


# ── Pauses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_that_pauses_is_over_and_its_thread_is_interrupted(sdk: Any) -> None:
    thread = new_thread(sdk)

    result = sdk.runs.wait(thread, "asking", input={"goal": "sea"})

    (question,) = result.pop("__interrupt__")
    assert result == {"goal": "sea", "steps": ["first"]}
    assert question["value"] == {"question": "Where?", "goal": "sea"}
    assert asked(sdk, thread) == [question]
    assert (sdk.threads.get(thread)["status"], sdk.runs.list(thread)[0]["status"]) == ("interrupted", "success")
    joined = sdk.runs.join(thread, sdk.runs.list(thread)[0]["run_id"])
    assert joined == {**result, "__interrupt__": [question]}


@pytest.mark.parametrize("is_named", [False, True])
def test_answer_starts_another_run_which_goes_on(sdk: Any, *, is_named: bool) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})
    (question,) = asked(sdk, thread)
    resume = {question["id"]: "north"} if is_named else "north"

    result = sdk.runs.wait(thread, "asking", command={"resume": resume})

    assert result == {"goal": "sea", "steps": ["first", "asked", "third"], "answer": "north"}
    assert [run["status"] for run in sdk.runs.list(thread)] == ["success", "success"]
    assert (sdk.threads.get(thread)["status"], asked(sdk, thread)) == ("idle", [])


def test_command_wins_over_an_input_beside_it(sdk: Any) -> None:
    for given in ({}, {"goal": "hill"}):
        thread = new_thread(sdk)
        sdk.runs.wait(thread, "asking", input={"goal": "sea"})

        result = sdk.runs.wait(thread, "asking", input=given, command={"resume": "north"})

        assert (result["goal"], result["answer"]) == ("sea", "north")


def test_answer_comes_with_an_update(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})

    result = sdk.runs.wait(thread, "asking", command={"resume": "north", "update": {"goal": "lake"}})

    assert result == {"goal": "lake", "steps": ["first", "asked", "third"], "answer": "north"}


def test_question_is_left_by_going_elsewhere(sdk: Any) -> None:
    ended, moved = new_thread(sdk), new_thread(sdk)
    for thread in (ended, moved):
        sdk.runs.wait(thread, "asking", input={"goal": "sea"})

    sdk.runs.wait(ended, "asking", command={"goto": "__end__"})
    result = sdk.runs.wait(moved, "asking", command={"goto": "third", "update": {"goal": "hill"}})

    assert (sdk.threads.get(ended)["status"], sdk.threads.get_state(ended)["next"]) == ("idle", [])
    assert result == {"goal": "hill", "steps": ["first", "third"]}
    assert sdk.threads.get(moved)["status"] == "idle"
    sent = sdk.runs.wait(new_thread(sdk), "asking", command={"goto": {"node": "third", "input": {}}})
    assert sent["steps"] == ["third"]


def test_several_questions_are_answered_by_name_some_now_and_some_later(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "both", input={"goal": "sea"})
    ids = {"then" if one["value"] == "And then?" else "where": one["id"] for one in asked(sdk, thread)}

    with pytest.raises(UnprocessableEntityError, match="2 open questions"):
        sdk.runs.create(thread, "both", command={"resume": "home"})
    first = sdk.runs.wait(thread, "both", command={"resume": {ids["then"]: "home"}})
    assert [one["id"] for one in first["__interrupt__"]] == [ids["where"]]
    last = sdk.runs.wait(thread, "both", command={"resume": {ids["where"]: "north"}})

    assert (last["answer"], sorted(last["steps"])) == ("north", ["asked", "other home"])


def test_answer_that_comes_late_is_refused(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})
    (question,) = asked(sdk, thread)
    sdk.runs.wait(thread, "asking", command={"resume": "north"})

    for resume in ("south", {question["id"]: "south"}):
        for strict in (None, True):
            with pytest.raises(ConflictError):
                sdk.runs.create(thread, "asking", command={"resume": resume}, strict_resume=strict)

    assert len(sdk.runs.list(thread)) == 2
    assert sdk.threads.get(thread)["values"]["answer"] == "north"


def test_new_input_on_a_thread_that_asks_begins_anew(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})
    (old,) = asked(sdk, thread)

    result = sdk.runs.wait(thread, "asking", input={"goal": "hill"})

    (new,) = result["__interrupt__"]
    assert (new["value"]["goal"], result["steps"]) == ("hill", ["first", "first"])
    assert new["id"] != old["id"]


@pytest.mark.parametrize(
    ("where", "stops"),
    [
        ({"interrupt_before": ["second"]}, [["second"], []]),
        ({"interrupt_after": ["second"]}, [["third"], []]),
        ({"interrupt_before": "*"}, [["first"], ["second"], ["third"], []]),
        ({"interrupt_after": "*"}, [["second"], ["third"], []]),
        ({"interrupt_before": ["third"], "interrupt_after": ["first"]}, [["second"], ["third"], []]),
    ],
)
def test_run_pauses_where_it_was_told_to_and_goes_on_without_input(
    sdk: Any, where: dict[str, Any], stops: list[list[str]]
) -> None:
    thread = new_thread(sdk)
    seen = []

    given: Any = {"goal": "sea"}
    for _ in stops:
        result = sdk.runs.wait(thread, "steps", input=given, **where)
        given = None
        seen.append(sdk.threads.get_state(thread)["next"])
        assert "__interrupt__" not in result
        assert not seen[-1] or sdk.threads.get(thread)["status"] == "interrupted"

    assert seen == stops
    assert result["steps"] == ["first", "second", "third"]


# ── From a checkpoint ──────────────────────────────────────────────────────────────────────────────────────────────


def test_input_begins_over_the_state_of_the_checkpoint_that_it_names(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "steps", input={"goal": "sea"})
    history = sdk.threads.get_history(thread)

    newest = sdk.runs.wait(thread, "steps", input={"goal": "hill"}, checkpoint=history[0]["checkpoint"])
    older = sdk.runs.wait(
        thread, "steps", input={"goal": "lake"}, checkpoint_id=history[2]["checkpoint"]["checkpoint_id"]
    )
    anew = sdk.runs.wait(thread, "steps", input={"goal": "moor"}, checkpoint=history[-1]["parent_checkpoint"])
    config = {"configurable": {"checkpoint_id": history[2]["checkpoint"]["checkpoint_id"]}}
    configured = sdk.runs.wait(thread, "steps", input={"goal": "bay"}, config=config)

    whole = ["first", "second", "third"]
    assert newest == {"goal": "hill", "steps": [*whole, *whole]}
    assert older == {"goal": "lake", "steps": ["first", *whole]}
    assert anew == {"goal": "moor", "steps": whole}
    assert configured == {"goal": "bay", "steps": ["first", *whole]}


def test_run_without_input_goes_on_from_the_checkpoint_that_it_names(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})
    sdk.runs.wait(thread, "asking", command={"resume": "north"})
    before = next(one for one in sdk.threads.get_history(thread) if one["next"] == ["ask"])

    again = sdk.runs.wait(thread, "asking", input=None, checkpoint=before["checkpoint"])
    answered = sdk.runs.wait(thread, "asking", command={"resume": "south"})

    assert again["__interrupt__"][0]["value"]["goal"] == "sea"
    assert answered == {"goal": "sea", "steps": ["first", "asked", "third"], "answer": "south"}


def test_answer_may_name_the_newest_checkpoint_and_no_other(sdk: Any) -> None:
    thread = new_thread(sdk)
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})
    newest, older = (one["checkpoint"] for one in sdk.threads.get_history(thread, limit=2))

    with pytest.raises(ConflictError, match="not the newest"):
        sdk.runs.create(thread, "asking", command={"resume": "north"}, checkpoint=older)
    result = sdk.runs.wait(thread, "asking", command={"resume": "north"}, checkpoint=newest)

    assert result["answer"] == "north"


# ── Without a thread ───────────────────────────────────────────────────────────────────────────────────────────────


def test_run_without_a_thread_has_one_of_its_own_which_goes_with_it(
    sdk: Any, twins: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bide.store.passing.LINGER", 100)
    run = sdk.runs.create(None, "steps", input={"goal": "sea"})
    kept = sdk.runs.create(None, "steps", input={"goal": "sea"}, on_completion="keep")

    assert sdk.runs.wait(None, "steps", input={"goal": "sea"})["steps"] == ["first", "second", "third"]
    assert (run["kwargs"]["temporary"], kept["kwargs"]["temporary"]) == (True, False)
    assert sdk.runs.join(kept["thread_id"], kept["run_id"])["goal"] == "sea"
    until(lambda: twins.app.store.owner_of(run["thread_id"]) is None, "the thread is gone")
    assert sdk.threads.get(kept["thread_id"])["status"] == "idle"


def test_several_runs_are_started_at_once(sdk: Any) -> None:
    runs = sdk.runs.create_batch([{"assistant_id": "steps", "input": {"goal": str(n)}} for n in range(3)])

    assert [run["kwargs"]["input"]["goal"] for run in runs] == ["0", "1", "2"]
    assert len({run["thread_id"] for run in runs}) == 3
