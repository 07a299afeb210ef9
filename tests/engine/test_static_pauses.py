"""interrupt_before and interrupt_after: the graph stops where it is told to, once per visit."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt
from bide.errors import GraphError, ThreadPausedError
from tests.threads import in_a_row, one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    way: str


def logging(name: str) -> Any:
    return lambda state: {"log": [name]}


def abc(store: Store | None, **options: Any) -> CompiledGraph:
    return in_a_row(Log, {name: logging(name) for name in "abc"}, checkpointer=store, **options)


def pauses(graph: CompiledGraph, given: Any = None, **options: Any) -> list[tuple[str, tuple[str, ...]]]:
    """Run to the end, passing every pause; return what was written and what came next at each."""
    stops = []
    result = graph.invoke(given or {"log": []}, thread(), **options)
    while result.is_interrupted:
        stops.append(("".join(result["log"]), result.next))
        assert len(stops) < 20, "a pause that was passed must not come back"
        result = graph.invoke(None, thread(), **options)
    return [*stops, ("".join(result["log"]), result.next)]


# ── Where ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("at_compile", [True, False])
@pytest.mark.parametrize(
    ("where", "stops"),
    [
        ({"interrupt_before": ["b"]}, [("a", ("b",)), ("abc", ())]),
        ({"interrupt_after": ["b"]}, [("ab", ("c",)), ("abc", ())]),
        ({"interrupt_before": ["a"]}, [("", ("a",)), ("abc", ())]),
        ({"interrupt_after": ["c"]}, [("abc", ()), ("abc", ())]),
        ({"interrupt_before": "b"}, [("a", ("b",)), ("abc", ())]),
        ({"interrupt_before": ["b"], "interrupt_after": ["b"]}, [("a", ("b",)), ("ab", ("c",)), ("abc", ())]),
        ({"interrupt_after": ["a"], "interrupt_before": ["b"]}, [("a", ("b",)), ("a", ("b",)), ("abc", ())]),
        ({"interrupt_before": "*"}, [("", ("a",)), ("a", ("b",)), ("ab", ("c",)), ("abc", ())]),
        ({"interrupt_after": "*"}, [("a", ("b",)), ("ab", ("c",)), ("abc", ()), ("abc", ())]),
    ],
)
def test_run_stops_where_it_is_told_and_runs_each_node_once(store: Store, where: Any, stops: Any, at_compile: bool):
    found = pauses(abc(store, **where)) if at_compile else pauses(abc(store), **where)

    assert found == stops


def test_pauses_of_the_call_are_added_to_those_of_the_graph(store: Store):
    graph = abc(store, interrupt_before=["b"])

    assert pauses(graph, interrupt_before=["c"]) == [("a", ("b",)), ("ab", ("c",)), ("abc", ())]


def test_pause_asked_for_in_one_call_does_not_come_back_in_the_next(store: Store):
    graph = abc(store)
    graph.invoke({"log": []}, thread(), interrupt_before=["b"])

    assert graph.invoke(None, thread()).is_complete


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
def test_unknown_node_is_an_error_that_names_it_at_compile_and_per_call(store: Store, option: str):
    with pytest.raises(GraphError, match=r"'bb'.*Did you mean 'b'"):
        in_a_row(Log, {"a": logging("a"), "b": logging("b")}, checkpointer=store, **{option: ["bb"]})
    with pytest.raises(GraphError, match="'bb'"):
        abc(store).invoke({"log": []}, thread(), **{option: ["bb"]})

    assert abc(store).get_state(thread()).created_at is None


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
def test_pause_without_a_store_is_an_error_at_compile_and_per_call(option: str):
    with pytest.raises(GraphError, match="store"):
        abc(None, **{option: ["b"]})
    with pytest.raises(GraphError, match="store"):
        abc(None).invoke({"log": []}, **{option: ["b"]})


# ── Passing it ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("given", [None, Command(resume=None), Command(resume="whatever")])
@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
def test_pause_is_passed_by_going_on_and_by_an_answer(store: Store, where: str, given: Any):
    graph = abc(store, **{where: ["b"]})
    graph.invoke({"log": []}, thread())

    assert graph.invoke(given, thread())["log"] == ["a", "b", "c"]


def test_answer_may_bring_an_update(store: Store):
    graph = abc(store, interrupt_before=["b"])
    graph.invoke({"log": []}, thread())

    assert graph.invoke(Command(resume=None, update={"log": ["!"]}), thread())["log"] == ["a", "!", "b", "c"]


def test_stray_input_does_not_pass_a_pause(store: Store):
    graph = abc(store, interrupt_before=["b"])
    graph.invoke({"log": []}, thread())

    with pytest.raises(ThreadPausedError, match="the pause before node 'b'"):
        graph.invoke({"log": ["hello"]}, thread())

    assert graph.get_state(thread()).values == {"log": ["a"]}


def test_input_is_merged_and_passes_the_pause_when_asked_for(store: Store):
    graph = abc(store, interrupt_before=["b"])
    graph.invoke({"log": []}, thread())

    done = graph.invoke({"log": ["hello"]}, thread(), on_paused="resume")

    assert done["log"] == ["a", "hello", "b", "c"]


def test_pause_shows_no_question_and_names_the_next_node(store: Store):
    graph = abc(store, interrupt_before=["b"])

    paused = graph.invoke({"log": []}, thread())
    seen = graph.get_state(thread())

    assert (paused.is_interrupted, paused.interrupts, paused.interrupt_value) == (True, (), None)
    assert "__interrupt__" not in paused
    assert (seen.next, seen.interrupts) == (("b",), ())


# ── Loops and steps of several ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
def test_pause_in_a_loop_fires_at_every_visit(store: Store, where: str):
    builder = StateGraph(Log).add_node("a", logging("a")).add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: "a" if len(state["log"]) < 3 else END)
    graph = builder.compile(store, **{where: ["a"]})

    assert len(pauses(graph)) == 4, "three visits and the end"


def test_pause_before_one_of_several_holds_the_whole_step(store: Store):
    graph = side_by_side(Log, {name: logging(name) for name in "abc"}, checkpointer=store, interrupt_before=["b"])

    paused = graph.invoke({"log": []}, thread())

    assert (paused["log"], paused.next) == ([], ("a", "b", "c"))
    assert graph.invoke(None, thread())["log"] == ["a", "b", "c"]


def test_pause_after_one_of_several_comes_when_the_step_is_over(store: Store):
    graph = side_by_side(Log, {name: logging(name) for name in "abc"}, checkpointer=store, interrupt_after=["b"])

    paused = graph.invoke({"log": []}, thread())

    assert (paused["log"], paused.is_interrupted) == (["a", "b", "c"], True)
    assert graph.invoke(None, thread()).is_complete


def test_question_inside_a_node_with_a_pause_before_it_comes_after_that_pause(store: Store):
    graph = one_node(Log, lambda state: {"log": [interrupt("?")]}, checkpointer=store, interrupt_before=["node"])

    static = graph.invoke({"log": []}, thread())
    asked = graph.invoke(None, thread())
    done = graph.invoke(Command(resume="yes"), thread())

    assert (static.interrupts, static.is_interrupted) == ((), True)
    assert asked.interrupt_value == "?"
    assert done["log"] == ["yes"]


def test_node_that_has_begun_is_not_paused_before_any_more(store: Store):
    nodes = {"done": logging("done"), "asks": lambda state: {"log": [interrupt("?")]}}
    graph = side_by_side(Log, nodes, checkpointer=store)
    graph.invoke({"log": []}, thread())

    resumed = graph.invoke(Command(resume="yes"), thread(), interrupt_before="*")

    assert (resumed.is_complete, resumed["log"]) == (True, ["yes", "done"])


def test_node_that_fails_after_its_pause_is_retried_without_pausing_again(store: Store):
    trouble = [OSError("no connection")]

    def node(state: Log) -> Log:
        if trouble:
            raise trouble.pop()
        return {"log": ["done"]}

    graph = one_node(Log, node, checkpointer=store, interrupt_before=["node"])
    graph.invoke({"log": []}, thread())
    with pytest.raises(OSError, match="no connection"):
        graph.invoke(None, thread())

    assert graph.invoke(None, thread())["log"] == ["done"]


# ── Editing at a pause ─────────────────────────────────────────────────────────────────────────────────────────────


def forked_road(store: Store, **where: Any) -> CompiledGraph:
    builder = StateGraph(Log).add_node("a", logging("a")).add_edge(START, "a")
    builder.add_node("left", logging("left")).add_node("right", logging("right"))
    builder.add_conditional_edges("a", lambda state: state.get("way", "left"), ["left", "right"])
    return builder.compile(store, **where)


@pytest.mark.parametrize("where", [{"interrupt_after": ["a"]}, {"interrupt_before": ["left"]}])
def test_edit_at_a_pause_after_a_finished_node_chooses_the_way_again(store: Store, where: Any):
    graph = forked_road(store, **where)
    paused = graph.invoke({"log": []}, thread())

    graph.update_state(thread(), {"way": "right"})
    done = graph.invoke(None, thread())

    assert paused.next == ("left",)
    assert done["log"] == ["a", "right"]


def test_answer_with_an_update_chooses_the_way_again(store: Store):
    graph = forked_road(store, interrupt_after=["a"])
    graph.invoke({"log": []}, thread())

    assert graph.invoke(Command(resume=None, update={"way": "right"}), thread())["log"] == ["a", "right"]


def test_edit_that_leads_to_another_guarded_node_pauses_there(store: Store):
    graph = forked_road(store, interrupt_before=["left", "right"])
    graph.invoke({"log": []}, thread())

    graph.update_state(thread(), {"way": "right"})
    again = graph.invoke(None, thread())

    assert (again.is_interrupted, again.next) == (True, ("right",))
    assert graph.invoke(None, thread())["log"] == ["a", "right"]


def test_edit_that_changes_nothing_about_the_way_keeps_the_pause_passed_once(store: Store):
    graph = forked_road(store, interrupt_before=["left"])
    graph.invoke({"log": []}, thread())

    graph.update_state(thread(), {"log": ["edited"]})

    assert graph.get_state(thread()).next == ("left",)
    assert graph.invoke(None, thread())["log"] == ["a", "edited", "left"]


async def test_pauses_are_the_same_with_asyncio(store: Store):
    async def a(state: Log) -> Log:
        return {"log": ["a"]}

    graph = in_a_row(Log, {"a": a, "b": a}, checkpointer=store, interrupt_before=["b"], interrupt_after=["b"])

    results = [await graph.ainvoke({"log": []}, thread())]
    results += [await graph.ainvoke(None, thread()) for _ in range(2)]

    assert [(result.is_interrupted, len(result["log"])) for result in results] == [(True, 1), (True, 2), (False, 2)]
