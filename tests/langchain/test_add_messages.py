"""`add_messages` where LangChain is loaded: whatever is given, the list holds LangChain's own messages."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
)

import bide
from bide import REMOVE_ALL_MESSAGES, add_messages
from bide.errors import InvalidUpdateError
from bide.messages import Message, settled
from tests.langchain.models import saying

PART_OF_CALL = {"name": "search", "args": '{"q": "x"}', "id": "c", "index": 0}
CALL = {"name": "search", "args": {"q": "x"}, "id": "c"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


def nameless(message: Any) -> Any:
    """The message without the id that it was given."""
    assert UUID(message.id).version == 4
    return message.model_copy(update={"id": None})


# --- what becomes LangChain's -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("hi", HumanMessage("hi")),
        (("user", "hi"), HumanMessage("hi")),
        (("ai", [{"type": "text", "text": "x"}]), AIMessage([{"type": "text", "text": "x"}])),
        ({"role": "user", "content": "hi", "name": "Ada"}, HumanMessage("hi", name="Ada")),
        ({"role": "user", "content": "hi", "mood": "good"}, HumanMessage("hi", additional_kwargs={"mood": "good"})),
        ({"role": "system", "content": "x"}, SystemMessage("x")),
        ({"role": "developer", "content": "x"},
         SystemMessage("x", additional_kwargs={"__openai_role__": "developer"})),
        ({"role": "tool", "content": "x", "tool_call_id": "c", "artifact": {"n": 1}, "status": "error"},
         ToolMessage("x", tool_call_id="c", artifact={"n": 1}, status="error")),
        ({"type": "ai", "content": "x", "tool_calls": [CALL], "usage_metadata": USAGE, "invalid_tool_calls": []},
         AIMessage("x", tool_calls=[CALL], usage_metadata=USAGE)),
        ({"role": "assistant", "content": None,
          "tool_calls": [{"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}]},
         AIMessage("", tool_calls=[CALL])),
        (dumpd(AIMessage("x", tool_calls=[CALL])), AIMessage("x", tool_calls=[CALL])),
        (bide.HumanMessage("hi", name="Ada"), HumanMessage("hi", name="Ada")),
        (bide.AIMessage("x", tool_calls=[{"name": "search"}], response_metadata={"model": "m"}, usage_metadata=USAGE),
         AIMessage("x", tool_calls=[{"name": "search", "args": {}, "id": None}], response_metadata={"model": "m"},
                   usage_metadata=USAGE)),
        (bide.SystemMessage("x", additional_kwargs={"k": 1}), SystemMessage("x", additional_kwargs={"k": 1})),
        (bide.ToolMessage("x", tool_call_id="c", artifact=[1]), ToolMessage("x", tool_call_id="c", artifact=[1])),
    ],
)  # fmt: skip
def test_message_of_langchain_is_made_of(given, wanted):
    (found,) = add_messages([], given)

    assert type(found) is type(wanted)
    assert nameless(found) == wanted


def test_messages_of_ours_that_a_thread_kept_become_langchains_when_one_is_added():
    stored = [bide.SystemMessage("be kind", id="1"), bide.HumanMessage("hi", id="2"), bide.AIMessage("hello", id="3")]

    found = add_messages(stored, HumanMessage("again", id="4"))

    assert [type(message) for message in found] == [SystemMessage, HumanMessage, AIMessage, HumanMessage]
    assert [message.id for message in found] == ["1", "2", "3", "4"]
    assert saying("fine").invoke(found).content == "fine"


def test_stored_list_is_made_fit_for_a_model_without_a_merge():
    stored = [bide.HumanMessage("hi", id="1"), AIMessage("hello", id="2")]

    found = settled(stored)

    assert found == add_messages(stored, []) == [HumanMessage("hi", id="1"), AIMessage("hello", id="2")]
    assert settled(found) is found


@pytest.mark.parametrize(
    ("chunk", "whole"),
    [
        (AIMessageChunk("x", id="1", chunk_position="last"), AIMessage("x", id="1")),
        (HumanMessageChunk("x", id="1"), HumanMessage("x", id="1")),
        (ToolMessageChunk("x", id="1", tool_call_id="c"), ToolMessage("x", id="1", tool_call_id="c")),
        (AIMessageChunk("", id="1", tool_call_chunks=[PART_OF_CALL]), AIMessage("", id="1", tool_calls=[CALL])),
    ],
)
def test_chunk_becomes_a_whole_message_on_either_side(chunk, whole):
    assert add_messages([], chunk) == [whole]
    assert add_messages([chunk], []) == [whole]


def test_message_of_langchain_with_an_id_is_kept_as_the_object_it_is():
    one, other = ChatMessage("x", role="critic", id="1"), AIMessage("y", id="2")

    found = add_messages([one], [other])

    assert found[0] is one
    assert found[1] is other


def test_missing_ids_are_set_on_copies():
    left, right = [HumanMessage("a")], [AIMessage("b"), AIMessageChunk("c"), bide.AIMessage("d")]
    before = copy.deepcopy((left, right))

    found = add_messages(left, right)

    assert (left, right) == before
    assert len({message.id for message in found}) == 4


def test_number_as_id_becomes_text():
    (found,) = add_messages([], {"role": "user", "content": "x", "id": 7})

    assert found.id == "7"


# --- what is removed and replaced -------------------------------------------------------------------------------------


@pytest.mark.parametrize("removal", [RemoveMessage(id="1"), bide.RemoveMessage("1"), {"type": "remove", "id": "1"}])
@pytest.mark.parametrize("kind", [HumanMessage, bide.HumanMessage])
def test_removal_of_either_kind_removes_a_message_of_either_kind(removal, kind):
    left = [kind("a", id="1"), kind("b", id="2")]

    assert add_messages(left, removal) == [HumanMessage("b", id="2")]


@pytest.mark.parametrize("removal", [RemoveMessage(id=REMOVE_ALL_MESSAGES), bide.RemoveMessage(REMOVE_ALL_MESSAGES)])
def test_removal_of_all_of_either_kind_keeps_what_follows(removal):
    left = [bide.HumanMessage("a", id="1"), HumanMessage("b", id="2")]

    found = add_messages(left, ["lost", removal, bide.AIMessage("kept", id="3")])

    assert found == [AIMessage("kept", id="3")]


def test_removing_an_unknown_id_is_refused():
    with pytest.raises(InvalidUpdateError, match=r"id='9'.*Known ids: '1'"):
        add_messages([HumanMessage("a", id="1")], RemoveMessage(id="9"))


def test_message_with_a_known_id_replaces_the_old_one_whatever_their_kinds():
    left = [bide.HumanMessage("a", id="1"), AIMessage("b", id="2")]

    found = add_messages(left, [HumanMessage("new a", id="1"), bide.AIMessage("new b", id="2")])

    assert found == [HumanMessage("new a", id="1"), AIMessage("new b", id="2")]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, 5, {"role": "king", "content": "x"}, ("user",), AIMessage])
def test_what_is_no_message_is_refused_as_it_is_without_langchain(given):
    with pytest.raises(InvalidUpdateError, match=r"Cannot make a message of .*Known roles: user"):
        add_messages([], given)


def test_message_that_langchain_refuses_is_shown_with_the_reason():
    with pytest.raises(InvalidUpdateError, match=r"(?s)its AIMessage refuses .*'usage_metadata'.*input_tokens"):
        add_messages([], bide.AIMessage("x", usage_metadata={"tokens": 3}))


# --- isinstance -------------------------------------------------------------------------------------------------------


def test_code_that_asks_for_our_classes_takes_the_same_branch_with_langchains():
    human, ai, tool = HumanMessage("a"), AIMessageChunk("b"), ToolMessage("c", tool_call_id="c")

    assert isinstance(human, bide.HumanMessage)
    assert isinstance(ai, bide.AIMessage)
    assert isinstance(tool, bide.ToolMessage)
    assert isinstance(RemoveMessage(id="1"), bide.RemoveMessage)
    assert all(isinstance(message, Message) for message in (human, ai, tool))
    assert not isinstance(human, bide.AIMessage)


def test_langchains_message_is_no_instance_of_a_class_that_somebody_made_of_ours():
    class AIMessage(bide.AIMessage):
        pass

    assert isinstance(AIMessage("x"), bide.AIMessage)
    assert not isinstance(saying("x").invoke("hi"), AIMessage)


# --- format="langchain-openai" ----------------------------------------------------------------------------------------


def test_contents_are_written_in_the_form_of_openai():
    reducer = add_messages(format="langchain-openai")
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "1234"}}
    text = {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}}

    (found,) = reducer([], {"role": "user", "content": [text, picture], "id": "1"})

    image_url = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,1234"}}
    assert found == HumanMessage([{"type": "text", "text": "look"}, image_url], id="1")


def test_rewritten_message_keeps_its_id_and_what_else_it_carries():
    content: list[Any] = [
        {"type": "text", "text": "x"},
        {"type": "tool_use", "name": "search", "input": {"q": "x"}, "id": "c"},
    ]
    given = AIMessage(content, id="1", response_metadata={"model": "m"}, usage_metadata=USAGE)

    found = add_messages([], given, format="langchain-openai")

    whole = AIMessage("x", id="1", tool_calls=[CALL], response_metadata={"model": "m"}, usage_metadata=USAGE)
    assert found == [whole]
    assert add_messages(found, [], format="langchain-openai") == found


def test_answers_of_tools_become_messages_of_their_own():
    content: list[Any] = [
        {"type": "tool_result", "tool_use_id": "c", "content": "found"},
        {"type": "text", "text": "and now?"},
    ]

    found = add_messages([], HumanMessage(content, id="1"), format="langchain-openai")

    assert {type(message): message.content for message in found} == {HumanMessage: "and now?", ToolMessage: "found"}
    assert all(isinstance(message, BaseMessage) and message.id for message in found)


def test_content_without_a_form_of_openai_is_refused():
    with pytest.raises(InvalidUpdateError, match="form of OpenAI"):
        add_messages([], HumanMessage([{"type": "image", "source": {"type": "?"}}]), format="langchain-openai")
