"""Synaptic's tests of streams and commands: what is told while a graph runs, and who says where it goes."""

from __future__ import annotations

import pytest

from bide import END, START, Command, StateGraph, Store
from tests.drivers import Driver
from tests.requirements.graphs import thread
from tests.requirements.visits import Visits, after, counting, visit

# ── Streams ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("stream.rs::stream_three_node_graph_values", "stream_modes.rs::stream_modes_single_mode_values")
@pytest.mark.requirement("S3-05")
@pytest.mark.parametrize("given", ["values", ["values"]])
def test_values_are_the_input_and_then_the_state_after_each_node(driver: Driver, given: str | list[str]):
    parts = driver.stream(visit("abc"), {}, stream_mode=given)

    states = [after(), after("a"), after("a", "b"), after("a", "b", "c")]
    assert parts == (states if given == "values" else [("values", state) for state in states])


@pytest.mark.seed("stream.rs::stream_updates_mode")
@pytest.mark.requirement("S3-05")
def test_updates_are_what_each_node_returned_under_its_name(driver: Driver):
    parts = driver.stream(visit("abc"), {}, stream_mode="updates")

    assert parts == [{name: after(name)} for name in "abc"]


@pytest.mark.seed("stream_modes.rs::stream_modes_multiple_modes")
@pytest.mark.requirement("S3-05")
def test_several_modes_give_one_part_per_mode_and_node(driver: Driver):
    _, *parts = driver.stream(visit("ab"), {}, stream_mode=["values", "updates"])

    assert parts == [
        ("updates", {"a": after("a")}),
        ("values", after("a")),
        ("updates", {"b": after("b")}),
        ("values", after("a", "b")),
    ]


@pytest.mark.seed("stream_modes.rs::stream_modes_empty_modes_no_events")
@pytest.mark.requirement("S3-05")
def test_no_mode_gives_no_part_and_the_graph_runs_all_the_same(driver: Driver, store: Store):
    graph = visit("ab", store)

    assert driver.stream(graph, {}, thread("t"), stream_mode=[]) == []
    assert graph.get_state(thread("t")).values == after("a", "b")


@pytest.mark.seed("stream.rs::stream_conditional_routing")
@pytest.mark.requirement("S3-03")
@pytest.mark.parametrize(("counter", "way"), [(0, "small"), (7, "large")])
def test_stream_tells_the_way_that_was_chosen_and_no_other(driver: Driver, counter: int, way: str):
    builder = StateGraph(Visits).add_edge(START, "a")
    for name in ("a", "small", "large"):
        builder.add_node(name, counting(name))
    builder.add_conditional_edges("a", lambda state: "large" if state["counter"] > 5 else "small")

    parts = driver.stream(builder.compile(), {"counter": counter})

    assert parts == [{"a": after("a")}, {way: after(way)}]


@pytest.mark.seed("stream.rs::stream_with_interrupt_after", "stream.rs::stream_with_checkpoint_resume")
@pytest.mark.requirement("S3-03", "S3-05")
@pytest.mark.parametrize("pinned", [False, True], ids=["by thread", "by checkpoint"])
def test_stream_ends_at_a_pause_with_an_interrupt_part_and_goes_on_with_the_rest(
    driver: Driver, store: Store, pinned: bool
):
    graph = visit("ab", store, interrupt_after=["a"])

    until_pause = driver.stream(graph, {}, thread("t"))
    config = graph.get_state(thread("t")).config if pinned else thread("t")
    until_end = driver.stream(graph, None, config)

    assert until_pause == [{"a": after("a")}, {"__interrupt__": ()}]
    assert until_end == [{"b": after("b")}]


# ── Commands ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("interrupt.rs::command_update_only")
@pytest.mark.requirement("S3-12")
def test_command_of_a_node_that_only_updates_is_merged_and_routed_as_usual(driver: Driver):
    only_updates = ("a", lambda state: Command(update={"counter": 5, "visited": ["a"]}))
    builder = StateGraph(Visits).add_sequence([only_updates, ("b", counting("b"))]).add_edge(START, "a")

    assert driver.invoke(builder.compile(), {}).value == {"counter": 6, "visited": ["a", "b"]}


@pytest.mark.seed("command.rs::no_command_preserves_normal_routing")
@pytest.mark.requirement("S3-12")
def test_node_without_a_command_goes_where_its_edge_leads(driver: Driver):
    assert driver.invoke(visit("abc"), {}).value == after("a", "b", "c")


def going_to(target: str) -> StateGraph:
    """a goes to the target by command; b leads to c, and nothing else leads to b."""
    builder = StateGraph(Visits).add_node("a", lambda state: Command(update=after("a"), goto=target))
    builder.add_node("b", counting("b")).add_node("c", counting("c"))
    return builder.add_edge(START, "a").add_edge("b", "c")


@pytest.mark.seed("command.rs::goto_command_skips_node", "command.rs::goto_command_works_in_stream_mode")
@pytest.mark.requirement("S3-12")
def test_goto_skips_what_lies_between(driver: Driver):
    graph = going_to("c").compile()

    assert driver.invoke(graph, {}).value == after("a", "c")
    assert driver.stream(graph, {}) == [{"a": after("a")}, {"c": after("c")}]


@pytest.mark.seed("command.rs::end_command_stops_execution", "command.rs::end_command_works_in_stream_mode")
@pytest.mark.requirement("S3-12")
def test_goto_the_end_stops_there(driver: Driver):
    graph = going_to(END).compile()

    assert driver.invoke(graph, {}).value == after("a")
    assert driver.stream(graph, {}) == [{"a": after("a")}]


@pytest.mark.seed("command.rs::goto_command_skips_node", "command.rs::end_command_stops_execution")
@pytest.mark.requirement("S3-12")
def test_edge_of_a_node_holds_beside_its_goto(driver: Driver):
    """Synaptic lets a goto replace the edges of its node. Here, as in LangGraph, an edge that was drawn holds."""
    both = going_to("c").add_edge("a", "b").compile()
    not_ended = going_to(END).add_edge("a", "b").compile()

    assert driver.invoke(both, {})["visited"] == ["a", "b", "c", "c"]
    assert driver.invoke(not_ended, {})["visited"] == ["a", "b", "c"]


@pytest.mark.seed("command.rs::goto_command_redirects_to_earlier_node")
@pytest.mark.requirement("S3-12")
def test_goto_loops_back_until_the_node_has_enough(driver: Driver):
    def again(state: Visits) -> Command[str]:
        return Command(update=after("again"), goto="a" if state["counter"] < 3 else END)

    builder = StateGraph(Visits).add_node("a", counting("a")).add_node("again", again)
    graph = builder.add_edge(START, "a").add_edge("a", "again").compile()

    assert driver.invoke(graph, {}).value == after("a", "again", "a", "again")
    assert [list(part) for part in driver.stream(graph, {})] == [["a"], ["again"], ["a"], ["again"]]


@pytest.mark.seed("stream.rs::stream_with_interrupt_after")
@pytest.mark.requirement("S3-03", "S3-12")
def test_pause_after_a_node_that_says_where_to_go_is_kept_in_streams_and_calls(driver: Driver, store: Store):
    graph = going_to("c").compile(store, interrupt_after=["a"])

    streamed = driver.stream(graph, {}, thread("streamed"))
    called = driver.invoke(graph, {}, thread("called"))

    assert streamed == [{"a": after("a")}, {"__interrupt__": ()}]
    assert (called.is_interrupted, called.next) == (True, ("c",))
    assert driver.invoke(graph, None, thread("streamed")).value == after("a", "c")
