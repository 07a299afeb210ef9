"""What may be in the state of a graph: plain data, messages, LangGraph's own objects, and classes that are named."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pydantic
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph import START, StateGraph
from langgraph.store.base import Item
from langgraph.types import Command, Interrupt, Overwrite, PregelTask, Send, StateSnapshot, TimeoutPolicy

from bide import checkpointable
from bide.errors import CodecError, UnknownTypeError, UnstorableValueError
from bide.interop.langgraph import BideSaver
from tests.interop.graphs import CONFIG, acall, call, checkpoint


@dataclass
class Order:
    total: Decimal


@checkpointable("interop.parcel")
@dataclass
class Parcel:
    grams: int


class Customer(pydantic.BaseModel):
    name: str
    vip: bool = False


class Colour(Enum):
    RED = "red"


class Stranger:
    pass


def kept(saver: BideSaver, value: Any) -> Any:
    """Put a value into a channel and read it."""
    config = saver.put({"configurable": {"thread_id": "t"}}, checkpoint("1", value=value), {}, {"value": 1})
    found = saver.get_tuple(config)
    assert found is not None
    return found.checkpoint["channel_values"]["value"]


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        Send("node", {"n": 1}),
        Send("node", Parcel(3), timeout=2.5),
        Interrupt({"question": 1}, id="abc"),
        Interrupt("q", id="x", response_schema={"type": "string"}),
        Command(goto=["a", Send("b", 1)], update={"x": (1, 2)}, resume={"id": None}),
        Overwrite([1, 2]),
        TimeoutPolicy(run_timeout=3.0),
        PregelTask("id", "name", ("__pregel_pull", "name"), None, (Interrupt("v", id="i"),), None, {"a": 1}),
        StateSnapshot({"a": 1}, ("b",), {"configurable": {}}, {"step": 1}, None, None, (), ()),
        _DeltaSnapshot([HumanMessage("hi", id="1")]),
        Item(value={"a": 1}, key="k", namespace=("n",), created_at=NOW, updated_at=NOW),
        [HumanMessage("hi", id="1"), AIMessage("", id="2", tool_calls=[{"name": "f", "args": {}, "id": "3"}])],
        ToolMessage("done", tool_call_id="3", artifact=Document("text", metadata={"page": 1})),
        {"set": {1, 2}, "tuple": (None, b"\0"), 3: Decimal("1.50"), "parcels": [Parcel(1)] * 100},
        None,
        "\ud800 alone",
    ],
    ids=lambda value: type(value).__name__,
)
def test_comes_back_equal_and_of_its_type(saver: BideSaver, value: Any) -> None:
    found = kept(saver, value)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("value", [Order(Decimal(1)), Customer(name="Ada", vip=True), Colour.RED, [Order(Decimal(2))]])
def test_a_class_comes_back_once_the_saver_is_told_of_it(value: Any) -> None:
    with BideSaver(":memory:", types=[Order, Customer, Colour]) as saver:
        assert kept(saver, value) == value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            {"orders": [Order(Decimal(1))]},
            r"channel_values\['value'\]\['orders'\]\[0\].*Order' is not registered.*types=",
        ),
        (Stranger(), r"Stranger' cannot be stored.*serde=JsonPlusSerializer\(\)"),
        ([ValueError("x")], r"channel_values\['value'\]\[0\]"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_what_to_do(saver: BideSaver, value: Any, told: str) -> None:
    with pytest.raises(UnstorableValueError, match=f"(?s){told}"):
        kept(saver, value)

    assert saver.get_tuple(CONFIG) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("run", [call, acall], ids=["invoke", "ainvoke"])
def test_a_graph_whose_node_returns_a_stranger_says_so(saver: BideSaver, run: Any) -> None:
    graph = StateGraph(dict).add_node("make", lambda state: {"order": Order(Decimal(1))}).add_edge(START, "make")

    with pytest.raises(UnstorableValueError, match=r"writes\['__root__'\]\['order'\].*Order' is not registered"):
        run(graph.compile(checkpointer=saver), {"x": 1})


def test_a_class_that_is_no_longer_named_is_a_typed_error(lasting_url: str) -> None:
    with BideSaver(lasting_url, types=[Order]) as saver:
        kept(saver, Order(Decimal(1)))

    with BideSaver(lasting_url) as saver, pytest.raises(UnknownTypeError, match="'Order' is not registered"):
        saver.get_tuple(CONFIG)  # type: ignore[arg-type]


def test_another_serializer_is_used_when_it_is_given(lasting_url: str) -> None:
    value = {"order": Order(Decimal(1)), "messages": [HumanMessage("x" * 400, id="1")]}
    with BideSaver(lasting_url, serde=JsonPlusSerializer()) as saver:
        assert kept(saver, value) == value

    with BideSaver(lasting_url) as saver, pytest.raises(CodecError, match="another serializer, as 'msgpack'"):
        saver.get_tuple(CONFIG)  # type: ignore[arg-type]


def test_versions_of_another_saver_are_counted_on(saver: BideSaver) -> None:
    assert saver.get_next_version(None, None) == 1
    assert saver.get_next_version(41, None) == 42
    theirs = "00000000000000000000000000000041.0.7"
    assert theirs < saver.get_next_version(theirs, None) < "00000000000000000000000000000043"


def test_strict_graphs_have_nothing_to_allow(saver: BideSaver) -> None:
    assert saver.with_allowlist([("app", "Order")]) is saver
    with BideSaver(saver.store, serde=JsonPlusSerializer(allowed_msgpack_modules=None)) as strict:
        assert strict.with_allowlist([("app", "Order")]) is not strict


def test_setup_may_be_called_and_awaited(url: str) -> None:
    async def open_and_close() -> bool:
        async with BideSaver.from_conn_string(url) as saver:
            await saver.setup()
            return await saver.aget_tuple(CONFIG) is None  # type: ignore[arg-type]

    with BideSaver.from_conn_string(url) as saver:
        saver.setup()
        assert saver.get(CONFIG) is None  # type: ignore[arg-type]
    assert asyncio.run(open_and_close())
