"""State schemas of every kind, what nodes are given, and what callers see."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict

import pydantic
import pytest

from bide import (
    START,
    Command,
    Runtime,
    Send,
    StateGraph,
    Store,
    StreamWriter,
    get_config,
    get_runtime,
    get_stream_writer,
    interrupt,
)
from bide.errors import BideError, InvalidUpdateError
from tests.threads import in_a_row, one_node, thread


class Item(pydantic.BaseModel):
    name: str
    price: int


class TypedState(TypedDict):
    count: int
    log: Annotated[list[str], operator.add]
    item: NotRequired[Item]


@dataclass
class DataState:
    count: int = 0
    log: Annotated[list[str], operator.add] = field(default_factory=list)
    item: Item | None = None


class ModelState(pydantic.BaseModel):
    count: int = 0
    log: Annotated[list[str], operator.add] = []
    item: Item | None = None


DICT_STATE = {"count": int, "log": Annotated[list, operator.add], "item": Item}


class OnlyCount(TypedDict):
    count: int


class Private(TypedDict):
    secret: str


def by_key(state: Any, key: str) -> Any:
    return state[key] if isinstance(state, dict) else getattr(state, key)


SCHEMAS = [TypedState, DataState, ModelState, DICT_STATE]


@pytest.mark.parametrize("schema", SCHEMAS, ids=["TypedDict", "dataclass", "pydantic", "dict"])
def test_graph_runs_pauses_and_comes_back_over_every_kind_of_schema(store: Store, schema: Any):
    def count(state: Any) -> Any:
        return {"count": by_key(state, "count") + 1, "log": ["counted"]}

    def ask(state: Any) -> Any:
        answer = interrupt(f"{by_key(state, 'count')} so far, go on?")
        return {"log": [answer, *by_key(state, "log")], "item": Item(name="pen", price=2)}

    graph = in_a_row(schema, {"count": count, "ask": ask}, checkpointer=store)
    paused = graph.invoke({"count": 1, "log": []}, thread())
    done = graph.invoke(Command(resume="yes"), thread())

    assert paused.interrupt_value == "2 so far, go on?"
    assert done.value == {"count": 2, "log": ["counted", "yes", "counted"], "item": Item(name="pen", price=2)}
    assert graph.get_state(thread()).values["item"] == Item(name="pen", price=2)


@pytest.mark.parametrize("schema", [DataState, ModelState])
def test_node_gets_an_instance_and_may_return_one(schema: Any):
    seen = []

    def node(state: Any) -> Any:
        seen.append(type(state))
        return schema(count=state.count + 1)

    done = one_node(schema, node).invoke(schema(count=1, log=["in"]))

    assert seen == [schema]
    assert done["count"] == 2
    assert done["log"] == ["in"]


def test_model_that_a_node_returns_writes_only_the_fields_that_were_set():
    done = one_node(ModelState, lambda state: ModelState(log=["more"])).invoke({"count": 7, "log": []})

    assert (done["count"], done["log"]) == (7, ["more"])


def test_input_that_a_model_refuses_is_an_error_that_names_the_field():
    with pytest.raises((BideError, pydantic.ValidationError), match="count"):
        one_node(ModelState, lambda state: None).invoke({"count": "many"})


def test_state_that_cannot_be_made_into_its_dataclass_names_the_missing_keys():
    @dataclass
    class Strict:
        a: int
        b: int

    with pytest.raises(InvalidUpdateError, match=r"Strict.*Keys without a value yet: 'b'"):
        one_node(Strict, lambda state: None).invoke({"a": 1})


def test_node_may_read_a_schema_of_its_own():
    seen = []

    def narrow(state: OnlyCount) -> None:
        seen.append(state)

    one_node(TypedState, narrow).invoke({"count": 1, "log": ["x"]})

    assert seen == [{"count": 1}]


def test_key_of_a_nodes_own_schema_is_private_to_the_nodes_that_know_it():
    def write(state: TypedState) -> Private:
        return {"secret": "psst"}

    def read(state: Private) -> TypedState:
        return {"log": [state["secret"]], "count": 2}

    done = in_a_row(TypedState, {"write": write, "read": read}).invoke({"count": 1, "log": []})

    assert done.value == {"count": 2, "log": ["psst"]}


def test_node_may_be_given_its_schema_when_it_is_added():
    seen = []
    builder = StateGraph(TypedState).add_node("node", seen.append, input_schema=OnlyCount).add_edge(START, "node")

    builder.compile().invoke({"count": 1, "log": ["x"]})

    assert seen == [{"count": 1}]


class Question(TypedDict):
    question: str


class Answer(TypedDict):
    answer: str


class Whole(Question, Answer):
    notes: Annotated[list[str], operator.add]


def answering(store: Store | None = None) -> Any:
    builder = StateGraph(Whole, input_schema=Question, output_schema=Answer)
    builder.add_node("think", lambda state: {"notes": ["hm"], "answer": state["question"].upper()})
    return builder.add_edge(START, "think").compile(store)


def test_caller_gives_the_input_schema_and_gets_the_output_schema():
    assert answering().invoke({"question": "why"}).value == {"answer": "WHY"}


def test_key_outside_the_input_schema_is_not_taken_from_the_input(store: Store):
    graph = answering(store)
    graph.invoke({"question": "why", "notes": ["smuggled"]}, thread())

    assert graph.get_state(thread()).values["notes"] == ["hm"]


def test_state_view_shows_the_whole_state_and_not_only_the_output(store: Store):
    graph = answering(store)
    graph.invoke({"question": "why"}, thread())

    assert graph.get_state(thread()).values == {"question": "why", "notes": ["hm"], "answer": "WHY"}


# ── What nodes are given beside the state ──────────────────────────────────────────────────────────────────────────


@dataclass
class Request:
    user: str


def with_config(state: Any, config: Any) -> Any:
    return config["configurable"]["thread_id"], config["configurable"]["colour"]


def with_runtime(state: Any, runtime: Runtime[Request]) -> Any:
    return runtime.thread_id, runtime.context.user, runtime.node, runtime.step


def with_annotated_runtime(state: Any, *, rt: Runtime[Request]) -> Any:
    return rt.thread_id, rt.context.user


def without_state() -> Any:
    return get_config()["configurable"]["thread_id"], get_runtime().context.user


def runtime_first(runtime: Runtime[Request]) -> Any:
    return runtime.thread_id, runtime.context.user


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (with_config, ("7", "red")),
        (with_runtime, ("7", "ada", "node", 1)),
        (with_annotated_runtime, ("7", "ada")),
        (without_state, ("7", "ada")),
        (runtime_first, ("7", "ada")),
    ],
)
def test_node_is_given_what_it_names(store: Store, function: Callable[..., Any], given: Any):
    seen = []

    @functools.wraps(function)
    def read(*args: Any, **kwargs: Any) -> None:
        seen.append(function(*args, **kwargs))

    config = {"configurable": {"thread_id": 7, "colour": "red"}}

    one_node(TypedState, read, checkpointer=store).invoke({"count": 1, "log": []}, config, context=Request("ada"))

    assert seen == [given]


def test_edge_function_is_given_what_it_names(store: Store):
    builder = StateGraph(TypedState).add_node("a", lambda state: None).add_edge(START, "a")
    builder.add_node("b", lambda state: {"log": ["b"]})
    builder.add_conditional_edges("a", lambda state, runtime: runtime.context.user)
    graph = builder.compile(store)

    assert graph.invoke({"count": 1, "log": []}, thread(), context=Request("b"))["log"] == ["b"]


def test_writer_is_given_by_name_by_annotation_and_by_function():
    def by_name(state: Any, writer: Any) -> None:
        writer(1)

    def by_annotation(state: Any, out: StreamWriter) -> None:
        out(2)

    def by_function(state: Any) -> None:
        get_stream_writer()(3)

    nodes = {"a": by_name, "b": by_annotation, "c": by_function}

    assert list(in_a_row(TypedState, nodes).stream({"count": 1, "log": []}, stream_mode="custom")) == [1, 2, 3]


def test_writer_goes_nowhere_when_nobody_reads():
    assert one_node(TypedState, lambda state, writer: writer("x")).invoke({"count": 1, "log": []})["count"] == 1


@pytest.mark.parametrize("ask", [get_config, get_runtime, get_stream_writer])
def test_asking_for_the_run_outside_a_node_is_an_error(ask: Callable[[], Any]):
    with pytest.raises(RuntimeError, match="outside a node"):
        ask()


def test_caller_may_leave_out_the_thread_and_gets_one(store: Store):
    graph = one_node(TypedState, lambda state: {"log": [get_runtime().thread_id]}, checkpointer=store)

    first, second = graph.invoke({"count": 1, "log": []}), graph.invoke({"count": 1, "log": []})

    assert first["log"] == [first.thread_id]
    assert first.thread_id != second.thread_id
    assert graph.get_state(thread(first.thread_id)).values["log"] == [first.thread_id]


# ── What is lent, and what is sent ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("schema", SCHEMAS, ids=["TypedDict", "dataclass", "pydantic", "dict"])
def test_node_that_changes_its_state_in_place_changes_nobody_elses(schema: Any):
    seen = []

    def spoil(state: Any) -> None:
        by_key(state, "log").append("spoilt")

    def look(state: Any) -> None:
        seen.append(list(by_key(state, "log")))

    done = in_a_row(schema, {"spoil": spoil, "look": look}).invoke({"count": 1, "log": ["in"]})

    assert seen == [["in"]]
    assert done["log"] == ["in"]


def test_input_of_the_caller_is_not_changed_by_the_run():
    given = {"count": 1, "log": ["in"]}

    def node(state: Any) -> Any:
        state["log"].append("x")
        return state

    one_node(TypedState, node).invoke(given)

    assert given == {"count": 1, "log": ["in"]}


@pytest.mark.parametrize("arg", [{"item": 1}, {}, 5, "text", None, Item(name="pen", price=2)])
@pytest.mark.parametrize("schema", SCHEMAS, ids=["TypedDict", "dataclass", "pydantic", "dict"])
def test_what_is_sent_to_a_node_arrives_as_it_is(store: Store, schema: Any, arg: Any):
    seen = []
    builder = StateGraph(schema).add_node("node", lambda state: seen.append(state))
    builder.add_conditional_edges(START, lambda state: Send("node", arg))

    builder.compile(store).invoke({"count": 1, "log": []}, thread())

    assert seen == [arg]
