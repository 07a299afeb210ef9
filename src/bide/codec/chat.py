"""Chat messages, ours and LangChain's (Ext 6), from a fixed table, with what goes about in states beside them.

LangChain's messages are pydantic models whose fields come and go between its releases. So only what differs from the
defaults is stored, and fields that a release does not know are kept as extra attributes. Its `Document` is stored in
the same way, and so is the text of a message, for which LangChain has a class of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from bide.codec.models import PydanticShape, build_model, pydantic_default_of
from bide.codec.shapes import Default, Fields, complete
from bide.errors import CorruptDataError, UnknownTypeError
from bide.messages import AIMessage, HumanMessage, Message, RemoveMessage, SystemMessage, ToolMessage

Defaults = dict[str, Default | None]

# The only modules that reading may import. Their names are written here, never taken from stored bytes.
_MESSAGES = "langchain_core.messages"
_DOCUMENTS = "langchain_core.documents"
_TEXTS = "langchain_core.messages.base"

_OURS: dict[str, type[Message]] = {
    cls.type: cls for cls in (Message, HumanMessage, AIMessage, SystemMessage, ToolMessage, RemoveMessage)
}
_OUR_CLASSES = frozenset(_OURS.values())

_THEIRS = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
    "function": "FunctionMessage",
    "chat": "ChatMessage",
    "remove": "RemoveMessage",
    "HumanMessageChunk": "HumanMessageChunk",
    "AIMessageChunk": "AIMessageChunk",
    "SystemMessageChunk": "SystemMessageChunk",
    "ToolMessageChunk": "ToolMessageChunk",
    "FunctionMessageChunk": "FunctionMessageChunk",
    "ChatMessageChunk": "ChatMessageChunk",
    "Document": "Document",
}


def is_known_message_class(cls: type) -> bool:
    """Tell whether instances are stored by the table here, so that the class needs no name of its own."""
    return cls in _OUR_CLASSES or cls.__module__.startswith(_MESSAGES) or _kind_of(cls) is not None


def writer_of(cls: type) -> Callable[[Any], list[Any]] | None:
    """Return what takes messages of exactly this class apart, if the table has it."""
    if cls in _OUR_CLASSES:
        return _take_ours_apart
    if cls.__module__ == _TEXTS and issubclass(cls, str):
        return _take_text_apart
    kind = _kind_of(cls)
    if kind is None:
        return None
    return lambda message: _take_theirs_apart(message, kind)


def put_together(parts: list[Any]) -> Any:
    """Return the message that was taken apart."""
    family, kind, *rest = parts
    if family == "bide" and kind in _OURS:
        return _put_ours_together(_OURS[kind], *rest)
    if family == "langchain" and kind in _THEIRS:
        return _put_theirs_together(_langchain_class(kind), *rest)
    if family == "langchain" and kind == "text":
        return _put_text_together(*rest)
    raise CorruptDataError(f"there is no message of type {kind!r}")


# --- ours -------------------------------------------------------------------------------------------------------------


def _take_ours_apart(message: Message) -> list[Any]:
    told: Fields = {}
    for name, default, make in _our_fields(type(message)):
        value = getattr(message, name)
        # Most fields of most messages are as they were made: told quickest, because a conversation is told often.
        if value is default or (type(value) is make and not value):
            continue
        if default is _REQUIRED or not _is_same(value, default):
            told[name] = value
    return ["bide", message.type, told]


def _told(message: Any, defaults: Defaults) -> Fields:
    """Return the fields that differ from their defaults."""
    told = {}
    for name, default in defaults.items():
        value = getattr(message, name)
        if default is None or not _is_same(value, default()):
            told[name] = value
    return told


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def _put_ours_together(cls: Any, told: Fields) -> Message:
    built: Message = object.__new__(cls)
    used = 0
    for name, default, make in _our_fields(cls):
        if name in told:
            used += 1
            setattr(built, name, told[name])
        elif default is not _REQUIRED:
            setattr(built, name, default if make is None else make())
        else:
            break
    else:
        if used == len(told):
            return built
    complete(cls, told, {name: None for name, _, _ in _our_fields(cls)})  # says which field is missing, or too many
    raise CorruptDataError(f"a {cls.__name__} has other fields than were written")


_REQUIRED: Any = object()
_MADE: Any = object()


@lru_cache
def _our_fields(cls: Any) -> tuple[tuple[str, Any, Any], ...]:
    """Return the fields of a message, each with its default, or with the empty container that is made for it."""
    return tuple(
        (f.name, _MADE, f.default_factory)
        if f.default_factory is not MISSING
        else (f.name, _REQUIRED if f.default is MISSING else f.default, None)
        for f in fields(cls)
    )


# --- LangChain's ------------------------------------------------------------------------------------------------------


def _kind_of(cls: type) -> str | None:
    """Return the word in the table for a class of LangChain."""
    for place in (_MESSAGES, _DOCUMENTS):
        langchain = sys.modules.get(place)
        if langchain is not None and cls in _types_by_class(langchain):
            return _types_by_class(langchain)[cls]
    return None


@lru_cache
def _types_by_class(langchain: ModuleType) -> dict[type, str]:
    found = {kind: getattr(langchain, name, None) for kind, name in _THEIRS.items()}
    return {cls: kind for kind, cls in found.items() if cls is not None}


def _take_theirs_apart(message: Any, kind: str) -> list[Any]:
    cls: Any = type(message)
    _, *rest = PydanticShape(cls).take_apart(message)
    return ["langchain", kind, _told(message, _their_defaults(cls)), *rest]


@lru_cache
def _their_defaults(cls: Any) -> Defaults:
    return {name: pydantic_default_of(info, {}) for name, info in cls.model_fields.items()}


def _put_theirs_together(cls: Any, told: Fields, chosen: list[str], extra: Fields | None, private: Any) -> Any:
    known = _their_defaults(cls)
    unknown = {name: value for name, value in told.items() if name not in known}
    whole = complete(cls, {name: value for name, value in told.items() if name in known}, known)
    more = {**unknown, **(extra or {})} if unknown else extra
    return build_model(cls, whole, set(chosen), extra=more, private=private)


def _langchain_class(kind: str) -> Any:
    try:
        langchain = _documents() if kind == "Document" else _messages()
    except ImportError as error:
        raise UnknownTypeError(
            f"a LangChain message of type {kind!r} is stored here, and langchain-core is not installed: "
            f"pip install langchain-core"
        ) from error
    cls = getattr(langchain, _THEIRS[kind], None)
    if cls is None:
        raise UnknownTypeError(f"the installed langchain-core has no {_THEIRS[kind]!r} any more")
    return cls


def _messages() -> ModuleType:
    return sys.modules.get(_MESSAGES) or import_module(_MESSAGES)


def _documents() -> ModuleType:
    return sys.modules.get(_DOCUMENTS) or import_module(_DOCUMENTS)


def _take_text_apart(text: str) -> list[Any]:
    return ["langchain", "text", str.__str__(text)]


def _put_text_together(text: Any) -> str:
    """Return the text as the `message.text` that it was; it is equal to plain text, which it is without LangChain."""
    if type(text) is not str:
        raise CorruptDataError(f"the text of a message is a {type(text).__name__}")
    try:
        kind = getattr(import_module(_TEXTS), "TextAccessor", str)
    except ImportError:
        kind = str
    return str.__new__(kind, text)
