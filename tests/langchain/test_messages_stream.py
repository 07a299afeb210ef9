"""`stream_mode="messages"`: what LangChain's models say inside nodes, and what nodes return, told while it happens."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig

import bide
from bide import END, START, Command, CompiledGraph, MessagesState, Send, StateGraph, add_messages, interrupt, step
from tests.langchain.models import Breaking, Whole, saying
from tests.threads import in_a_row, one_node, side_by_side, thread

HI = {"messages": [("user", "hi")]}
WHERE = {
    "langgraph_node",
    "langgraph_step",
    "langgraph_triggers",
    "langgraph_path",
    "langgraph_checkpoint_ns",
}


def bot(text: str, **config: Any) -> Any:
    """A node that returns what a model says."""
    return lambda state: {"messages": [saying(text).with_config(**config).invoke(state["messages"])]}


def texts(parts: list[Any]) -> list[str]:
    return [message.content for message, _ in parts]


def nodes(parts: list[Any]) -> list[str]:
    return [metadata["langgraph_node"] for _, metadata in parts]


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_each_part_is_a_chunk_and_where_it_comes_from(read, store):
    graph = one_node(MessagesState, bot("hello big world"), checkpointer=store)

    parts = read(graph, HI, thread("t", metadata={"customer": 7}, tags=["nightly"]), stream_mode="messages")

    assert texts(parts) == ["hello", " ", "big", " ", "world"]
    for chunk, metadata in parts:
        assert type(chunk) is AIMessageChunk
        assert metadata.keys() >= WHERE
        assert metadata["langgraph_node"] == "node"
        assert metadata["langgraph_step"] == 1
        assert metadata["thread_id"] == "t"
        assert metadata["customer"] == 7
        assert metadata["tags"] == ["nightly"]
        assert metadata["ls_provider"] == "genericfakechatmodel"


def test_several_modes_say_which_mode_a_part_is_of_and_tokens_come_before_the_update(read):
    graph = one_node(MessagesState, bot("hello world"))

    parts = read(graph, HI, stream_mode=["updates", "messages"])

    assert [mode for mode, _ in parts] == ["messages", "messages", "messages", "updates"]
    assert texts([part for mode, part in parts if mode == "messages"]) == ["hello", " ", "world"]


def test_chunks_have_the_id_of_the_message_in_the_state(read):
    graph = one_node(MessagesState, bot("hello world"))

    *tokens, values = read(graph, HI, stream_mode=["messages", "values"])[1:]

    assert {chunk.id for _, (chunk, _) in tokens} == {values[1]["messages"][-1].id}


def test_tokens_arrive_while_the_node_runs():
    was_read = threading.Event()

    def node(state: MessagesState) -> dict[str, Any]:
        for _ in saying("hello world").stream(state["messages"]):
            assert was_read.wait(timeout=30), "the first token did not arrive while the node ran"
        return {}

    for _ in one_node(MessagesState, node).stream(HI, stream_mode="messages"):
        was_read.set()

    assert was_read.is_set()


# --- what is told -----------------------------------------------------------------------------------------------------


def test_async_node_tells_its_tokens():
    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": await saying("hello world").ainvoke(state["messages"])}

    graph = one_node(MessagesState, node)

    async def parts() -> list[Any]:
        return [part async for part in graph.astream(HI, stream_mode="messages")]

    assert texts(asyncio.run(parts())) == ["hello", " ", "world"]


def test_node_that_hands_its_config_on_tells_the_same(read):
    def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": saying("hello").invoke(state["messages"], config)}

    assert texts(read(one_node(MessagesState, node), HI, stream_mode="messages")) == ["hello"]


def test_chain_as_a_node_tells_the_tokens_of_its_model(read):
    prompt = ChatPromptTemplate.from_messages([("system", "be kind"), MessagesPlaceholder("messages")])
    chain = prompt | saying("hello world") | (lambda message: {"messages": [message]})

    assert texts(read(one_node(MessagesState, chain), HI, stream_mode="messages")) == ["hello", " ", "world"]


def test_model_that_cannot_stream_is_told_once_with_its_whole_message(read):
    graph = one_node(MessagesState, lambda state: {"messages": Whole().invoke(state["messages"])})

    ((message, metadata),) = read(graph, HI, stream_mode="messages")

    assert type(message) is AIMessage
    assert message.content == "all at once"
    assert metadata["ls_provider"] == "whole"


def test_model_whose_answer_is_not_returned_is_told_too(read):
    def node(state: MessagesState) -> None:
        saying("thinking aloud").invoke(state["messages"])

    assert texts(read(one_node(MessagesState, node), HI, stream_mode="messages")) == ["thinking", " ", "aloud"]


@pytest.mark.parametrize("tag", ["nostream", "langsmith:nostream"])
def test_tag_keeps_tokens_back_and_not_the_message_that_is_returned(read, tag):
    def silent(state: MessagesState) -> None:
        saying("a secret").invoke(state["messages"], {"tags": [tag]})

    graph = in_a_row(MessagesState, {"silent": silent, "bot": bot("hello world", tags=[tag])})

    ((message, metadata),) = read(graph, HI, stream_mode="messages")

    assert message.content == "hello world"
    assert metadata["langgraph_node"] == "bot"


def test_messages_that_a_node_returns_are_told_with_the_ids_that_they_have_in_the_state(read):
    class State(TypedDict):
        messages: Annotated[list[Any], add_messages]
        last: Any

    said = [AIMessage("a"), bide.AIMessage("b"), HumanMessage("c", id="3")]
    graph = one_node(State, lambda state: Command(update={"messages": said, "last": AIMessage("d", id="4")}, goto=END))

    *parts, (_, values) = read(graph, {"messages": []}, stream_mode=["messages", "values"])[1:]

    told = [part for mode, part in parts if mode == "messages"]
    assert texts(told) == ["a", "b", "c", "d"]
    assert [message.id for message, _ in told] == [*(message.id for message in values["messages"]), "4"]
    assert {metadata["langgraph_node"] for _, metadata in told} == {"node"}
    assert said[0].id is None


def test_message_that_a_node_returns_says_where_it_comes_from(read, store):
    graph = one_node(MessagesState, lambda state: {"messages": AIMessage("hello")}, checkpointer=store)

    ((_, metadata),) = read(graph, HI, thread("t", metadata={"customer": 7}), stream_mode="messages")

    assert metadata.keys() >= WHERE
    assert metadata["thread_id"] == "t"
    assert metadata["customer"] == 7


def test_message_that_was_sent_to_a_node_is_no_news_when_it_is_returned(read):
    builder = StateGraph(MessagesState)
    builder.add_node("bot", lambda state: {"messages": [*state["messages"], AIMessage("hello")]})
    send = Send("bot", {"messages": [HumanMessage("psst", id="1")]})
    graph = builder.add_conditional_edges(START, lambda state: [send]).compile()

    assert texts(read(graph, HI, stream_mode="messages")) == ["hello"]


def test_message_is_told_once_however_often_it_is_returned(read):
    graph = in_a_row(
        MessagesState,
        {
            "a": bot("hello"),
            "b": lambda state: {"messages": [*state["messages"], AIMessage("news")]},
            "c": lambda state: {"messages": state["messages"]},
        },
    )

    assert texts(read(graph, HI, stream_mode="messages")) == ["hello", "news"]


def test_input_is_not_told(read):
    graph = one_node(MessagesState, lambda state: None)

    assert read(graph, {"messages": [HumanMessage("hi", id="1")]}, stream_mode="messages") == []


def test_tokens_before_an_error_are_told_and_the_error_is_raised():
    graph = one_node(MessagesState, lambda state: Breaking().invoke("hi"))
    parts = graph.stream(HI, stream_mode="messages")

    assert next(parts)[0].content == "oh"
    with pytest.raises(ConnectionError):
        next(parts)


# --- which node -------------------------------------------------------------------------------------------------------


def test_part_names_its_node_and_step(read):
    graph = in_a_row(MessagesState, {"a": bot("one"), "b": bot("two")})

    parts = read(graph, HI, stream_mode="messages")

    assert nodes(parts) == ["a", "b"]
    assert [metadata["langgraph_step"] for _, metadata in parts] == [1, 2]


def test_nodes_side_by_side_are_told_apart(read):
    graph = side_by_side(MessagesState, {"a": bot("one one"), "b": bot("two two")})

    parts = read(graph, HI, stream_mode="messages")

    assert texts([part for part in parts if part[1]["langgraph_node"] == "a"]) == ["one", " ", "one"]
    assert texts([part for part in parts if part[1]["langgraph_node"] == "b"]) == ["two", " ", "two"]


def test_tasks_of_one_node_are_told_apart(read):
    builder = StateGraph(MessagesState).add_node(
        "bot", lambda state: {"messages": bot(state["say"])(state)["messages"]}
    )
    sends = [Send("bot", {"messages": ["hi"], "say": say}) for say in ("one", "two")]
    graph = builder.add_conditional_edges(START, lambda state: sends).compile()

    parts = read(graph, HI, stream_mode="messages")

    assert sorted(texts(parts)) == ["one", "two"]
    assert nodes(parts) == ["bot", "bot"]
    assert len({metadata["langgraph_checkpoint_ns"] for _, metadata in parts}) == 2


def test_model_in_a_conditional_edge_is_told_with_the_node_before_it(read):
    def choose(state: MessagesState) -> str:
        saying("where to?").invoke(state["messages"])
        return END

    builder = StateGraph(MessagesState).add_node("node", lambda state: None).add_edge(START, "node")

    parts = read(builder.add_conditional_edges("node", choose).compile(), HI, stream_mode="messages")

    assert set(nodes(parts)) == {"node"}
    assert texts(parts) == ["where", " ", "to?"]


# --- pauses -----------------------------------------------------------------------------------------------------------


def test_node_that_runs_again_after_its_answer_tells_its_tokens_again(read, store):
    def node(state: MessagesState) -> dict[str, Any]:
        draft = saying("a draft").invoke(state["messages"])
        return {"messages": [draft if interrupt("send it?") else AIMessage("never mind")]}

    graph = one_node(MessagesState, node, checkpointer=store)

    assert texts(read(graph, HI, thread(), stream_mode="messages")) == ["a", " ", "draft"]
    resumed = read(graph, Command(resume=False), thread(), stream_mode="messages")
    assert texts(resumed) == ["a", " ", "draft", "never mind"]


def test_model_in_a_step_is_called_once_and_its_message_is_told_when_it_is_returned(read, store):
    model = saying("a draft")

    def node(state: MessagesState) -> dict[str, Any]:
        draft = step(model.invoke, state["messages"])
        interrupt("send it?")
        return {"messages": [draft]}

    graph = one_node(MessagesState, node, checkpointer=store)

    assert texts(read(graph, HI, thread(), stream_mode="messages")) == ["a", " ", "draft"]
    assert texts(read(graph, Command(resume=True), thread(), stream_mode="messages")) == ["a draft"]


# --- graphs within graphs ---------------------------------------------------------------------------------------------


@pytest.fixture
def nested() -> CompiledGraph:
    return one_node(MessagesState, one_node(MessagesState, bot("hello world")))


def test_graph_inside_a_graph_tells_only_what_it_returns(read, nested):
    ((message, metadata),) = read(nested, HI, stream_mode="messages")

    assert message.content == "hello world"
    assert metadata["langgraph_step"] == 1


def test_graph_inside_a_graph_tells_its_tokens_when_asked_for_subgraphs(read, nested):
    parts = read(nested, HI, stream_mode="messages", subgraphs=True)

    assert texts([part for _, part in parts]) == ["hello", " ", "world"]
    for namespace, _ in parts:
        (outer,) = namespace
        assert outer.startswith("node:")


def test_graph_called_in_a_node_tells_only_what_the_node_returns(read):
    inner = one_node(MessagesState, bot("hello world"))
    graph = one_node(MessagesState, lambda state: {"messages": inner.invoke({"messages": ["hi"]})["messages"][-1]})

    ((message, _),) = read(graph, HI, stream_mode="messages")

    assert message.content == "hello world"


def test_second_version_of_the_stream_wraps_each_part(read):
    graph = one_node(MessagesState, bot("hello"))

    (part,) = read(graph, HI, stream_mode="messages", version="v2")

    assert part["type"] == "messages"
    assert part["ns"] == ()
    assert texts([part["data"]]) == ["hello"]


# --- without LangChain ------------------------------------------------------------------------------------------------


def test_messages_of_ours_are_told_where_langchain_is_not_loaded(read, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "langchain_core"]:
        monkeypatch.delitem(sys.modules, name)
    graph = one_node(MessagesState, lambda state: {"messages": [bide.AIMessage("hello")]})

    ((message, metadata),) = read(graph, HI, stream_mode="messages")

    assert type(message) is bide.AIMessage
    assert message.content == "hello"
    assert metadata.keys() >= WHERE
