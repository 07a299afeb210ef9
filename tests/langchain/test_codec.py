"""What LangChain puts into states comes back equal, of the same class, with everything that it carried."""

from __future__ import annotations

import sys
from dataclasses import make_dataclass
from typing import Any

import langchain_core.messages
import ormsgpack
import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from langchain_core.prompt_values import ChatPromptValue

from bide.codec import Codec, Registry
from bide.codec.wire import FORMAT_VERSION, MESSAGE
from bide.errors import CorruptDataError, UnknownTypeError, UnstorableValueError
from tests.langchain.models import saying

CALL = {"name": "search", "args": {"q": "x", "deep": [{"n": 1}]}, "id": "c"}
BROKEN_CALL = {"name": "search", "args": "{", "id": "d", "error": "not JSON"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "input_token_details": {"cache_read": 1}}
BLOCKS: list[Any] = [
    {"type": "text", "text": "look"},
    {"type": "image", "base64": "1234", "mime_type": "image/png"},
    {"type": "reasoning", "reasoning": "…"},
    "and more",
]

MESSAGES = [
    HumanMessage("hi", id="1", name="Ada", additional_kwargs={"k": (1, {2})}, response_metadata={"m": None}),
    HumanMessage(BLOCKS),
    HumanMessage("hi", mood="an attribute that only this message has"),
    AIMessage("x", tool_calls=[CALL], invalid_tool_calls=[BROKEN_CALL], usage_metadata=USAGE),
    AIMessage(content_blocks=[{"type": "text", "text": "x"}, {"type": "tool_call", **CALL}]),
    SystemMessage("be kind"),
    ToolMessage("x", tool_call_id="c", artifact={"rows": [(1, "a")]}, status="error"),
    FunctionMessage("x", name="f"),
    ChatMessage("x", role="critic"),
    RemoveMessage(id="1"),
    AIMessageChunk("x", id="1", usage_metadata=USAGE, chunk_position="last"),
    AIMessageChunk("", tool_call_chunks=[{"name": "search", "args": '{"q":', "id": "c", "index": 0}]),
    HumanMessageChunk("x"),
    SystemMessageChunk("x"),
    ToolMessageChunk("x", tool_call_id="c", artifact=1),
    FunctionMessageChunk("x", name="f"),
    ChatMessageChunk("x", role="critic"),
]


def assert_same(found: Any, wanted: Any) -> None:
    """Pydantic's equality, and the class, and the rest of a model's state."""
    assert type(found) is type(wanted)
    assert found == wanted
    assert vars(found) == vars(wanted)
    assert found.model_fields_set == wanted.model_fields_set
    assert found.model_extra == wanted.model_extra


def kinds_of(messages: list[Any]) -> set[type]:
    return {type(message) for message in messages}


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_message_comes_back_as_it_was(message):
    codec = Codec()

    assert_same(codec.decode(codec.encode(message)), message)


def test_every_class_of_message_that_langchain_exports_is_among_these():
    exported = [getattr(langchain_core.messages, name) for name in langchain_core.messages.__all__]
    classes = {thing for thing in exported if isinstance(thing, type) and issubclass(thing, BaseMessage)}

    assert classes - {BaseMessage, BaseMessageChunk} == kinds_of(MESSAGES)


def test_message_that_a_model_made_comes_back_and_can_be_given_to_a_model():
    codec = Codec()
    made = saying("hello").invoke("hi")

    found = codec.decode(codec.encode([made]))

    assert_same(found[0], made)
    assert saying("fine").invoke(found).content == "fine"


def test_chunks_that_came_back_can_be_added_up():
    codec = Codec()
    chunks = list(saying("hello big world").stream("hi"))

    first, *rest = codec.decode(codec.encode(chunks))

    for chunk in rest:
        first += chunk
    assert first.content == "hello big world"


def test_what_a_message_carries_and_cannot_be_stored_is_named_with_its_path():
    message = AIMessage("x", id="1", additional_kwargs={"client": object()})

    with pytest.raises(UnstorableValueError, match=r"messages.*additional_kwargs.*client"):
        Codec().encode([message], "messages")


def test_class_that_somebody_made_of_a_message_is_refused_until_it_has_a_name():
    class Remark(HumanMessage):
        pass

    with pytest.raises(UnstorableValueError, match=r"Remark.*@checkpointable"):
        Codec().encode(Remark("x"))
    registry = Registry()
    registry.add(Remark, "remark")

    assert_same(Codec(registry).decode(Codec(registry).encode(Remark("x"))), Remark("x"))


# --- the text of a message --------------------------------------------------------------------------------------------


def test_text_of_a_message_comes_back_as_the_text_that_it_was():
    codec = Codec()
    text = AIMessage("hello").text

    found = codec.decode(codec.encode({"answer": text}))

    assert found == {"answer": "hello"}
    assert type(found["answer"]) is type(text)
    assert codec.digest(found) == codec.digest({"answer": text})


def test_text_of_a_message_is_plain_text_to_a_process_without_langchain(monkeypatch):
    codec = Codec()
    data = codec.encode(AIMessage("hello").text)
    monkeypatch.setitem(sys.modules, "langchain_core.messages.base", None)

    found = codec.decode(data)

    assert found == "hello"
    assert type(found) is str


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"]])
def test_text_that_nobody_wrote_is_refused(text):
    forged = ormsgpack.packb(ormsgpack.Ext(MESSAGE, ormsgpack.packb(["langchain", "text", text])))

    with pytest.raises(CorruptDataError, match="the text of a message is a"):
        Codec().decode(FORMAT_VERSION + forged)


# --- documents, prompts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", [Document("x"), Document("x", id="1", metadata={"page": 3, "tags": {"a"}})])
def test_document_comes_back_as_it_was(document):
    codec = Codec()

    assert_same(codec.decode(codec.encode([document]))[0], document)


def test_document_in_a_schema_leaves_its_name_to_a_class_of_the_user():
    own = make_dataclass("Document", [("title", str)])
    registry = Registry()

    registry.add_types_in(list[Document] | list[own])  # type: ignore[valid-type]

    codec = Codec(registry)
    both = [Document("theirs"), own("mine")]
    assert codec.decode(codec.encode(both)) == both


def test_document_without_langchain_names_the_package(monkeypatch):
    codec = Codec()
    data = codec.encode(Document("x"))
    monkeypatch.setitem(sys.modules, "langchain_core.documents", None)

    with pytest.raises(UnknownTypeError, match="pip install langchain-core"):
        codec.decode(data)


def test_other_things_of_langchain_are_refused_until_they_have_a_name():
    prompt = ChatPromptValue(messages=[HumanMessage("hi", id="1")])

    with pytest.raises(UnstorableValueError, match=r"state\['prompt'\].*ChatPromptValue.*@checkpointable"):
        Codec().encode(prompt, "state['prompt']")
    registry = Registry()
    registry.add(ChatPromptValue, "prompt")

    assert_same(Codec(registry).decode(Codec(registry).encode(prompt)), prompt)
