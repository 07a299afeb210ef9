"""Threads as LangGraph's SDK makes, finds, changes, copies and lets go of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

FIELDS = {"thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "status", "config", "values"} | {
    "error",
    "interrupts",
}
NOBODY = "00000000-0000-0000-0000-000000000000"


def word() -> str:
    """Something that only one test says."""
    return uuid4().hex


def test_thread_is_made_with_all_that_clients_take_for_granted(sdk: Any) -> None:
    made = sdk.threads.create(metadata={"team": "sales", "deep": {"list": [1, None]}})

    assert set(made) >= FIELDS
    assert UUID(made["thread_id"])
    assert made["metadata"] == {"team": "sales", "deep": {"list": [1, None]}}
    assert (made["status"], made["values"], made["interrupts"], made["error"]) == ("idle", None, {}, None)
    assert made["config"] == {"configurable": {}}
    assert datetime.fromisoformat(made["created_at"]).tzinfo is not None
    assert sdk.threads.get(made["thread_id"]) == made


def test_same_id_again_is_a_conflict_or_the_thread_that_is_there(sdk: Any) -> None:
    name = str(uuid4())
    made = sdk.threads.create(thread_id=name, metadata={"n": 1})

    with pytest.raises(ConflictError, match="already"):
        sdk.threads.create(thread_id=name)
    with pytest.raises(ConflictError):
        sdk.threads.create(thread_id=name, if_exists="raise")

    assert sdk.threads.create(thread_id=name, if_exists="do_nothing", metadata={"n": 2}) == made


def test_thread_id_may_be_any_word_and_nothing_that_is_none(sdk: Any) -> None:
    assert sdk.threads.create(thread_id=f"customer-{word()}")["thread_id"].startswith("customer-")
    with pytest.raises(UnprocessableEntityError):
        sdk.threads.create(thread_id="not a word")


def test_thread_with_a_time_to_live_says_until_when(sdk: Any) -> None:
    for ttl, strategy in ((60, "delete"), ({"ttl": 60, "strategy": "keep_latest"}, "keep_latest")):
        made = sdk.threads.create(ttl=ttl)

        shown = sdk.threads.get(made["thread_id"], include=["ttl"])["ttl"]
        begin, end = (datetime.fromisoformat(text) for text in (made["created_at"], shown["expires_at"]))
        assert (shown["strategy"], shown["ttl_minutes"]) == (strategy, 60)
        assert abs(end - begin - timedelta(minutes=60)) < timedelta(seconds=5)
        assert "ttl" not in sdk.threads.get(made["thread_id"])


def test_thread_is_made_with_a_state(sdk: Any) -> None:
    supersteps = [
        {"updates": [{"values": {"goal": "sea"}, "as_node": "__start__"}]},
        {"updates": [{"values": {"steps": ["by hand"]}, "as_node": "first"}]},
    ]

    made = sdk.threads.create(graph_id="steps", supersteps=supersteps)

    state = sdk.threads.get_state(made["thread_id"])
    assert made["values"] == state["values"] == {"goal": "sea", "steps": ["by hand"]}
    assert state["next"] == ["second"]
    assert sdk.runs.wait(made["thread_id"], "steps", input=None)["steps"] == ["by hand", "second", "third"]


def test_metadata_is_added_to_what_was_said_before(sdk: Any) -> None:
    thread = sdk.threads.create(metadata={"a": 1, "b": 1})

    changed = sdk.threads.update(thread["thread_id"], metadata={"b": 2, "c": 3}, ttl=5)
    nothing = sdk.threads.update(thread["thread_id"], metadata={"d": 4}, return_minimal=True)

    assert changed["metadata"] == {"a": 1, "b": 2, "c": 3}
    assert changed["state_updated_at"] == thread["state_updated_at"]
    assert nothing is None
    assert sdk.threads.get(thread["thread_id"], include=["ttl"])["ttl"]["ttl_minutes"] == 5
    assert sdk.threads.get(thread["thread_id"])["metadata"] == {"a": 1, "b": 2, "c": 3, "d": 4}


def test_thread_that_is_deleted_is_gone_with_all_that_belongs_to_it(sdk: Any) -> None:
    thread = sdk.threads.create()["thread_id"]
    sdk.runs.wait(thread, "steps", input={})

    assert sdk.threads.delete(thread) is None

    for look in (sdk.threads.get, sdk.threads.get_state, sdk.threads.get_history, sdk.runs.list, sdk.threads.delete):
        with pytest.raises(NotFoundError, match=f"There is no thread '{thread}'"):
            look(thread)
    with pytest.raises(NotFoundError):
        sdk.threads.update(thread, metadata={})


# ── Finding ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_threads_are_found_by_metadata_status_ids_and_what_is_in_their_state(sdk: Any) -> None:
    team, goal = word(), word()
    idle = sdk.threads.create(metadata={"team": team, "kind": {"size": 1, "colour": "red"}})["thread_id"]
    done = sdk.threads.create(metadata={"team": team, "kind": {"size": 2}})["thread_id"]
    asks = sdk.threads.create(metadata={"team": team})["thread_id"]
    fails = sdk.threads.create(metadata={"team": team})["thread_id"]
    sdk.runs.wait(done, "steps", input={"goal": goal})
    sdk.runs.wait(asks, "asking", input={"goal": goal})
    sdk.runs.wait(fails, "failing", input={}, raise_error=False)

    def found(**said: Any) -> list[str]:
        names = sorted(one["thread_id"] for one in sdk.threads.search(**{"metadata": {"team": team}, **said}))
        counted = {key: value for key, value in said.items() if key in ("metadata", "values", "status")}
        if "ids" not in said:
            assert sdk.threads.count(**{"metadata": {"team": team}, **counted}) == len(names)
        return names

    assert found() == sorted([idle, done, asks, fails])
    assert found(metadata={"team": team, "kind": {"size": 1}}) == [idle]
    assert found(metadata={"team": team, "graph_id": "asking"}) == [asks]
    assert found(status="idle") == sorted([idle, done])
    assert found(status="interrupted") == [asks]
    assert found(status="error") == [fails]
    assert found(status="busy") == []
    assert found(values={"goal": goal}) == sorted([done, asks])
    assert found(values={"goal": goal}, status="idle") == [done]
    assert found(ids=[done, asks, NOBODY]) == sorted([done, asks])


def test_threads_are_sorted_and_paged(sdk: Any) -> None:
    team = word()
    made = [sdk.threads.create(metadata={"team": team})["thread_id"] for _ in range(3)]
    sdk.threads.update(made[0], metadata={"last": True})
    sdk.runs.wait(made[1], "asking", input={})

    def names(**said: Any) -> list[str]:
        return [one["thread_id"] for one in sdk.threads.search(metadata={"team": team}, **said)]

    assert names(sort_by="created_at", sort_order="asc") == made
    assert names(sort_by="created_at", sort_order="desc") == made[::-1]
    assert names(sort_by="thread_id", sort_order="asc") == sorted(made)
    assert names(sort_by="updated_at")[0] == made[1]
    assert names(sort_by="state_updated_at", sort_order="asc") == [made[0], made[2], made[1]]
    assert names(sort_by="status", sort_order="asc")[-1] == made[1]
    assert names(sort_by="created_at", sort_order="asc", limit=2, offset=1) == made[1:]
    assert names(offset=3) == []


def test_only_what_was_asked_for_is_told_of_a_thread(sdk: Any) -> None:
    team = word()
    thread = sdk.threads.create(metadata={"team": team})["thread_id"]
    sdk.runs.wait(thread, "chat", input={"messages": [{"role": "user", "content": "hi"}]})

    paths = {"first": "values.messages[0].content", "last": "values.messages[-1].content", "none": "values.x[3].y"}
    (found,) = sdk.threads.search(metadata={"team": team}, select=["thread_id", "status"], extract=paths)

    extracted = {"first": "hi", "last": "Hello there friend", "none": None}
    assert found == {"thread_id": thread, "status": "idle", "extracted": extracted}


# ── Copying, letting go ────────────────────────────────────────────────────────────────────────────────────────────


def test_copy_has_the_state_and_the_past_and_goes_its_own_way(sdk: Any) -> None:
    thread = sdk.threads.create(metadata={"team": "a"})["thread_id"]
    sdk.runs.wait(thread, "asking", input={"goal": "sea"})

    copy = sdk.threads.copy(thread)

    assert copy["thread_id"] != thread
    assert (copy["metadata"]["team"], copy["status"]) == ("a", "interrupted")
    assert len(sdk.threads.get_history(copy["thread_id"])) == len(sdk.threads.get_history(thread))
    answered = sdk.runs.wait(copy["thread_id"], "asking", command={"resume": "north"})
    assert answered["answer"] == "north"
    assert sdk.threads.get(thread)["status"] == "interrupted"

    empty = sdk.threads.copy(sdk.threads.create(metadata={"n": 1})["thread_id"])
    assert (empty["metadata"], empty["values"]) == ({"n": 1}, None)
    with pytest.raises(NotFoundError):
        sdk.threads.copy(NOBODY)


def test_threads_are_let_go_whole_or_but_for_their_newest_state(sdk: Any) -> None:
    kept, gone = (sdk.threads.create()["thread_id"] for _ in range(2))
    for thread in (kept, gone):
        sdk.runs.wait(thread, "steps", input={"goal": "sea"})

    assert sdk.threads.prune([kept], strategy="keep_latest") == {"pruned_count": 1}
    assert sdk.threads.prune([gone, NOBODY, gone]) == {"pruned_count": 1}

    assert len(sdk.threads.get_history(kept)) == 1
    assert sdk.threads.get(kept)["values"]["steps"] == ["first", "second", "third"]
    with pytest.raises(NotFoundError):
        sdk.threads.get(gone)
