"""Chat messages, and the reducer that keeps a list of them.

The classes have the names and attributes of LangChain's, so code that reads `message.type`, `message.content` or
`message.tool_calls` works with both. LangChain itself is never imported: its messages are recognised by their
attributes and are kept as they are.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar
from uuid import uuid4

from bide.errors import InvalidUpdateError

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "AIMessage",
    "HumanMessage",
    "Message",
    "RemoveMessage",
    "SystemMessage",
    "ToolMessage",
    "add_messages",
]

REMOVE_ALL_MESSAGES = "__remove_all__"


@dataclass(slots=True, repr=False)
class Message:
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


def add_messages(left: Any, right: Any) -> list[Any]:
    """Return the messages of `left` with those of `right` merged in by id.

    A message whose id is known replaces the old one in its place, a `RemoveMessage` deletes it, and any other message
    is appended. Messages without an id get one. Neither argument is changed.

    >>> class State(TypedDict):
    ...     messages: Annotated[list, add_messages]
    """
    merged = _messages(left)
    update = _messages(right)
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


def _messages(given: Any) -> list[Any]:
    """Return a new list of messages, each with an id."""
    many = given if isinstance(given, list) else [given]
    return [_with_id(_message(one)) for one in many]


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


def _message(given: Any) -> Any:
    if isinstance(given, Message):
        return given
    if isinstance(given, str):
        return HumanMessage(given)
    if isinstance(given, Mapping):
        return _from_mapping(given)
    if isinstance(given, tuple):
        return _from_pair(given)
    if not isinstance(given, type) and all(hasattr(given, name) for name in ("content", "type", "id")):
        return given
    raise _not_a_message(given)


def _from_pair(given: tuple[Any, ...]) -> Message:
    match given:
        case (str() as role, (str() | list()) as content) if role in _CLASS_BY_ROLE:
            return _from_mapping({"role": role, "content": content})
        case _:
            raise _not_a_message(given)


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


def _from_mapping(given: Mapping[str, Any]) -> Message:
    rest = dict(given)
    kind = rest.pop("type", None)
    # OpenAI-style dicts say `role`; LangChain-style dicts say `type`, and may carry a role of their own.
    role = rest.pop("role", kind)
    cls = _CLASS_BY_ROLE.get(role) if isinstance(role, str) else None
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
    return _build(cls, rest)


def _removal(given: Mapping[str, Any], rest: dict[str, Any]) -> RemoveMessage:
    if rest.get("id") is None:
        raise InvalidUpdateError(f"A remove message says what it removes: add 'id' to {_shown(given)}.")
    return RemoveMessage(rest["id"])


def _build(cls: type[Message], given: dict[str, Any]) -> Message:
    """Build the message; what the class does not know goes to `additional_kwargs`, so that nothing is lost."""
    known = {f.name for f in fields(cls)}
    taken = {name: value for name, value in given.items() if name in known and value is not None}
    unknown = {name: value for name, value in given.items() if name not in known and value is not None}
    if unknown:
        taken["additional_kwargs"] = {**unknown, **taken.get("additional_kwargs", {})}
    if "tool_calls" in taken:
        taken["tool_calls"] = [_tool_call(call) for call in taken["tool_calls"]]
    return cls(**taken)


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
