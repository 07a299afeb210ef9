"""Chat models of LangChain that say what they are told to say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


def saying(*texts: str) -> GenericFakeChatModel:
    """A model that streams: word by word, one text per call."""
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]))


class Whole(BaseChatModel):
    """A model that cannot stream."""

    text: str = "all at once"

    @property
    def _llm_type(self) -> str:
        return "whole"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.text))])


class Breaking(Whole):
    """A model that breaks after its first word."""

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk("oh"))
        raise ConnectionError("the line is dead")


class Talkative(Whole):
    """A model of the old kind: it tells its tokens while it makes the whole message, and gives them no id."""

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:
        for word in ("all ", "at ", "once"):
            run_manager.on_llm_new_token(word, chunk=ChatGenerationChunk(message=AIMessageChunk(word)))
        return super()._generate(messages, stop, run_manager, **more)
