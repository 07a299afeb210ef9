"""Chat messages, and the reducer that keeps a list of them.

The classes have the names and attributes of LangChain's, so code that reads `message.type`, `message.content` or
`message.tool_calls` works with both, and so does `isinstance` with ours. LangChain itself is never imported. But where
a process has loaded it, `add_messages` makes LangChain's own messages of everything, because LangChain's models take
nothing else.
"""

from __future__ import annotations

import copy
import json
import sys
from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, overload
from uuid import uuid4

from bide.errors import GraphError, InvalidUpdateError
from bide.types import Overwrite

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "AIMessage",
    "HumanMessage",
    "Message",
    "RemoveMessage",
    "SystemMessage",
    "ToolMessage",
    "add_messages",
    "settled",
    "with_ids",
]

REMOVE_ALL_MESSAGES = "__remove_all__"

_LANGCHAIN = "langchain_core.messages"


@dataclass(slots=True, repr=False)
class Message(ABC):
    """One message of a conversation; the subclasses say who speaks."""

    type: ClassVar[str] = "message"

    content: str | list[Any]
    id: str | None = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    additional_kwargs: dict[str, Any] = field(default_factory=dict, kw_only=True)
    response_metadata: dict[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def text(self) -> str:
        """The text of the content; blocks that hold no text are left out."""
        if isinstance(self.content, str):
            return self.content
        return "".join(_text_of_block(block) for block in self.content)

    def pretty_repr(self) -> str:
        """Return the message with a headline that says who speaks, for people to read."""
        headline = f" {self.type.title()} Message ".center(80, "=")
        name = f"\nName: {self.name}" if self.name else ""
        return f"{headline}{name}\n\n{self.text}"

    def pretty_print(self) -> None:
        """Print `pretty_repr()`."""
        print(self.pretty_repr())  # noqa: T201 - printing is what it is for

    def __repr__(self) -> str:
        told = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[1:] if not _is_default(self, f)]
        return f"{type(self).__name__}({', '.join([repr(self.content), *told])})"

    @classmethod
    def __subclasshook__(cls, other: Any) -> bool:
        # A list that held our messages holds LangChain's once somebody has loaded it. Code that asks
        # `isinstance(message, AIMessage)` must not take another branch then.
        name = "BaseMessage" if cls is Message else cls.__name__
        same = (base.__name__ == name and base.__module__.startswith(_LANGCHAIN) for base in other.__mro__)
        return (cls.__module__ == __name__ and any(same)) or NotImplemented


@dataclass(slots=True, repr=False)
class HumanMessage(Message):
    """What the user says."""

    type: ClassVar[str] = "human"


@dataclass(slots=True, repr=False)
class AIMessage(Message):
    """What the model says, and the tools it wants called."""

    type: ClassVar[str] = "ai"

    tool_calls: list[dict[str, Any]] = field(default_factory=list, kw_only=True)
    usage_metadata: dict[str, Any] | None = field(default=None, kw_only=True)


@dataclass(slots=True, repr=False)
class SystemMessage(Message):
    """What the application tells the model to be."""

    type: ClassVar[str] = "system"


@dataclass(slots=True, repr=False)
class ToolMessage(Message):
    """What a tool answered to the call with this `tool_call_id`."""

    type: ClassVar[str] = "tool"

    tool_call_id: str = field(kw_only=True)
    status: str = field(default="success", kw_only=True)
    artifact: Any = field(default=None, kw_only=True)


@dataclass(slots=True, repr=False, init=False)
class RemoveMessage(Message):
    """Ask `add_messages` to delete the message with this id, or all with `REMOVE_ALL_MESSAGES`."""

    type: ClassVar[str] = "remove"

    def __init__(self, id: str) -> None:
        self.content = ""
        self.id = id
        self.name = None
        self.additional_kwargs = {}
        self.response_metadata = {}

    def __repr__(self) -> str:
        return f"RemoveMessage(id={self.id!r})"


@overload
def add_messages(left: Any, right: Any, *, format: str | None = None) -> list[Any]: ...


@overload
def add_messages(*, format: str | None = None) -> Callable[[Any, Any], list[Any]]: ...


def add_messages(left: Any = MISSING, right: Any = MISSING, *, format: str | None = None) -> Any:
    """Return the messages of `left` with those of `right` merged in by id.

    A message whose id is known replaces the old one in its place, a `RemoveMessage` deletes it, and any other message
    is appended. Messages without an id get one. Neither argument is changed.

    Where LangChain is loaded, all of them become LangChain's messages, and chunks become whole messages. There
    `format="langchain-openai"` also writes their contents in the form of OpenAI: text, or blocks of text and images.

    >>> class State(TypedDict):
    ...     messages: Annotated[list, add_messages]
    ...     pictures: Annotated[list, add_messages(format="langchain-openai")]
    """
    if format not in (None, "langchain-openai"):
        raise GraphError(f"add_messages(format={format!r}) is not known. There is 'langchain-openai', and None.")
    if left is MISSING and right is MISSING:
        return _reducer(format)
    if left is MISSING or right is MISSING:
        raise InvalidUpdateError("add_messages takes two lists of messages to merge them, and only one was given.")
    merged = _merged(_messages(left), _messages(right))
    return merged if format is None else _in_openais_form(merged)


@lru_cache
def _reducer(format: str | None) -> Callable[[Any, Any], list[Any]]:
    """Return the same object for the same options: two schemas that ask for the same must be seen to agree."""
    if format is None:
        return add_messages
    reducer = partial(add_messages, format=format)
    reducer.__name__ = f"add_messages(format={format!r})"  # type: ignore[attr-defined]
    return reducer


def _merged(merged: list[Any], update: list[Any]) -> list[Any]:
    reset = _last_reset(update)
    if reset is not None:
        merged, update = [], update[reset + 1 :]
    index = {message.id: position for position, message in enumerate(merged)}
    removed: set[str] = set()
    for message in update:
        position = index.get(message.id)
        if message.type == "remove":
            if position is None:
                raise InvalidUpdateError(_nothing_to_remove(message.id, index))
            removed.add(message.id)
        elif position is None:
            index[message.id] = len(merged)
            merged.append(message)
        else:
            merged[position] = message
            removed.discard(message.id)
    return [message for message in merged if message.id not in removed] if removed else merged


def settled(messages: list[Any]) -> list[Any]:
    """Return a stored list as `add_messages` would keep it in this process: it may be older than LangChain in it."""
    if _loaded_langchain() is None or _CLASSES.isdisjoint(map(type, messages)):
        return messages
    return _messages(messages)


def _messages(given: Any) -> list[Any]:
    """Return a new list of messages, each with an id."""
    many = given if isinstance(given, list) else [given]
    langchain = _loaded_langchain()
    return [_with_id(_message(one, langchain)) for one in many]


def _last_reset(update: list[Any]) -> int | None:
    for position in range(len(update) - 1, -1, -1):
        if update[position].type == "remove" and update[position].id == REMOVE_ALL_MESSAGES:
            return position
    return None


def _nothing_to_remove(unknown: str, known: Iterable[str]) -> str:
    some = ", ".join(repr(one) for one in list(known)[:10]) or "none"
    return (
        f"RemoveMessage(id={unknown!r}) names a message that is not in the list, so nothing was changed. "
        f"Known ids: {some}. To delete every message use RemoveMessage(id=REMOVE_ALL_MESSAGES)."
    )


def with_ids(writes: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Return what a node wrote with an id on every message, so that a stream and the state know it by the same."""
    return tuple((key, _identified(value)) for key, value in writes)


def _identified(value: Any) -> Any:
    if isinstance(value, Overwrite):
        return Overwrite(_identified(value.value))
    if isinstance(value, Message):
        return _with_id(value)
    if type(value) in (list, tuple) and any(isinstance(one, Message) and one.id is None for one in value):
        return type(value)(_with_id(one) if isinstance(one, Message) else one for one in value)
    return value


def _with_id(message: Any) -> Any:
    """Return the message if it has an id, or a copy of it that has one: the caller's object may be shared."""
    if message.id is not None:
        return message
    fresh = str(uuid4())
    if hasattr(message, "model_copy"):
        return message.model_copy(update={"id": fresh})
    if not isinstance(message, Message) and is_dataclass(message) and not isinstance(message, type):
        return replace(message, id=fresh)
    twin = copy.copy(message)
    try:
        twin.id = fresh
    except (AttributeError, TypeError) as error:
        raise InvalidUpdateError(
            f"A {type(message).__qualname__!r} message has no id, and none can be set on it. Give it an id."
        ) from error
    return twin


# ── What a message can be made of ──────────────────────────────────────────────────────────────────────────────────


def _message(given: Any, langchain: ModuleType | None) -> Any:
    cls: Any = type(given)
    if cls in _CLASSES:
        return given if langchain is None else _langchains_own(given, langchain)
    if langchain is not None and _is_whole(cls, langchain):
        return given
    if isinstance(given, str):
        return _build(HumanMessage, {"content": given}, langchain)
    if isinstance(given, Mapping):
        return _from_mapping(given, langchain)
    if isinstance(given, (tuple, list)):  # JSON has no tuples
        return _from_pair(given, langchain)
    if langchain is not None and issubclass(cls, langchain.BaseMessage):
        return langchain.message_chunk_to_message(given)
    if not isinstance(given, type) and all(hasattr(given, name) for name in ("content", "type", "id")):
        return given
    raise _not_a_message(given)


def _from_pair(given: Sequence[Any], langchain: ModuleType | None) -> Any:
    match given:
        case (str() as role, (str() | list()) as content) if role in _CLASS_BY_ROLE:
            return _from_mapping({"role": role, "content": content}, langchain)
        case _:
            raise _not_a_message(given)


_CLASSES: frozenset[type[Message]] = frozenset({HumanMessage, AIMessage, SystemMessage, ToolMessage, RemoveMessage})
_CLASS_BY_ROLE: dict[str, type[Message]] = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
    "tool": ToolMessage,
    "remove": RemoveMessage,
}
_CLASS_BY_NAME = {cls.__name__: cls for cls in _CLASSES}


def _from_mapping(given: Mapping[str, Any], langchain: ModuleType | None) -> Any:
    rest, cls = _spoken_by(given)
    if cls is None:
        raise _not_a_message(given)
    if rest.get("id") is not None:
        rest["id"] = str(rest["id"])
    if cls is RemoveMessage:
        return _removal(given, rest)
    if rest.get("content") is None and rest.get("tool_calls"):
        rest["content"] = ""
    if not isinstance(rest.get("content"), str | list):
        raise _not_a_message(given)
    if cls is ToolMessage and not isinstance(rest.get("tool_call_id"), str):
        raise InvalidUpdateError(f"A tool message says which call it answers: add 'tool_call_id' to {_shown(given)}.")
    return _build(cls, rest, langchain)


def _spoken_by(given: Mapping[str, Any]) -> tuple[dict[str, Any], type[Message] | None]:
    """Return the fields of a message, and the class that its role or type asks for."""
    rest: dict[str, Any] = dict(given)
    match given:
        case {"lc": 1, "type": "constructor", "id": [*_, str(name)], "kwargs": dict(kwargs)}:
            # As LangChain's `dumpd` writes it. The name is looked up here, and nothing is imported by it.
            rest = {key: value for key, value in kwargs.items() if key != "type"}
            return rest, _CLASS_BY_NAME.get(name.removesuffix("Chunk"))
    kind = rest.pop("type", None)
    # OpenAI-style dicts say `role`; LangChain-style dicts say `type`, and may carry a role of their own.
    role = rest.pop("role", kind)
    if role == "developer":
        # LangChain's models for OpenAI tell it from a system message by this mark.
        rest["additional_kwargs"] = {"__openai_role__": role, **(rest.get("additional_kwargs") or {})}
    return rest, _CLASS_BY_ROLE.get(role) if isinstance(role, str) else None


def _removal(given: Mapping[str, Any], rest: dict[str, Any]) -> RemoveMessage:
    if rest.get("id") is None:
        raise InvalidUpdateError(f"A remove message says what it removes: add 'id' to {_shown(given)}.")
    return RemoveMessage(rest["id"])


def _build(cls: type[Message], given: dict[str, Any], langchain: ModuleType | None) -> Any:
    """Build the message; what the class does not know goes to `additional_kwargs`, so that nothing is lost."""
    theirs = getattr(langchain, cls.__name__, None)
    known = {f.name for f in fields(cls)} if theirs is None else theirs.model_fields.keys()
    taken = {name: value for name, value in given.items() if name in known and value is not None}
    unknown = {name: value for name, value in given.items() if name not in known and value is not None}
    if unknown:
        taken["additional_kwargs"] = {**unknown, **taken.get("additional_kwargs", {})}
    if "tool_calls" in taken:
        taken["tool_calls"] = [_tool_call(call) for call in taken["tool_calls"]]
    return cls(**taken) if theirs is None else _langchains(theirs, taken)


def _tool_call(given: Any) -> dict[str, Any]:
    """Return the call as `{"name", "args", "id", "type"}`, also when it came in OpenAI's nested form."""
    match given:
        case {"function": {"name": str(name), "arguments": str(arguments)}}:
            return {"name": name, "args": _arguments(given, arguments), "id": given.get("id"), "type": "tool_call"}
        case {"name": str()}:
            return dict(given)
        case _:
            raise InvalidUpdateError(
                f"A tool call looks like {{'name': …, 'args': {{…}}, 'id': …}}, and this one is {_shown(given)}."
            )


def _arguments(given: Any, arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError as error:
        raise InvalidUpdateError(f"The arguments of this tool call are not JSON: {_shown(given)}.") from error


def _not_a_message(given: Any) -> InvalidUpdateError:
    return InvalidUpdateError(
        f"Cannot make a message of {_shown(given)}. Give a string, a (role, content) pair, a dict with 'role' and "
        f"'content', or a message object. Known roles: {', '.join(_CLASS_BY_ROLE)}."
    )


def _shown(given: Any) -> str:
    shown = repr(given)
    return f"{shown if len(shown) <= 200 else shown[:200] + '…'} (a {type(given).__name__})"


# ── Where LangChain is loaded ──────────────────────────────────────────────────────────────────────────────────────


def _loaded_langchain() -> ModuleType | None:
    if sys.modules.get(_LANGCHAIN) is None:
        return None
    return import_module(_LANGCHAIN)  # it is there; this waits for a thread that is in the middle of loading it


@lru_cache
def _is_whole(cls: Any, langchain: ModuleType) -> bool:
    return issubclass(cls, langchain.BaseMessage) and not issubclass(cls, getattr(langchain, "BaseMessageChunk", ()))


def _langchains_own(message: Message, langchain: ModuleType) -> Any:
    """Return one of our messages as LangChain's; a removal is gone after the merge, and may stay ours until then."""
    if isinstance(message, RemoveMessage):
        return message
    return _build(type(message), {f.name: getattr(message, f.name) for f in fields(message)}, langchain)


def _langchains(cls: Any, taken: dict[str, Any]) -> Any:
    if "tool_calls" in taken:
        taken["tool_calls"] = [{"args": {}, "id": None, "type": "tool_call", **call} for call in taken["tool_calls"]]
    try:
        return cls(**taken)
    except (TypeError, ValueError) as error:
        raise InvalidUpdateError(
            f"LangChain is loaded, so messages are LangChain's own here, and its {cls.__name__} refuses "
            f"{_shown(taken)}: {error}"
        ) from error


def _in_openais_form(messages: list[Any]) -> list[Any]:
    langchain = _loaded_langchain()
    if langchain is None:
        raise GraphError(
            "add_messages(format='langchain-openai') makes LangChain's messages, and LangChain is not loaded. Install "
            "it with `pip install 'bide[langchain]'`, and import langchain_core.messages where the graph is built."
        )
    try:
        return [part for message in messages for part in _rewritten(message, langchain)]
    except (NotImplementedError, TypeError, ValueError) as error:
        raise InvalidUpdateError(f"These messages cannot be written in the form of OpenAI: {error}") from error


def _rewritten(message: Any, langchain: Any) -> list[Any]:
    parts = langchain.convert_to_messages(langchain.convert_to_openai_messages([message], include_id=True))
    if len(parts) != 1 or type(parts[0]) is not type(message):
        return [_with_id(part) for part in parts]
    # Only content and calls have another form; what else the message carries stays with it.
    changed = {name: getattr(parts[0], name) for name in ("content", "tool_calls") if hasattr(message, name)}
    return [message.model_copy(update=changed)]


# ── Small things ───────────────────────────────────────────────────────────────────────────────────────────────────


def _text_of_block(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type") == "text":
        return str(block.get("text", ""))
    return ""


def _is_default(message: Message, which: Field[Any]) -> bool:
    value = getattr(message, which.name)
    if which.default_factory is not MISSING:
        return bool(value == which.default_factory())
    return which.default is not MISSING and bool(value == which.default)
