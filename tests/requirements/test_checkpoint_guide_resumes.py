"""Resuming by checkpoint: once, again as a fork, after a failure, with an edit, as a stream."""

from __future__ import annotations

from typing import Any

import pytest

from bide import Command, Send, StateGraph, interrupt
from bide.errors import (
    ConflictError,
    GraphError,
    ResumeError,
    UnknownThreadError,
)
from tests.requirements.graphs import Line, Work, checkpoint_ids, in_line, thread

# ── One checkpoint, several resumes ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-10")
def test_second_resume_of_a_checkpoint_is_a_fork_that_history_tells(store):
    line = Line()
    graph = line.graph().compile(store, interrupt_before=["b"])
    paused = graph.invoke({"value": 1}, thread("work"))
    graph.invoke(None, checkpoint=paused.checkpoint_id)
    first = checkpoint_ids(graph, thread("work"))

    forked = graph.invoke(None, checkpoint=paused.checkpoint_id)

    [fork] = graph.get_state_history(thread("work"), filter={"source": "fork"})
    assert forked.next == ("b",)
    assert line.ran == ["a", "b", "c"]
    assert fork.parent_config["configurable"]["checkpoint_id"] == paused.checkpoint_id
    assert checkpoint_ids(graph, thread("work"))[: len(first)] == first


@pytest.mark.requirement("T2-10")
def test_answer_to_a_checkpoint_that_was_answered_is_refused(store):
    ran = []

    def ask(state: Work) -> dict[str, Any]:
        given = interrupt("Which?")
        ran.append(given)
        return {"joined": [given]}

    graph = in_line(Work, ask).compile(store)
    paused = graph.invoke({"value": 1}, thread("work"))
    graph.invoke(Command(resume="first"), checkpoint=paused.checkpoint_id)

    with pytest.raises((ResumeError, ConflictError)):
        graph.invoke(Command(resume="second"), checkpoint=paused.checkpoint_id)

    assert ran == ["first"]
    assert graph.get_state(thread("work")).values["joined"] == ["first"]


@pytest.mark.requirement("T2-14")
def test_pauses_at_one_instant_have_checkpoints_of_their_own(store):
    graph = Line().graph().compile(store, interrupt_before=["b"])

    paused = [graph.invoke({"value": number}) for number in range(50)]

    assert len({result.checkpoint_id for result in paused}) == 50
    resumed = [graph.invoke(None, checkpoint=result.checkpoint_id)["value"] for result in paused]
    assert resumed == list(range(50))


@pytest.mark.requirement("T2-10")
def test_pause_that_was_passed_does_not_come_back_when_the_node_fails(store):
    failures, ran = ["the network is down"], []

    def b(state: Work) -> None:
        ran.append("b")
        if failures:
            raise ConnectionError(failures.pop())

    graph = in_line(Work, Line().a, b).compile(store, interrupt_before=["b"])
    paused = graph.invoke({"value": 1}, thread("work"))
    with pytest.raises(ConnectionError):
        graph.invoke(None, checkpoint=paused.checkpoint_id)

    done = graph.invoke(None, thread("work"))

    assert done.is_complete
    assert ran == ["b", "b"]


@pytest.mark.requirement("T2-01", "T2-11")
def test_input_merged_into_the_checkpoint_of_a_failure_goes_on_from_there(store):
    line = Line()

    def check(state: Work) -> dict[str, Any]:
        line.ran.append("check")
        if state["value"] < 10:
            raise ValueError("too little")
        return {"found": ["check"]}

    graph = in_line(Work, line.a, check).compile(store)
    with pytest.raises(ValueError, match="too little"):
        graph.invoke({"value": 1}, thread("work"))
    failed_at = graph.get_state(thread("work")).config["configurable"]["checkpoint_id"]

    done = graph.invoke({"value": 10}, checkpoint=failed_at)

    assert line.ran == ["a", "check", "check"]
    assert done == {"value": 10, "found": ["a", "check"]}


@pytest.mark.requirement("T2-11", "T2-13")
@pytest.mark.parametrize("how", ["checkpoint=", "update_state"])
def test_edit_at_the_pause_reaches_what_is_sent_to_the_branches(store, how):
    def branch(arg: dict[str, Any]) -> dict[str, Any]:
        return {"found": [f"branch {arg['value']}"]}

    graph = StateGraph(Work).add_node(Line().a).add_node(branch).set_entry_point("a")
    graph.add_conditional_edges("a", lambda state: [Send("branch", {"value": state["value"]})], ["branch"])
    compiled = graph.compile(store, interrupt_after=["a"])
    paused = compiled.invoke({"value": 1}, thread("work"))

    if how == "update_state":
        compiled.update_state(thread("work"), {"value": 5})
        done = compiled.invoke(None, thread("work"))
    else:
        done = compiled.invoke({"value": 5}, checkpoint=paused.checkpoint_id)

    assert done["found"] == ["a", "branch 5"]


# ── Streams, and graphs without a store ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-10")
def test_stream_resumes_from_a_checkpoint_and_shows_only_what_is_new(store):
    graph = Line().graph().compile(store, interrupt_before=["b"])
    *_, pause = graph.events({"value": 1})

    parts = list(graph.stream(None, checkpoint=pause["checkpoint"], stream_mode="updates"))

    assert parts == [{"b": {"found": ["b"]}}, {"c": {"found": ["c"]}}]


@pytest.mark.requirement("T2-11")
async def test_stream_resumes_with_merged_input_that_later_nodes_see(store):
    seen = []

    def b(state: Work) -> None:
        seen.append((state["value"], state["note"]))

    graph = in_line(Work, Line().a, b).compile(store, interrupt_before=["b"])
    paused = await graph.ainvoke({"value": 1})

    modes = {"stream_mode": "values", "checkpoint": paused.checkpoint_id}
    parts = [part async for part in graph.astream({"value": 7, "note": "by hand"}, **modes)]

    assert seen == [(7, "by hand")]
    assert parts[-1] == {"value": 7, "note": "by hand", "found": ["a"]}


@pytest.mark.requirement("T2-08")
def test_stream_ends_at_the_pause_with_an_interrupt_part(store):
    line = Line()
    graph = line.graph().compile(store, interrupt_before=["b"])

    parts = list(graph.stream({"value": 1}, thread("work"), stream_mode=["updates", "values"]))

    assert parts == [
        ("values", {"value": 1, "found": []}),
        ("updates", {"a": {"found": ["a"]}}),
        ("values", {"value": 1, "found": ["a"]}),
        ("updates", {"__interrupt__": ()}),
        ("values", {"value": 1, "found": ["a"], "__interrupt__": ()}),
    ]
    assert line.ran == ["a"]


@pytest.mark.requirement("T2-05")
def test_graph_without_pauses_needs_no_store_and_keeps_nothing():
    line = Line()
    graph = line.graph().compile()

    done = graph.invoke({"value": 1})

    assert done == {"value": 1, "found": ["a", "b", "c"]}
    assert done.checkpoint_id is None
    with pytest.raises(GraphError, match="no store"):
        graph.get_state(thread("work"))


@pytest.mark.requirement("T2-10")
def test_none_without_a_thread_or_on_an_unknown_one_is_an_error(store):
    line = Line()
    graph = line.graph().compile(store)

    with pytest.raises(UnknownThreadError, match="checkpoint="):
        graph.invoke(None)
    with pytest.raises(UnknownThreadError, match="no thread"):
        graph.invoke(None, thread("nobody"))

    assert line.ran == []
    assert store.threads() == []
