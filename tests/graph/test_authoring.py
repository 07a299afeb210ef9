"""Writing a graph: every mistake is found at compile, by a message that names the thing and the way to mend it."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

import pytest

from bide import END, START, Command, Interrupt, MemorySaver, Send, StateGraph
from bide.errors import BideError, EmptyInputError, GraphError, InvalidUpdateError, StoreUnavailableError
from bide.graph.options import FOR_COMPILE, FOR_NODES
from tests.threads import one_node, thread


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def node(state: Log) -> Log:
    return {"log": ["node"]}


def other(state: Log) -> Log:
    return {"log": ["other"]}


def graph() -> StateGraph:
    """A graph that is right."""
    return StateGraph(Log).add_node(node).add_node(other).add_edge(START, "node")


def left_or_right(state: Log) -> str:
    return "left"


def needs_more(state: Log, database: Any) -> None:
    raise AssertionError("must not be called")


def one_argument(value: Any) -> Any:
    return value


def three_arguments(old: Any, new: Any, more: Any) -> Any:
    return old


# ── Mistakes ───────────────────────────────────────────────────────────────────────────────────────────────────────

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    # what is wrong: the code that does it, and what the message must say
    "edge to nowhere": (lambda: graph().add_edge("node", "noode").compile(), r"'noode'.*Did you mean 'node'"),
    "edge to a far name": (lambda: graph().add_edge("node", "xyz").compile(), r"'xyz'.*add_node\('xyz'"),
    "edge from nowhere": (lambda: graph().add_edge("xyz", "node").compile(), r"no node 'xyz'.*Known nodes: 'node'"),
    "edge from END": (lambda: graph().add_edge(END, "node").compile(), "nothing comes after END"),
    "edge to START": (lambda: graph().add_edge("node", START).compile(), "START cannot be gone to"),
    "join from nowhere": (lambda: graph().add_edge(["node", "xyz"], "other").compile(), "no node 'xyz'"),
    "join of nobody": (lambda: graph().add_edge([], "other"), "at least one"),
    "join with START": (lambda: graph().add_edge([START, "node"], "other").compile(), "START cannot be waited for"),
    "join to END": (lambda: graph().add_edge(["node", "other"], END).compile(), "ends by itself"),
    "END in quotes": (
        lambda: graph().add_edge("node", "END").compile(),
        "mean END, without quotes.*from bide import END",
    ),
    "START in quotes": (lambda: graph().add_edge("START", "node").compile(), "Did you mean START, without quotes"),
    "edge to a function": (lambda: graph().add_edge(START, other), "Edges take names: 'other'"),
    "edge from a function": (lambda: graph().add_edge(node, "other"), "Edges take names: 'node'"),
    "edge to a lambda": (lambda: graph().add_edge(START, lambda state: None), "Edges take the names of nodes"),
    "join from a function": (lambda: graph().add_edge([node, "other"], END), "Edges take names: 'node'"),
    "edge to several": (lambda: graph().add_edge(START, ["node", "other"]), "several.*Add an edge for each"),
    "path map to a function": (
        lambda: graph().add_conditional_edges("node", left_or_right, {"left": other}),
        "Edges take names: 'other'",
    ),
    "no nodes": (lambda: StateGraph(Log).compile(), "no nodes.*add_node"),
    "no entry": (lambda: StateGraph(Log).add_node(node).compile(), r"no entry point.*add_edge\(START, 'node'\)"),
    "same name twice": (lambda: graph().add_node("node", other), "a node 'node' already"),
    "name START": (lambda: graph().add_node(START, node), "'__start__' cannot be the name"),
    "name END": (lambda: graph().add_node(END, node), "'__end__' cannot be the name"),
    "name of ours": (lambda: graph().add_node("__x", node), "'__x' cannot be the name"),
    "empty name": (lambda: graph().add_node("", node), "name"),
    "lambda without a name": (lambda: graph().add_node(lambda state: None), r"no name.*add_node\('name'"),
    "name without a function": (lambda: graph().add_node("x"), r"add_node\('x'\) has no function"),
    "node that is no function": (lambda: graph().add_node("x", 5).compile(), "5, which cannot be called"),
    "nobody fills": (lambda: graph().add_node(needs_more).compile(), "'needs_more' has a parameter 'database'"),
    "edge function nobody fills": (
        lambda: graph().add_conditional_edges("node", needs_more).compile(),
        "'needs_more' after 'node' has a parameter 'database'",
    ),
    "choice from nowhere": (lambda: graph().add_conditional_edges("xyz", left_or_right).compile(), "no node 'xyz'"),
    "choice to nowhere": (
        lambda: graph().add_conditional_edges("node", left_or_right, ["left"]).compile(),
        "left_or_right.*no node 'left'",
    ),
    "path map to nowhere": (
        lambda: graph().add_conditional_edges("node", left_or_right, {"left": "nod"}).compile(),
        r"no node 'nod'.*Did you mean 'node'",
    ),
    "choice after END": (
        lambda: graph().add_conditional_edges(END, left_or_right).compile(),
        "nothing comes after END",
    ),
    "pause without a store": (lambda: graph().compile(interrupt_before=["node"]), "interrupt_before needs a store"),
    "pause at nowhere": (lambda: graph().compile(MemorySaver(), interrupt_after=["nod"]), "'nod'.*Did you mean"),
    "not a store": (lambda: graph().compile({"a": "dict"}), "give a Store"),
    "empty sequence": (lambda: graph().add_sequence([]), "at least one node"),
    "not a schema": (lambda: StateGraph(int), "int.*no state schema.*TypedDict"),
    "instance as schema": (lambda: StateGraph([1]), r"\[1\] is no state schema"),
    "value as a type": (lambda: StateGraph({"a": 1}), r"'a': 1 is no type.*\{'a': int\}"),
    "list of types as a type": (lambda: StateGraph({"log": [str]}), r"'log': .* is no type.*list"),
    "reducer of one argument": (lambda: StateGraph({"x": Annotated[int, one_argument]}), "'one_argument'.*'x'.*two"),
    "reducer of three": (lambda: StateGraph({"x": Annotated[int, three_arguments]}), "'three_arguments'.*'x'.*two"),
    "state key of ours": (lambda: StateGraph({"__interrupt__": str}), "'__interrupt__' cannot be"),
    "input schema that is none": (lambda: StateGraph(Log, input_schema=int), "no state schema"),
    "unknown on_paused": (lambda: graph().compile(on_paused="wait"), "'wait'.*error.*resume.*restart"),
    "misspelt compile option": (
        lambda: graph().compile(checkpoint=MemorySaver()),
        r"compile\(\) has no option 'checkpoint'. Did you mean 'checkpointer'\?.*interrupt_before.*on_paused",
    ),
    "misspelt node option": (
        lambda: graph().add_node("x", node, destination=["node"]),
        r"add_node\('x'\) has no option 'destination'. Did you mean 'destinations'\?.*defer.*retry_policy",
    ),
    "misspelt default": (
        lambda: graph().set_node_defaults(retry=None),
        r"set_node_defaults\(\) has no option 'retry'.*Known options: retry_policy",
    ),
    "unknown durability": (lambda: graph().compile(durability="never"), "'never'.*sync.*async.*exit"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_found_before_anything_runs(mistake: str):
    make, message = MISTAKES[mistake]

    with pytest.raises(GraphError, match=f"(?s){message}"):
        make()


@pytest.mark.parametrize(("method", "told"), [(StateGraph.compile, FOR_COMPILE), (StateGraph.add_node, FOR_NODES)])
def test_whoever_mistypes_an_option_is_told_all_of_them(method: Any, told: tuple[str, ...]):
    named = {name for name in inspect.signature(method).parameters if name not in ("self", "node", "action", "options")}
    unpacked = get_args(get_type_hints(method)["options"])[0].__annotations__

    assert sorted(told) == sorted({*named, *unpacked})


@pytest.mark.parametrize("name", ["invoke", "ainvoke", "stream", "astream", "batch", "get_state"])
def test_graph_that_is_not_compiled_says_so_when_it_is_run(name: str):
    with pytest.raises(AttributeError, match=rf"built, not run: graph\.compile\(checkpointer=…\)\.{name}\("):
        getattr(graph(), name)


def test_graph_has_no_other_attributes_than_its_own():
    with pytest.raises(AttributeError, match="'StateGraph' object has no attribute 'nodez'"):
        _ = graph().nodez


def test_mistake_is_a_value_error_too():
    assert issubclass(GraphError, ValueError)
    assert issubclass(GraphError, BideError)


@pytest.mark.parametrize("url", ["bide.db", "mysql://host/db", "http://x"])
def test_store_with_an_unknown_address_is_refused_with_the_known_forms(url: str):
    with pytest.raises(StoreUnavailableError, match="sqlite:///"):
        graph().compile(url)


def test_annotation_that_cannot_be_read_is_told_with_its_schema():
    class Broken(TypedDict):
        x: NoSuchType  # noqa: F821 — that is the point

    with pytest.raises(GraphError, match=r"'Broken'.*NoSuchType"):
        StateGraph(Broken)


def test_two_schemas_that_give_one_key_two_rules_are_told_apart():
    class Other(TypedDict):
        log: Annotated[list[str], lambda old, new: new]

    with pytest.raises(GraphError, match="'log'"):
        StateGraph(Log, input_schema=Other)


# ── Mistakes that only a run can show ──────────────────────────────────────────────────────────────────────────────


def choosing(choice: Any, path_map: Any = None) -> Any:
    return graph().add_conditional_edges("node", lambda state: choice, path_map).compile()


@pytest.mark.parametrize(
    ("choice", "path_map", "message"),
    [
        ("nowhere", None, "leads to 'nowhere'.*Known nodes: 'node', 'other', and END"),
        (None, None, "leads to None"),
        ("up", {"down": "other"}, "returned 'up', which its path map does not hold. It holds: 'down'"),
        (Send("nowhere", {}), None, "leads to 'nowhere'"),
        (Send(END, {}), None, "leads to '__end__'"),
        (5, None, "leads to 5"),
        ({"a": "dict"}, None, "{'a': 'dict'}"),
        ({"a": "dict"}, {"down": "other"}, "{'a': 'dict'}"),
    ],
)
def test_choice_that_leads_nowhere_is_an_error_and_no_silent_end(choice: Any, path_map: Any, message: str):
    with pytest.raises(InvalidUpdateError, match=message):
        choosing(choice, path_map).invoke({"log": []})


@pytest.mark.parametrize("nowhere", ["nowhere", 5, {"a": "dict"}])
def test_command_that_goes_nowhere_is_an_error_and_no_silent_end(nowhere: Any):
    with pytest.raises(InvalidUpdateError, match="of node 'node' leads to"):
        one_node(Log, lambda state: Command(goto=nowhere)).invoke({"log": []})


@pytest.mark.parametrize("command", [Command(resume="x"), Command(graph=Command.PARENT, goto="x")])
def test_command_that_only_a_caller_or_a_subgraph_may_give_is_refused(command: Command):
    with pytest.raises(InvalidUpdateError, match="'node' returned Command"):
        one_node({"log": list, "x": int}, lambda state: command).invoke({"log": []})


@pytest.mark.parametrize("given", [5, "text", [1]])
def test_input_that_is_no_state_is_refused(given: Any):
    with pytest.raises(InvalidUpdateError, match="The input is"):
        graph().compile().invoke(given)


def test_input_with_no_known_key_is_refused_with_the_known_ones():
    with pytest.raises(EmptyInputError, match=r"'lug'.*It takes: log"):
        graph().compile().invoke({"lug": []})


def test_empty_command_is_refused():
    with MemorySaver() as store, pytest.raises(EmptyInputError, match="empty"):
        graph().compile(store).invoke(Command(), thread())


@pytest.mark.parametrize("bad", [{"recursion_limit": 0}, {"recursion_limit": "many"}, {"max_concurrency": 0}])
def test_limit_that_is_none_is_refused(bad: dict[str, Any]):
    with pytest.raises(InvalidUpdateError, match=next(iter(bad))):
        graph().compile().invoke({"log": []}, bad)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"interupt_before": ["node"]}, "interupt_before"),
        ({"on_paused": "Error"}, r"'Error'.*error.*resume.*restart"),
        ({"durability": "synch"}, r"'synch'.*sync.*async.*exit"),
    ],
)
def test_misspelt_option_of_a_call_is_refused_and_nothing_runs(option: Any, message: str):
    with MemorySaver() as store:
        compiled = graph().compile(store)

        with pytest.raises((TypeError, BideError), match=message):
            compiled.invoke({"log": []}, thread(), **option)

        assert compiled.get_state(thread()).created_at is None


def test_empty_thread_id_is_refused_since_everybody_without_one_would_share_it():
    with MemorySaver() as store, pytest.raises(BideError, match="thread_id"):
        graph().compile(store).invoke({"log": []}, thread(""))


def test_async_node_in_a_sync_call_is_refused_with_the_right_call():
    async def anode(state: Log) -> Log:
        return {"log": ["async"]}

    with pytest.raises(GraphError, match=r"'node' is async.*ainvoke"):
        one_node(Log, anode).invoke({"log": []})


def test_going_on_without_a_store_or_a_thread_is_refused():
    with pytest.raises(GraphError, match="no store"):
        graph().compile().invoke(None)
    with MemorySaver() as store, pytest.raises(BideError, match="thread_id"):
        graph().compile(store).invoke(None)


# ── Names and places ───────────────────────────────────────────────────────────────────────────────────────────────


class Greeter:
    def greet(self, state: Log) -> Log:
        return {"log": ["greet"]}

    def __call__(self, state: Log) -> Log:
        return {"log": ["called"]}


def test_node_takes_the_name_of_its_function():
    builder = StateGraph(Log).add_node(node).add_node(Greeter().greet).add_node(functools.partial(other))

    assert list(builder.nodes) == ["node", "greet", "other"]


def test_node_may_be_anything_that_can_be_called_or_invoked():
    class Runnable:
        def invoke(self, state: Log) -> Log:
            return {"log": ["invoked"]}

    builder = StateGraph(Log).add_node("a", Greeter()).add_node("b", Runnable())
    builder.add_edge(START, "a").add_edge("a", "b")

    assert builder.compile().invoke({"log": []})["log"] == ["called", "invoked"]


def test_entry_and_finish_points_are_edges_by_another_name():
    builder = StateGraph(Log).add_node(node).set_entry_point("node").set_finish_point("node")

    assert builder.edges == {(START, "node"), ("node", END)}


def test_conditional_entry_chooses_by_the_input():
    builder = StateGraph(Log).add_node(node).add_node(other)
    builder.set_conditional_entry_point(lambda state: state["log"][0], {"n": "node", "o": "other"})

    assert builder.compile().invoke({"log": ["o"]})["log"] == ["o", "other"]


def test_choice_may_be_several_places_and_edges_run_beside_it():
    builder = graph().add_node("third", lambda state: {"log": ["third"]})
    builder.add_conditional_edges("node", lambda state: ["other", Send("third", {})])
    builder.add_edge("node", "other")

    assert builder.compile().invoke({"log": []})["log"] == ["node", "other", "third"]


def test_path_map_may_hold_any_values():
    builder = graph().add_conditional_edges("node", lambda state: len(state["log"]) > 0, {True: "other", False: END})

    assert builder.compile().invoke({"log": []})["log"] == ["node", "other"]


def test_several_conditional_edges_of_one_node_all_choose():
    builder = graph().add_node("third", lambda state: {"log": ["third"]})
    builder.add_conditional_edges("node", lambda state: "other").add_conditional_edges("node", lambda state: "third")

    assert builder.compile().invoke({"log": []})["log"] == ["node", "other", "third"]


def test_edge_function_sees_what_its_own_node_wrote_and_nothing_of_its_siblings():
    seen = []

    def look(state: Log) -> str:
        seen.append(state["log"])
        return END

    builder = graph().add_edge(START, "other")
    builder.add_conditional_edges("node", look).add_conditional_edges("other", look)
    builder.compile().invoke({"log": []})

    assert sorted(seen) == [["node"], ["other"]]


def test_node_may_return_several_updates_and_commands_in_one_list():
    builder = StateGraph(Log).add_node("a", lambda state: [{"log": ["1"]}, Command(update={"log": ["2"]}, goto="b")])
    builder.add_node("b", other).add_edge(START, "a")

    assert builder.compile().invoke({"log": []})["log"] == ["1", "2", "other"]


def test_builder_may_be_compiled_again_after_it_has_grown():
    builder = graph()
    small = builder.compile()
    large = builder.add_edge("node", "other").compile()

    assert small.invoke({"log": []})["log"] == ["node"]
    assert large.invoke({"log": []})["log"] == ["node", "other"]


def test_interrupt_returned_by_hand_is_a_question_like_any_other():
    with MemorySaver() as store:
        paused = one_node(Log, lambda state: Interrupt({"ask": 1}), checkpointer=store).invoke({"log": []}, thread())

    assert paused.interrupt_value == {"ask": 1}
