"""The pieces of `stream_mode="messages"`, each by itself: the handler, a node's scope, the messages of an update."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config

import bide
from bide import Overwrite
from bide.errors import InvalidUpdateError
from bide.graph.tokens import langchain_is_loaded, langchain_scope, messages_in, task_metadata, token_handler
from bide.messages import with_ids
from tests.langchain.models import Breaking, Talkative, Whole, saying

Part = tuple[Any, dict[str, Any]]


def told_by(node: Callable[[Any], Any], config: Any = None, metadata: Any = None) -> list[Part]:
    """What is told while a node runs, as the engine would run it."""
    told: list[Part] = []
    handler = token_handler(told.append, metadata or {"langgraph_node": "bot"})
    with langchain_scope({"configurable": {}} if config is None else config, handler) as given:
        node(given)
    return told


def texts(told: list[Part]) -> list[str]:
    return [message.content for message, _ in told]


class Ear(BaseCallbackHandler):
    """A handler of the user: it hears which models begin, with which tags and metadata."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def on_chat_model_start(self, *_: Any, tags: Any = None, metadata: Any = None, **more: Any) -> None:
        self.heard.append({"tags": tags, "metadata": metadata, "parent": more.get("parent_run_id")})


# --- what a model says ------------------------------------------------------------------------------------------------


def with_ainvoke(config: Any) -> None:
    async def node() -> None:
        await saying("hello big world").ainvoke("hi")

    asyncio.run(node())


def with_astream(config: Any) -> None:
    async def node() -> None:
        assert [chunk.content async for chunk in saying("hello big world").astream("hi")]

    asyncio.run(node())


def in_a_chain(config: Any) -> None:
    chain = ChatPromptTemplate.from_messages([("user", "{question}")]) | saying("hello big world") | StrOutputParser()
    assert chain.invoke({"question": "hi"}) == "hello big world"


WAYS = {
    "invoke": lambda config: saying("hello big world").invoke("hi"),
    "invoke with the node's config": lambda config: saying("hello big world").invoke("hi", config),
    "stream": lambda config: list(saying("hello big world").stream("hi")),
    "ainvoke": with_ainvoke,
    "astream": with_astream,
    "batch": lambda config: saying("hello big world").batch(["hi"]),
    "a chain": in_a_chain,
    "a function in a chain": lambda config: RunnableLambda(lambda _: saying("hello big world").invoke("hi")).invoke(1),
}


@pytest.mark.parametrize("way", WAYS)
def test_tokens_are_told_however_the_model_is_called(way):
    told = told_by(WAYS[way])

    assert texts(told) == ["hello", " ", "big", " ", "world"]
    assert {type(chunk) for chunk, _ in told} == {AIMessageChunk}
    assert len({chunk.id for chunk, _ in told}) == 1


def test_message_is_not_told_again_after_its_tokens():
    seen: set[str] = set()
    told: list[Part] = []

    with langchain_scope({}, token_handler(told.append, {}, seen)):
        whole = saying("hello world").invoke("hi")

    assert seen == {whole.id}
    assert messages_in({"messages": [whole]}, seen) == []
    assert len(told) == 3


@pytest.mark.parametrize("model", [Whole(), saying("all at once").model_copy(update={"disable_streaming": True})])
def test_model_that_does_not_stream_is_told_with_its_whole_message(model):
    told = told_by(lambda config: model.invoke("hi"))

    assert texts(told) == ["all at once"]
    assert type(told[0][0]) is AIMessage


def test_tokens_without_an_id_have_that_of_the_whole_message_and_it_is_not_told_again():
    whole: list[AIMessage] = []

    told = told_by(lambda config: whole.append(Talkative().invoke("hi")))

    assert texts(told) == ["all ", "at ", "once"]
    assert {chunk.id for chunk, _ in told} == {whole[0].id}


def test_tokens_before_an_error_are_told():
    def node(config: Any) -> None:
        with pytest.raises(ConnectionError):
            Breaking().invoke("hi")
        Whole(text="again").invoke("hi")

    assert texts(told_by(node)) == ["oh", "again"]


def test_model_that_is_no_chat_model_tells_nothing():
    assert told_by(lambda config: FakeListLLM(responses=["x"]).invoke("hi")) == []


def test_model_in_a_thread_of_the_node_is_told_when_the_config_is_handed_on():
    def node(config: Any) -> None:
        with ThreadPoolExecutor() as threads:
            threads.submit(saying("lost").invoke, "hi").result()
            threads.submit(saying("told").invoke, "hi", config).result()

    assert texts(told_by(node)) == ["told"]


def test_event_that_cannot_be_told_is_an_error_in_the_node():
    def refuse(part: Part) -> None:
        raise BrokenPipeError("nobody reads")

    with langchain_scope({}, token_handler(refuse, {})), pytest.raises(BrokenPipeError):
        saying("hello").invoke("hi")


# --- metadata and tags ------------------------------------------------------------------------------------------------


def test_metadata_says_which_node_and_which_model():
    config = {"configurable": {"thread_id": "t"}, "metadata": {"customer": 7, "langgraph_node": "not mine"}}
    metadata = task_metadata(
        config, node="bot", step=3, path=("__pregel_pull", "bot"), triggers=["start"], namespace="bot:1"
    )

    (_, told), *_ = told_by(lambda given: saying("hello").invoke("hi"), config, metadata)

    assert told["ls_model_type"] == "chat"
    assert told["ls_provider"] == "genericfakechatmodel"
    assert {name: told[name] for name in metadata} == {
        "customer": 7,
        "thread_id": "t",
        "langgraph_step": 3,
        "langgraph_node": "bot",
        "langgraph_triggers": ("start",),
        "langgraph_path": ("__pregel_pull", "bot"),
        "langgraph_checkpoint_ns": "bot:1",
        "checkpoint_ns": "bot:1",
    }


def test_metadata_of_a_graph_without_threads_names_none():
    assert "thread_id" not in task_metadata({}, node="bot", step=1, path=(), triggers=(), namespace="")


def test_tags_of_the_call_and_of_the_model_are_told_together():
    def node(config: Any) -> None:
        saying("x").with_config(tags=["joke"]).invoke("hi")
        (RunnableLambda(lambda text: text) | saying("y")).invoke("hi")

    first, second = told_by(node, {"tags": ("nightly",)})

    assert first[1]["tags"] == ["nightly", "joke"]
    assert second[1]["tags"] == ["nightly"]


def test_parts_share_no_metadata():
    first, second, *_ = told_by(lambda config: saying("hello world").invoke("hi"))

    first[1].clear()

    assert second[1]["langgraph_node"] == "bot"


@pytest.mark.parametrize("tag", ["nostream", "langsmith:nostream"])
def test_tag_keeps_a_model_silent(tag):
    def node(config: Any) -> None:
        saying("lost").invoke("hi", {"tags": [tag]})
        saying("lost").with_config(tags=["joke", tag]).invoke("hi", config)
        Whole(text="told").invoke("hi")

    assert texts(told_by(node)) == ["told"]
    assert told_by(lambda config: saying("lost").invoke("hi"), {"tags": [tag]}) == []


# --- the scope of a node ----------------------------------------------------------------------------------------------


def test_scope_ends_with_the_node_also_when_it_fails():
    def fail(config: Any) -> None:
        assert var_child_runnable_config.get() is config
        raise ValueError("oops")

    with pytest.raises(ValueError, match="oops"):
        told_by(fail)

    assert var_child_runnable_config.get() is None


def test_callbacks_tags_and_metadata_of_the_call_reach_models_without_a_handler_of_ours():
    ear = Ear()

    with langchain_scope({"callbacks": [ear], "tags": ["nightly"], "metadata": {"customer": 7}}):
        Whole().with_config(tags=["joke"], metadata={"model": "m"}).invoke("hi")

    (heard,) = ear.heard
    assert heard["tags"] == ["nightly", "joke"]
    assert heard["metadata"].items() >= {"customer": 7, "model": "m"}.items()


def test_config_of_a_node_holds_what_the_caller_gave_and_no_name_or_id_of_the_run():
    config = {"configurable": {"thread_id": "t"}, "recursion_limit": 9, "run_id": "r", "run_name": "n", "tags": None}

    with langchain_scope(config) as given:
        assert given == {"configurable": {"thread_id": "t"}, "recursion_limit": 9}


def test_config_of_the_caller_is_not_changed():
    ear = Ear()
    config = {"callbacks": [ear], "tags": ["a"], "metadata": {"b": 1}, "configurable": {"c": 2}}

    with langchain_scope(config, token_handler(print, {})) as given:
        given["tags"].append("mine")
        given["metadata"]["mine"] = given["configurable"]["mine"] = True

    assert config == {"callbacks": [ear], "tags": ["a"], "metadata": {"b": 1}, "configurable": {"c": 2}}


def test_graph_inside_a_chain_hands_the_callbacks_of_the_chain_on():
    ear = Ear()

    def as_a_graph_would(question: str, config: RunnableConfig) -> list[str]:
        return texts(told_by(lambda given: saying("hello").invoke(question), config))

    def without_its_config(question: str) -> list[str]:
        return texts(told_by(lambda given: saying("hello").invoke(question)))

    found = RunnableLambda(as_a_graph_would).invoke("hi", {"callbacks": [ear], "tags": ["nightly"]})
    assert RunnableLambda(without_its_config).invoke("hi", {"callbacks": [ear], "tags": ["nightly"]}) == found

    assert found == ["hello"]
    assert [heard["tags"] for heard in ear.heard] == [["nightly"], ["nightly"]]
    assert all(heard["parent"] is not None for heard in ear.heard)


def test_graph_inside_a_node_tells_its_own_stream_and_not_that_of_the_node_too():
    inner: list[list[str]] = []

    def node(config: Any) -> None:
        inner.append(texts(told_by(lambda _: saying("inside").invoke("hi"), config)))
        with langchain_scope(config):
            saying("nobody reads this").invoke("hi")
        saying("outside").invoke("hi")

    outer = texts(told_by(node))

    assert inner == [["inside"]]
    assert outer == ["outside"]


def test_callbacks_that_are_none_are_refused():
    with (
        pytest.raises(InvalidUpdateError, match=r'config\["callbacks"\] is .*Give a list'),
        langchain_scope({"callbacks": Ear()}),
    ):
        pass


# --- messages of an update --------------------------------------------------------------------------------------------


def test_messages_of_both_kinds_are_found_in_every_key_and_in_order():
    update = {
        "one": AIMessage("a", id="1"),
        "many": [bide.AIMessage("b", id="2"), "no message", HumanMessage("c", id="3")],
        "pair": (ToolMessage("d", tool_call_id="c", id="4"),),
        "all": Overwrite([bide.HumanMessage("e", id="5")]),
        "deep": {"x": AIMessage("not in the state by itself", id="6")},
        "rest": None,
    }

    assert [message.content for message in messages_in(update, set())] == ["a", "b", "c", "d", "e"]
    assert messages_in(update.items(), set()) == messages_in(update, set())


def test_message_is_found_once():
    seen: set[str] = set()
    update = {"messages": [AIMessage("a", id="1"), AIMessage("again", id="1")]}

    assert messages_in(update, seen) == [AIMessage("a", id="1")]
    assert messages_in(update, seen) == []
    assert seen == {"1"}


@dataclass(slots=True)
class State:
    messages: list[Any]


@pytest.mark.parametrize("form", [lambda messages: {"messages": messages}, State, lambda messages: messages])
def test_what_the_node_was_given_is_no_news(form):
    old, new = HumanMessage("old", id="1"), AIMessage("new", id="2")

    assert messages_in({"messages": [old, new]}, set(), form([old])) == [new]
    assert messages_in({"messages": [old]}, set(), old) == []


@pytest.mark.parametrize("removal", [RemoveMessage(id="1"), bide.RemoveMessage("__remove_all__")])
def test_removal_is_no_message(removal):
    assert messages_in({"messages": [removal, AIMessage("x", id="2")]}, set()) == [AIMessage("x", id="2")]


def test_messages_get_their_ids_before_they_are_told_and_stored():
    shared = AIMessage("x")
    same = [HumanMessage("y", id="1")]
    writes = (
        ("one", shared),
        ("many", [shared, "z", bide.AIMessage("b")]),
        ("all", Overwrite([shared])),
        ("same", same),
        ("number", 5),
    )

    found = dict(with_ids(writes))

    told = messages_in(found, set())
    assert len({message.id for message in told} - {None}) == len(told) == 5
    assert found["one"] is told[0]
    assert found["same"] is same
    assert found["number"] == 5
    assert shared.id is None


def test_handler_and_scope_are_there_only_where_langchain_is_loaded(monkeypatch):
    config = {"tags": ["nightly"]}
    assert langchain_is_loaded()
    assert isinstance(token_handler(print, {}), BaseCallbackHandler)

    monkeypatch.delitem(sys.modules, "langchain_core")
    monkeypatch.delitem(sys.modules, "langchain_core.runnables.config")

    assert not langchain_is_loaded()
    assert token_handler(print, {}) is None
    with langchain_scope(config) as given:
        assert given is config
