"""Runnables as nodes, and graphs as runnables."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnableParallel
from langchain_core.tools import tool

import bide
from bide import Command, MessagesState, get_config, interrupt
from bide.store import Store
from tests.langchain.models import Whole, saying
from tests.threads import in_a_row, one_node, thread

HI = {"messages": [("user", "hi")]}


class Number(TypedDict, total=False):
    n: int
    by: str


class Ear(BaseCallbackHandler):
    """A handler of the user: it hears which models begin."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def on_chat_model_start(self, *_: Any, tags: Any = None, metadata: Any = None, **more: Any) -> None:
        self.heard.append({"tags": sorted(tags), "customer": metadata.get("customer")})


def doubled(state: Number) -> Number:
    return {"n": state["n"] * 2, "by": "invoke"}


async def adoubled(state: Number) -> Number:
    return {"n": state["n"] * 2, "by": "ainvoke"}


# --- runnables as nodes -----------------------------------------------------------------------------------------------


def test_runnable_is_a_node(call):
    graph = one_node(Number, RunnableLambda(doubled))

    assert call(graph, {"n": 2}) == {"n": 4, "by": "invoke"}


def test_runnable_with_both_ways_is_called_in_that_of_the_driver():
    graph = one_node(Number, RunnableLambda(doubled, afunc=adoubled))

    assert graph.invoke({"n": 2})["by"] == "invoke"
    assert asyncio.run(graph.ainvoke({"n": 2}))["by"] == "ainvoke"


def test_chain_is_a_node(call):
    prompt = ChatPromptTemplate.from_messages([("system", "be kind"), MessagesPlaceholder("messages")])
    chain = prompt | saying("hello") | (lambda message: {"messages": [message]})

    found = call(one_node(MessagesState, chain), HI)

    assert [message.content for message in found["messages"]] == ["hi", "hello"]


def test_model_takes_what_the_state_holds_whatever_was_put_in(call):
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": saying("hello").invoke(state["messages"])}

    given = ["a", ("ai", "b"), {"role": "user", "content": "c"}, bide.AIMessage("d"), HumanMessage("e")]

    found = call(one_node(MessagesState, node), {"messages": given})

    assert [message.content for message in found["messages"]] == ["a", "b", "c", "d", "e", "hello"]


def test_conversation_goes_on_from_a_store_that_was_closed(call, tmp_path):
    url = f"sqlite:///{tmp_path / 'bide.db'}"

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": saying(f"answer {len(state['messages'])}").invoke(state["messages"])}

    for turn in (1, 3):
        with Store.open(url) as store:
            found = call(one_node(MessagesState, node, checkpointer=store), HI, thread())
        assert found["messages"][-1].content == f"answer {turn}"

    assert [type(message) for message in found["messages"]] == [HumanMessage, AIMessage] * 2


def test_thread_that_was_begun_without_langchain_goes_on_with_a_model(call, store, monkeypatch):
    def node(state: MessagesState) -> dict[str, Any]:
        interrupt("go on?")
        return {"messages": saying("hello").invoke(state["messages"])}

    graph = one_node(MessagesState, node, checkpointer=store)
    with monkeypatch.context() as elsewhere:
        elsewhere.delitem(sys.modules, "langchain_core.messages")
        begun = call(graph, HI, thread())
    assert [type(message) for message in begun["messages"]] == [bide.HumanMessage]

    found = call(graph, Command(resume=True), thread())

    assert [type(message) for message in found["messages"]] == [HumanMessage, AIMessage]


def test_documents_and_texts_in_a_state_are_stored(call, store):
    class State(TypedDict, total=False):
        found: list[Document]
        answer: str

    def node(state: State) -> State:
        return {"found": [Document("a page", metadata={"page": 3})], "answer": Whole().invoke("hi").text}

    call(one_node(State, node, checkpointer=store), {}, thread())

    kept = one_node(State, node, checkpointer=store).get_state(thread()).values
    assert kept == {"found": [Document("a page", metadata={"page": 3})], "answer": "all at once"}


# --- config and callbacks ---------------------------------------------------------------------------------------------


def test_config_of_the_call_reaches_a_node_and_what_it_calls(call, store):
    ear = Ear()
    seen: list[Any] = []

    def node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        seen.append(config)
        seen.append(get_config())
        Whole().invoke(state["messages"])
        return {"messages": Whole().with_config(tags=["joke"]).invoke(state["messages"], config)}

    graph = one_node(MessagesState, node, checkpointer=store)

    call(graph, HI, thread("t", callbacks=[ear], tags=["nightly"], metadata={"customer": 7}))

    assert [config["configurable"]["thread_id"] for config in seen] == ["t", "t"]
    assert ear.heard == [
        {"tags": ["nightly"], "customer": 7},
        {"tags": ["joke", "nightly"], "customer": 7},
    ]


def test_callbacks_of_the_call_are_told_once_also_while_messages_are_streamed(read):
    ear = Ear()
    graph = one_node(MessagesState, lambda state: {"messages": saying("hello").invoke(state["messages"])})

    read(graph, HI, {"callbacks": [ear]}, stream_mode="messages")

    assert len(ear.heard) == 1


# --- pauses inside LangChain ------------------------------------------------------------------------------------------


def test_interrupt_inside_a_runnable_pauses_the_graph(call, store):
    graph = one_node(Number, RunnableLambda(lambda state: {"n": interrupt("which?")}), checkpointer=store)

    assert call(graph, {"n": 1}, thread()).interrupt_value == "which?"
    assert call(graph, Command(resume=5), thread()) == {"n": 5}


def test_interrupt_inside_a_tool_pauses_the_graph_and_its_answer_is_a_message(call, store):
    @tool
    def approve(amount: int) -> str:
        """Ask a person."""
        return str(interrupt(f"pay {amount}?"))

    def tools(state: MessagesState) -> dict[str, Any]:
        return {"messages": [approve.invoke(call) for call in state["messages"][-1].tool_calls]}

    wish = AIMessage("", tool_calls=[{"name": "approve", "args": {"amount": 5}, "id": "c"}])
    graph = in_a_row(MessagesState, {"model": lambda state: {"messages": [wish]}, "tools": tools}, checkpointer=store)

    assert call(graph, HI, thread()).interrupt_value == "pay 5?"
    answer = call(graph, Command(resume="yes"), thread())["messages"][-1]

    assert type(answer) is ToolMessage
    assert (answer.content, answer.tool_call_id, answer.name) == ("yes", "c", "approve")


@pytest.fixture
def two_questions(store):
    """A graph whose one node asks two questions side by side."""
    branches = RunnableParallel(
        n=RunnableLambda(lambda state: interrupt("how many?", key="n")),
        by=RunnableLambda(lambda state: interrupt("who?", key="by")),
    )
    return one_node(Number, branches, checkpointer=store)


def test_interrupts_side_by_side_inside_a_runnable_are_asked_at_once(two_questions):
    paused = two_questions.invoke({"n": 1}, thread())

    assert sorted(question.value for question in paused.interrupts) == ["how many?", "who?"]


def test_interrupts_side_by_side_inside_a_runnable_get_each_its_own_answer(call, two_questions):
    answers = {"how many?": 5, "who?": "Ada"}

    found = call(two_questions, {"n": 1}, thread())
    # With asyncio a runnable is left by its first question, and the second one may come a turn later.
    while found.is_interrupted:
        resume = {question.id: answers[question.value] for question in found.interrupts}
        found = call(two_questions, Command(resume=resume), thread())

    assert found == {"n": 5, "by": "Ada"}


# --- graphs as runnables ----------------------------------------------------------------------------------------------


def test_graph_is_a_part_of_a_chain():
    graph = one_node(Number, RunnableLambda(doubled, afunc=adoubled))
    chain = RunnableLambda(lambda n: {"n": n}) | RunnableLambda(graph.invoke, afunc=graph.ainvoke) | (lambda s: s["n"])

    assert chain.invoke(2) == 4
    assert asyncio.run(chain.ainvoke(2)) == 4
    assert chain.batch([1, 2, 3]) == [2, 4, 6]


def test_graph_in_a_chain_hands_the_callbacks_of_the_chain_to_its_models():
    ear = Ear()
    graph = one_node(MessagesState, lambda state: {"messages": Whole().invoke(state["messages"])})
    config: RunnableConfig = {"callbacks": [ear], "tags": ["nightly"], "metadata": {"customer": 7}}

    RunnableLambda(graph.invoke).invoke(HI, config)
    RunnableLambda(lambda given: graph.invoke(given)).invoke(HI, config)

    assert ear.heard == [{"tags": ["nightly"], "customer": 7}] * 2


def test_several_inputs_are_run_in_one_call():
    graph = one_node(Number, RunnableLambda(doubled, afunc=adoubled))

    assert [found["n"] for found in graph.batch([{"n": 1}, {"n": 2}])] == [2, 4]
    assert [found["n"] for found in asyncio.run(graph.abatch([{"n": 1}, {"n": 2}]))] == [2, 4]


def test_each_input_of_a_batch_may_have_its_own_config(store):
    graph = one_node(Number, doubled, checkpointer=store)

    graph.batch([{"n": 1}, {"n": 2}], [thread("a"), thread("b")])

    assert graph.get_state(thread("a")).values["n"] == 2
    assert graph.get_state(thread("b")).values["n"] == 4


def test_error_in_a_batch_is_raised_or_returned_in_its_place():
    def halved(state: Number) -> Number:
        return {"n": 8 // state["n"]}

    graph = one_node(Number, halved)

    with pytest.raises(ZeroDivisionError):
        graph.batch([{"n": 2}, {"n": 0}])
    found = graph.batch([{"n": 2}, {"n": 0}], return_exceptions=True)
    assert found[0] == {"n": 4}
    assert isinstance(found[1], ZeroDivisionError)


def test_graph_with_a_config_is_another_graph_that_adds_it_to_every_call(call, store):
    ear = Ear()
    graph = one_node(MessagesState, lambda state: {"messages": Whole().invoke(state["messages"])}, checkpointer=store)

    bound = graph.with_config({"tags": ["nightly"], "callbacks": [ear]}, metadata={"customer": 7})
    call(bound, HI, thread())
    call(graph, HI, thread("other"))

    assert ear.heard == [{"tags": ["nightly"], "customer": 7}]
    assert len(bound.get_state(thread()).values["messages"]) == 2
