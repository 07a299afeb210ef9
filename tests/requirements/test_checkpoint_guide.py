"""Save, review, resume: the guide to checkpoints, as behaviour (T2-01, T2-05 … T2-14)."""

from __future__ import annotations

from typing import Any

import pytest

from bide import END, Command, CompiledGraph, MemorySaver, StateGraph, get_config, interrupt
from bide.errors import (
    GraphError,
    InterruptError,
    InvalidUpdateError,
    UnknownCheckpointError,
    UnstorableValueError,
)
from tests.requirements.graphs import checkpoint_ids, in_line, thread

REVIEW = {"input": str, "data": dict[str, Any], "approved": bool, "result": str}


class Reviewed:
    """prepare → review → execute, with a note of every run of a node."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def prepare(self, state: dict[str, Any]) -> dict[str, Any]:
        self.ran.append("prepare")
        return {"data": {"processed": state["input"].upper()}}

    def review(self, state: dict[str, Any]) -> None:
        self.ran.append("review")

    def execute(self, state: dict[str, Any]) -> dict[str, Any]:
        self.ran.append("execute")
        if state.get("approved"):
            return {"result": f"done: {state['data']['processed']}"}
        return {"result": "Rejected by human"}

    def compile(self, store: Any, **options: Any) -> CompiledGraph:
        return in_line(REVIEW, self.prepare, self.review, self.execute).compile(store, **options)


PREPARED = {"input": "raw", "data": {"processed": "RAW"}}


# ── What checkpoints are for ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-01", "T2-14")
def test_long_work_is_put_away_and_taken_up_where_it_was(open_file):
    flow = Reviewed()
    paused = flow.compile(open_file(), interrupt_before=["review"]).invoke({"input": "raw"})

    done = flow.compile(open_file()).invoke({"approved": True}, checkpoint=paused.checkpoint_id)

    assert done["result"] == "done: RAW"
    assert flow.ran == ["prepare", "review", "execute"]


@pytest.mark.requirement("T2-01")
def test_failure_is_recovered_from_without_beginning_again(open_file):
    ran, failures = [], ["the network is down"]

    def fetch(state):
        ran.append("fetch")
        return {"data": {"fetched": 1}}

    def save(state):
        ran.append("save")
        if failures:
            raise ConnectionError(failures.pop())
        return {"result": f"saved {state['data']}"}

    with pytest.raises(ConnectionError):
        in_line(REVIEW, fetch, save).compile(open_file()).invoke({"input": "raw"}, thread("job"))

    done = in_line(REVIEW, fetch, save).compile(open_file()).invoke(None, thread("job"))

    assert done["result"] == "saved {'fetched': 1}"
    assert ran == ["fetch", "save", "save"]


@pytest.mark.requirement("T2-01")
def test_state_can_be_looked_at_where_it_stopped_and_at_every_point_before(store, clock):
    graph = Reviewed().compile(store, interrupt_before=["execute"])
    clock.advance(seconds=60)
    graph.invoke({"input": "raw"}, thread("job"))

    now = graph.get_state(thread("job"))
    history = list(graph.get_state_history(thread("job"), order="asc"))

    assert now.values == PREPARED
    assert now.next == ("execute",)
    assert now.created_at == "2023-11-14T22:14:20+00:00"
    assert [(snapshot.values, snapshot.next) for snapshot in history] == [
        ({"input": "raw"}, ("prepare",)),
        (PREPARED, ("review",)),
        (PREPARED, ("execute",)),
    ]


# ── Pauses need a store ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_stategraph_checkpoint.py::test_checkpoint_required_for_interrupts")
@pytest.mark.requirement("T2-05")
@pytest.mark.parametrize("which", ["interrupt_before", "interrupt_after"])
def test_static_pause_without_a_store_is_refused_at_compile(which):
    with pytest.raises(GraphError, match=f"{which} needs a store") as raised:
        Reviewed().compile(None, **{which: ["review"]})

    assert isinstance(raised.value, ValueError)


@pytest.mark.requirement("T2-05")
def test_pause_without_a_store_is_refused_before_anything_runs_or_where_it_is_asked():
    flow = Reviewed()

    def ask(state):
        interrupt("Nobody could ever answer")

    with pytest.raises(GraphError, match="no store"):
        flow.compile(None).invoke({"input": "raw"}, interrupt_before=["review"])
    with pytest.raises(InterruptError, match="no store"):
        in_line(REVIEW, ask).compile().invoke({"input": "raw"})

    assert flow.ran == []


@pytest.mark.requirement("T2-05")
def test_static_pause_at_a_node_that_is_not_there_is_refused_by_name():
    with pytest.raises(GraphError, match=r"'reveiw', which is no node. Did you mean 'review'\?"):
        Reviewed().compile(MemorySaver(), interrupt_before=["reveiw"])


# ── Before and after ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-06")
def test_pause_before_a_node_runs_it_on_resume_and_only_then(store):
    flow = Reviewed()
    graph = flow.compile(store, interrupt_before=["review"])
    paused = graph.invoke({"input": "raw"}, thread("job"))
    ran_before = list(flow.ran)

    done = graph.invoke(None, thread("job"))

    assert paused.is_interrupted
    assert paused.next == ("review",)
    assert ran_before == ["prepare"]
    assert flow.ran == ["prepare", "review", "execute"]
    assert done.is_complete


@pytest.mark.requirement("T2-06")
async def test_pause_before_a_node_works_the_same_with_asyncio(store):
    flow = Reviewed()
    graph = flow.compile(store, interrupt_before=["review"])
    paused = await graph.ainvoke({"input": "raw"}, thread("job"))
    ran_before = list(flow.ran)

    done = await graph.ainvoke(None, thread("job"))

    assert (paused.next, ran_before) == (("review",), ["prepare"])
    assert flow.ran == ["prepare", "review", "execute"]
    assert done["result"] == "Rejected by human"


@pytest.mark.requirement("T2-07")
def test_pause_after_a_node_goes_on_with_the_next_one(store):
    flow = Reviewed()
    graph = flow.compile(store, interrupt_after=["prepare"])
    paused = graph.invoke({"input": "raw"}, thread("job"))

    done = graph.invoke(None, thread("job"))

    assert paused.value == PREPARED
    assert paused.next == ("review",)
    assert flow.ran == ["prepare", "review", "execute"]
    assert done["result"] == "Rejected by human"


@pytest.mark.requirement("T2-07")
def test_pause_after_the_last_node_is_a_pause_and_then_the_end(store):
    flow = Reviewed()
    graph = flow.compile(store, interrupt_after=["execute"])
    paused = graph.invoke({"input": "raw"}, thread("job"))

    done = graph.invoke(None, thread("job"))

    assert paused.is_interrupted
    assert paused["result"] == "Rejected by human"
    assert done.is_complete
    assert done == paused.value
    assert flow.ran == ["prepare", "review", "execute"]


@pytest.mark.requirement("T2-06", "T2-07")
def test_pauses_may_be_asked_for_by_the_call(store):
    flow = Reviewed()
    graph = flow.compile(store)

    first = graph.invoke({"input": "raw"}, thread("job"), interrupt_after=["prepare"])
    second = graph.invoke(None, thread("job"), interrupt_before="execute")
    done = graph.invoke(None, thread("job"))

    assert [first.next, second.next, done.next] == [("review",), ("execute",), ()]
    assert flow.ran == ["prepare", "review", "execute"]


# ── Events ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-08", "T2-09")
def test_pause_is_the_last_event_and_shows_what_is_to_be_reviewed(store):
    graph = Reviewed().compile(store, interrupt_before=["review"])

    *updates, last = graph.events({"input": "raw"}, thread("job"))

    assert updates == [{"type": "update", "node": "prepare", "update": {"data": {"processed": "RAW"}}}]
    assert last["type"] == "interrupt"
    assert last["node"] == "review"
    assert last["state"] == PREPARED
    assert last["checkpoint"] == checkpoint_ids(graph, thread("job"))[-1]


@pytest.mark.requirement("T2-08")
def test_question_is_the_last_event_and_names_its_node(store):
    def ask(state):
        return {"approved": interrupt("Really?")}

    graph = in_line(REVIEW, Reviewed().prepare, ask).compile(store)

    last = list(graph.events({"input": "raw"}, thread("job")))[-1]

    assert (last["type"], last["node"], last["state"]) == ("interrupt", "ask", PREPARED)
    assert [question.value for question in last["interrupts"]] == ["Really?"]


@pytest.mark.requirement("T2-09")
def test_completion_is_the_last_event_with_the_final_state(store):
    graph = Reviewed().compile(store, interrupt_before=["review"])
    *_, paused = graph.events({"input": "raw"})

    events = list(graph.events({"approved": True}, checkpoint=paused["checkpoint"]))

    assert events[-1] == {"type": "final", "state": {**PREPARED, "approved": True, "result": "done: RAW"}}
    assert [event.get("node") for event in events] == ["review", "execute", None]


# ── Resume by checkpoint ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-10")
def test_checkpoint_alone_is_enough_to_resume(store):
    flow = Reviewed()
    graph = flow.compile(store, interrupt_before=["review"])
    paused = graph.invoke({"input": "raw"})

    done = graph.invoke(None, checkpoint=paused.checkpoint_id)

    assert done["result"] == "Rejected by human"
    assert done.thread_id == paused.thread_id
    assert flow.ran == ["prepare", "review", "execute"]


@pytest.mark.requirement("T2-10")
def test_checkpoint_that_is_not_there_is_an_error_and_starts_nothing(store):
    flow = Reviewed()
    graph = flow.compile(store)

    with pytest.raises(UnknownCheckpointError, match="review_1733500000"):
        graph.invoke({"input": "raw"}, checkpoint="review_1733500000.pkl")
    with pytest.raises(UnknownCheckpointError, match="0123456789abcdef0123-00000001"):
        graph.invoke(None, checkpoint="0123456789abcdef0123-00000001")

    assert flow.ran == []
    assert store.threads() == []


@pytest.mark.requirement("T2-11")
@pytest.mark.parametrize("which", [{"interrupt_before": ["execute"]}, {"interrupt_after": ["review"]}])
def test_input_is_merged_over_the_state_of_the_checkpoint(store, which):
    graph = Reviewed().compile(store, **which)
    paused = graph.invoke({"input": "raw"})

    done = graph.invoke({"approved": True, "feedback": "Looks good"}, checkpoint=paused.checkpoint_id)

    assert done == {**PREPARED, "approved": True, "feedback": "Looks good", "result": "done: RAW"}


@pytest.mark.requirement("T2-11")
def test_merged_keys_outside_the_schema_are_seen_by_nodes_and_kept(open_file):
    seen = []

    def execute(state):
        seen.append(state["feedback"])
        interrupt("Sure?")

    flow = in_line(REVIEW, Reviewed().prepare, execute)
    paused = flow.compile(open_file(), interrupt_before=["execute"]).invoke({"input": "raw"})
    asked = flow.compile(open_file()).invoke({"feedback": "Looks good"}, checkpoint=paused.checkpoint_id)

    done = flow.compile(open_file()).invoke(Command(resume=True), checkpoint=asked.checkpoint_id)

    assert seen == ["Looks good", "Looks good"]
    assert done["feedback"] == "Looks good"


@pytest.mark.requirement("T2-11")
def test_merge_answers_the_question_of_the_checkpoint(store):
    def ask(state):
        given = interrupt("Really?")
        return {"result": f"{state['approved']} {given}"}

    graph = in_line(REVIEW, ask).compile(store)
    paused = graph.invoke({"input": "raw"})

    done = graph.invoke({"approved": True}, checkpoint=paused.checkpoint_id)

    assert done["result"] == "True {'approved': True}"


@pytest.mark.requirement("T2-11")
def test_merge_of_something_that_is_no_state_is_refused_and_writes_nothing(store):
    graph = Reviewed().compile(store, interrupt_before=["review"])
    paused = graph.invoke({"input": "raw"}, thread("job"))

    with pytest.raises(InvalidUpdateError, match="'yes'"):
        graph.invoke("yes", checkpoint=paused.checkpoint_id)

    assert checkpoint_ids(graph, thread("job"))[-1] == paused.checkpoint_id
    assert graph.get_state(thread("job")).next == ("review",)


@pytest.mark.seed("test_stategraph_checkpoint.py::test_config_merge_on_resume")
@pytest.mark.requirement("T2-12")
def test_config_of_the_resume_is_the_one_that_nodes_see(store):
    seen = []

    def before(state):
        seen.append(get_config()["configurable"]["timeout"])

    def after(state, config):
        seen.append(config["configurable"]["timeout"])
        seen.append(get_config()["configurable"]["timeout"])

    graph = in_line(REVIEW, before, after).compile(store, interrupt_before=["after"])
    paused = graph.invoke({"input": "raw"}, thread("job", timeout=30))

    done = graph.invoke(None, {"configurable": {"timeout": 60}}, checkpoint=paused.checkpoint_id)

    assert seen == [30, 60, 60]
    assert done.thread_id == "job"


# ── A person in the loop ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-13")
@pytest.mark.parametrize(("approved", "result"), [(True, "done: RAW"), (False, "Rejected by human")])
def test_person_reviews_and_decides(open_file, approved, result):
    flow = Reviewed()
    *_, pause = flow.compile(open_file(), interrupt_before=["review"]).events({"input": "raw"})
    assert pause["state"]["data"] == {"processed": "RAW"}

    graph = flow.compile(open_file(), interrupt_before=["review"])
    *_, last = graph.events({"approved": approved, "feedback": "seen"}, checkpoint=pause["checkpoint"])

    assert last["type"] == "final"
    assert last["state"] == {**PREPARED, "approved": approved, "feedback": "seen", "result": result}
    assert flow.ran == ["prepare", "review", "execute"]


@pytest.mark.requirement("T2-13")
@pytest.mark.parametrize(("approved", "way"), [(True, ["prepare", "execute"]), (False, ["prepare", "discard"])])
def test_decision_given_at_the_pause_chooses_the_branch(store, approved, way):
    flow = Reviewed()

    def discard(state):
        flow.ran.append("discard")
        return {"result": "thrown away"}

    graph = StateGraph(REVIEW).add_node(flow.prepare).add_node(flow.execute).add_node(discard)
    graph.set_entry_point("prepare").set_finish_point("execute").set_finish_point("discard")
    graph.add_conditional_edges("prepare", lambda state: "execute" if state.get("approved") else "discard")
    compiled = graph.compile(store, interrupt_after=["prepare"])
    paused = compiled.invoke({"input": "raw"})

    done = compiled.invoke({"approved": approved}, checkpoint=paused.checkpoint_id)

    assert flow.ran == way
    assert done["result"] == ("done: RAW" if approved else "thrown away")


@pytest.mark.requirement("T2-13")
def test_person_may_send_the_work_back_until_it_is_right(store):
    drafts = []

    def draft(state):
        drafts.append(state.get("feedback", "first"))
        return {"data": {"draft": len(drafts)}}

    graph = StateGraph({**REVIEW, "feedback": str}).add_node(draft).set_entry_point("draft")
    graph.add_conditional_edges("draft", lambda state: END if state.get("approved") else "draft")
    compiled = graph.compile(store, interrupt_after=["draft"])
    pause = compiled.invoke({"input": "raw"})
    for feedback in ("shorter", "kinder"):
        pause = compiled.invoke({"feedback": feedback}, checkpoint=pause.checkpoint_id)

    done = compiled.invoke({"approved": True}, checkpoint=pause.checkpoint_id)

    assert drafts == ["first", "shorter", "kinder"]
    assert done.is_complete
    assert done["data"] == {"draft": 3}


# ── Saved by itself ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("T2-14")
@pytest.mark.parametrize("which", ["interrupt_before", "interrupt_after"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_pause_is_in_the_file_before_the_caller_hears_of_it(open_file, which, durability):
    flow = Reviewed()
    node = {"interrupt_before": "review", "interrupt_after": "prepare"}[which]

    paused = flow.compile(open_file(), durability=durability, **{which: [node]}).invoke({"input": "raw"}, thread("job"))
    saved = flow.compile(open_file()).get_state(thread("job"))

    assert saved.config["configurable"]["checkpoint_id"] == paused.checkpoint_id
    assert saved.values == PREPARED
    assert saved.next == ("review",)


@pytest.mark.requirement("T2-14")
def test_pause_that_cannot_be_saved_is_an_error_and_no_pause(store):
    def prepare(state):
        return {"data": {"open": [1, lambda: None]}}

    graph = in_line(REVIEW, prepare, Reviewed().review).compile(store, interrupt_after=["prepare"])

    with pytest.raises(UnstorableValueError, match=r"state\['data'\]"):
        graph.invoke({"input": "raw"}, thread("job"))

    assert graph.get_state(thread("job")).values == {"input": "raw"}
    assert graph.get_state(thread("job")).next == ("prepare",)
