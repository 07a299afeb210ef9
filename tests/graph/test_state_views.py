"""Looking at a thread and changing it from outside: live and recorded states, history, edits and forks."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt
from bide.errors import (
    InvalidUpdateError,
    ResumeError,
    UnknownCheckpointError,
    UnknownInterruptError,
    UnknownThreadError,
)
from tests.threads import in_a_row, one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    way: str


def logging(name: str) -> Any:
    return lambda state: {"log": [name]}


def asks(question: str) -> Any:
    return lambda state: {"log": [interrupt(question)]}


def abc(store: Store, **options: Any) -> CompiledGraph:
    return in_a_row(Log, {name: logging(name) for name in "abc"}, checkpointer=store, **options)


def history(graph: CompiledGraph, **options: Any) -> list[str]:
    return ["".join(seen.values.get("log", [])) for seen in graph.get_state_history(thread(), **options)]


# ── Live and recorded ──────────────────────────────────────────────────────────────────────────────────────────────


def test_live_state_counts_finished_siblings_as_done(store: Store):
    graph = side_by_side(Log, {"a": logging("a"), "b": asks("b?"), "c": logging("c")}, checkpointer=store)
    graph.invoke({"log": []}, thread())

    seen = graph.get_state(thread())

    assert (seen.values, seen.next) == ({"log": ["a", "c"]}, ("b",))
    assert [(task.name, task.result, len(task.interrupts)) for task in seen.tasks] == [
        ("a", {"log": ["a"]}, 0),
        ("b", None, 1),
        ("c", {"log": ["c"]}, 0),
    ]


def test_recorded_state_is_the_state_as_it_was_written(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())
    for pinned in graph.get_state_history(thread()):
        seen = graph.get_state(pinned.config)

        assert (seen.values, seen.next, seen.config) == (pinned.values, pinned.next, pinned.config)


def test_failed_task_is_shown_with_its_error(store: Store):
    def broken(state: Log) -> None:
        raise OSError("no connection")

    graph = side_by_side(Log, {"a": broken}, checkpointer=store)
    with pytest.raises(OSError, match="no connection"):
        graph.invoke({"log": []}, thread())

    seen = graph.get_state(thread())

    assert (seen.tasks[0].error, seen.next) == ("OSError: no connection", ("a",))


def test_snapshot_tells_where_it_came_from(store: Store):
    graph = abc(store)
    result = graph.invoke({"log": []}, thread())

    seen = graph.get_state(thread())

    assert seen.config["configurable"] == {
        "thread_id": "t",
        "checkpoint_ns": "",
        "checkpoint_id": result.checkpoint_id,
    }
    assert (seen.metadata or {})["source"] == "loop"
    assert (seen.metadata or {})["step"] == 3
    assert str(seen.created_at).endswith("+00:00")


@pytest.mark.parametrize("name", [42, "42"])
def test_thread_is_the_same_by_number_and_by_text(store: Store, name: Any):
    graph = abc(store)
    graph.invoke({"log": []}, thread(42))

    seen = graph.get_state(thread(name))

    assert seen.values == {"log": ["a", "b", "c"]}
    assert seen.config["configurable"]["thread_id"] == "42"


async def test_views_are_the_same_with_asyncio(store: Store):
    graph = abc(store)
    await graph.ainvoke({"log": []}, thread())
    config = await graph.aupdate_state(thread(), {"log": ["!"]})

    assert await graph.aget_state(thread()) == graph.get_state(thread())
    assert await graph.aget_state(config) == graph.get_state(config)
    found = [seen async for seen in graph.aget_state_history(thread(), limit=2)]
    assert found == list(graph.get_state_history(thread(), limit=2))


def test_state_needs_to_know_its_thread(store: Store):
    with pytest.raises(UnknownThreadError, match="thread_id"):
        abc(store).get_state({"configurable": {}})


# ── History ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_history_is_newest_first_and_oldest_first_when_asked(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())

    assert history(graph) == ["abc", "ab", "a", ""]
    assert history(graph, order="asc") == ["", "a", "ab", "abc"]


def test_history_is_cut_to_a_limit_before_a_point_and_to_what_is_looked_for(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())
    points = list(graph.get_state_history(thread()))

    assert history(graph, limit=2) == ["abc", "ab"]
    assert history(graph, before=points[1].config) == ["a", ""]
    assert history(graph, before=points[0].config, limit=1) == ["ab"]
    assert history(graph, filter={"source": "input"}) == [""]
    assert history(graph, filter={"step": 2}) == ["ab"]
    assert history(graph, filter={"source": "loop"}, limit=1, order="asc") == ["a"]


def test_history_of_many_steps_is_whole(store: Store):
    builder = StateGraph(Log).add_node("a", logging("a")).add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: "a" if len(state["log"]) < 130 else END)
    graph = builder.compile(store)
    graph.invoke({"log": []}, thread())

    assert [len(text) for text in history(graph)] == list(range(130, -1, -1))


def test_newest_entry_of_the_history_shows_the_open_question(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    newest = next(iter(graph.get_state_history(thread())))

    assert newest.interrupts == graph.get_state(thread()).interrupts
    assert newest.tasks == graph.get_state(thread()).tasks


def test_point_of_the_history_still_shows_the_question_that_was_asked_there(store: Store):
    graph = in_a_row(Log, {"a": asks("a?"), "b": logging("b")}, checkpointer=store)
    asked = graph.invoke({"log": []}, thread())
    graph.invoke(Command(resume="yes"), thread())

    point = [seen for seen in graph.get_state_history(thread()) if seen.next == ("a",)][-1]

    assert [question.id for question in point.interrupts] == [asked.interrupts[0].id]


# ── Edits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_edit_is_a_checkpoint_of_its_own_and_returns_its_config(store: Store):
    graph = abc(store, interrupt_before=["b"])
    graph.invoke({"log": []}, thread())

    config = graph.update_state(thread(), {"log": ["!"]})

    seen = graph.get_state(thread())
    assert (seen.config, seen.values, seen.next) == (config, {"log": ["a", "!"]}, ("b",))
    assert (seen.metadata or {})["source"] == "update"
    assert history(graph) == ["a!", "a", ""]


def test_edit_without_a_change_still_is_a_checkpoint(store: Store):
    graph = abc(store, interrupt_before=["b"])
    graph.invoke({"log": []}, thread())

    graph.update_state(thread(), {})
    graph.update_state(thread(), None)

    assert history(graph) == ["a", "a", "a", ""]


def test_edit_of_a_paused_thread_keeps_the_question_and_its_id(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    asked = graph.invoke({"log": []}, thread()).interrupts

    graph.update_state(thread(), {"log": ["edited"]})
    seen = graph.get_state(thread())
    done = graph.invoke(Command(resume={asked[0].id: "yes"}), thread())

    assert (seen.interrupts, seen.next) == (asked, ("node",))
    assert done["log"] == ["edited", "yes"]


def test_edit_of_a_paused_thread_keeps_what_siblings_have_done(store: Store):
    runs = []

    def once(state: Log) -> Log:
        runs.append("run")
        return {"log": ["once"]}

    graph = side_by_side(Log, {"a": once, "b": asks("b?")}, checkpointer=store)
    graph.invoke({"log": []}, thread())
    graph.update_state(thread(), {"log": ["edited"]})

    done = graph.invoke(Command(resume="yes"), thread())

    assert done["log"] == ["edited", "once", "yes"]
    assert runs == ["run"]


def test_edit_as_a_node_goes_on_after_that_node(store: Store):
    graph = abc(store, interrupt_before=["a"])
    graph.invoke({"log": []}, thread())

    graph.update_state(thread(), {"log": ["by hand"]}, as_node="b")

    assert graph.get_state(thread()).next == ("c",)
    assert graph.invoke(None, thread())["log"] == ["by hand", "c"]


def test_edit_as_a_node_follows_its_conditional_edges(store: Store):
    builder = StateGraph(Log).add_node("a", logging("a")).add_edge(START, "a")
    builder.add_node("left", logging("left")).add_node("right", logging("right"))
    builder.add_conditional_edges("a", lambda state: state.get("way", "left"), ["left", "right"])
    graph = builder.compile(store)

    graph.update_state(thread(), {"way": "right"}, as_node="a")

    assert graph.get_state(thread()).next == ("right",)


def test_edit_as_a_node_that_asks_takes_the_place_of_the_answer(store: Store):
    graph = in_a_row(Log, {"ask": asks("?"), "b": logging("b")}, checkpointer=store)
    asked = graph.invoke({"log": []}, thread()).interrupts[0].id

    graph.update_state(thread(), {"log": ["by hand"]}, as_node="ask")

    assert graph.get_state(thread()).interrupts == ()
    with pytest.raises((UnknownInterruptError, ResumeError), match=asked):
        graph.invoke(Command(resume={asked: "late"}), thread())
    assert graph.invoke(None, thread())["log"] == ["by hand", "b"]


def test_edit_as_the_end_leaves_nothing_to_do(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    graph.update_state(thread(), None, as_node=END)

    assert (graph.get_state(thread()).next, graph.get_state(thread()).interrupts) == ((), ())
    assert graph.invoke(None, thread()).is_complete


def test_edit_as_start_begins_anew(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())

    graph.update_state(thread(), {"log": ["|"]}, as_node=START)

    assert graph.invoke(None, thread())["log"] == ["a", "b", "c", "|", "a", "b", "c"]


def test_edit_of_a_thread_that_does_not_exist_makes_it(store: Store):
    graph = abc(store)

    graph.update_state(thread(), {"log": ["seed"]})

    assert graph.get_state(thread()).next == ("a",)
    assert graph.invoke(None, thread())["log"] == ["seed", "a", "b", "c"]


@pytest.mark.parametrize(
    ("values", "as_node", "message"),
    [({"lug": []}, None, "'lug'.*Did you mean 'log'"), ({}, "nobody", "'nobody'"), (5, None, "update_state got 5")],
)
def test_edit_that_does_not_fit_is_refused_and_writes_nothing(store: Store, values: Any, as_node: Any, message: str):
    graph = abc(store)
    graph.invoke({"log": []}, thread())

    with pytest.raises(InvalidUpdateError, match=message):
        graph.update_state(thread(), values, as_node=as_node)

    assert history(graph) == ["abc", "ab", "a", ""]


# ── Forks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_going_on_from_an_older_checkpoint_is_a_fork_and_history_stays(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())
    after_a = list(graph.get_state_history(thread()))[2]

    done = graph.invoke(None, after_a.config)

    assert done["log"] == ["a", "b", "c"]
    assert history(graph) == ["abc", "ab", "a", "abc", "ab", "a", ""]
    fork = list(graph.get_state_history(thread()))[2]
    assert (fork.parent_config, (fork.metadata or {})["source"]) == (after_a.config, "fork")


def test_edit_of_an_older_checkpoint_is_a_fork_with_the_edit(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())
    after_a = list(graph.get_state_history(thread()))[2]

    config = graph.update_state(after_a.config, {"log": ["!"]})
    done = graph.invoke(None, config)

    assert done["log"] == ["a", "!", "b", "c"]
    assert graph.get_state(after_a.config).values == {"log": ["a"]}


@pytest.mark.complaint(17)
def test_fork_before_a_question_asks_anew_and_may_be_answered_differently(store: Store):
    graph = in_a_row(Log, {"a": logging("a"), "b": asks("b?")}, checkpointer=store)
    first = graph.invoke({"log": []}, thread())
    graph.invoke(Command(resume="yes"), thread())
    paused = [seen for seen in graph.get_state_history(thread()) if seen.next == ("b",)][-1]

    again = graph.invoke(None, paused.config)
    done = graph.invoke(Command(resume="no"), thread())

    assert again.interrupt_value == "b?"
    assert again.interrupts[0].id != first.interrupts[0].id
    assert done["log"] == ["a", "no"]


def test_answer_at_an_older_checkpoint_is_refused_with_the_way_to_fork(store: Store):
    graph = in_a_row(Log, {"a": asks("a?"), "b": asks("b?")}, checkpointer=store)
    first = graph.invoke({"log": []}, thread())
    graph.invoke(Command(resume="1"), thread())
    pinned = thread()
    pinned["configurable"]["checkpoint_id"] = first.checkpoint_id

    with pytest.raises(ResumeError, match="fork"):
        graph.invoke(Command(resume="again"), pinned)

    assert graph.get_state(thread()).values == {"log": ["1"]}


def test_answer_at_the_newest_checkpoint_is_an_answer_like_any_other(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    assert graph.invoke(Command(resume="yes"), graph.get_state(thread()).config)["log"] == ["yes"]


def test_new_input_at_an_older_checkpoint_begins_over_that_state(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())
    after_a = list(graph.get_state_history(thread()))[2]

    assert graph.invoke({"log": ["|"]}, after_a.config)["log"] == ["a", "|", "a", "b", "c"]


def test_going_on_from_the_last_checkpoint_of_a_finished_thread_changes_nothing(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread())
    before = history(graph)

    assert graph.invoke(None, graph.get_state(thread()).config)["log"] == ["a", "b", "c"]
    assert history(graph) == before


@pytest.mark.parametrize("checkpoint_id", ["nonsense", "0123456789abcdef0123-00000001", "x-00000001"])
def test_checkpoint_that_does_not_exist_is_a_typed_error(store: Store, checkpoint_id: str):
    graph = abc(store)
    graph.invoke({"log": []}, thread())
    config = {"configurable": {"thread_id": "t", "checkpoint_id": checkpoint_id}}

    with pytest.raises(UnknownCheckpointError, match=checkpoint_id):
        graph.get_state(config)
    with pytest.raises(UnknownCheckpointError, match=checkpoint_id):
        graph.invoke(None, config)
