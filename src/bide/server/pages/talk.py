"""The conversation that a state holds: who said what, and which tools were called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bide.graph.compiled import CompiledGraph
from bide.server.pages.words import as_json, in_line
from bide.shape.shown import jsonable

ROLES = {"human": "Human", "user": "Human", "ai": "Agent", "assistant": "Agent", "system": "System", "tool": "Tool"}
LOOKED_BACK = 60
"""So many checkpoints are read to find out when something was said."""
MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that a message calls."""

    name: str
    args: str
    id: str = ""

    @property
    def line(self) -> str:
        """The call in one line."""
        return f"{self.name}({in_line(self.args, 120)})"


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    name: str = ""
    id: str = ""
    at: datetime | None = None
    checkpoint: str = ""
    """The first checkpoint that holds it."""

    @property
    def speaker(self) -> str:
        """Who speaks."""
        return self.name or ROLES.get(self.role, self.role.title())


def spoken_in(values: Any) -> list[Spoken]:
    """Return the messages of a state; none when it keeps none."""
    messages = values.get(MESSAGES) if isinstance(values, Mapping) else getattr(values, MESSAGES, None)
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        return []
    plain = [jsonable(message) for message in messages]
    return [_spoken(number, one) for number, one in enumerate(plain)]


def _spoken(number: int, message: Any) -> Spoken:
    if not isinstance(message, Mapping):
        return Spoken("message", in_line(message, 2000), id=str(number))
    calls = [one for one in message.get("tool_calls") or () if isinstance(one, Mapping)]
    return Spoken(
        role=str(message.get("type") or message.get("role") or "message"),
        text=_text(message.get("content")),
        calls=tuple(Call(str(one.get("name")), as_json(one.get("args")), str(one.get("id") or "")) for one in calls),
        name=str(message.get("name") or ""),
        id=str(message.get("id") or number),
    )


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return as_json(content)
    blocks = [one.get("text") if isinstance(one, Mapping) and "text" in one else as_json(one) for one in content]
    return "\n".join(map(str, blocks))


def with_times(graph: CompiledGraph, thread_id: str, spoken: Sequence[Spoken]) -> list[Spoken]:
    """Say of each message when it was first in the state; what is older than the history that is read has no time."""
    config = {"configurable": {"thread_id": thread_id}}
    first: dict[str, tuple[datetime, str]] = {}
    oldest, count = "", 0
    for snapshot in graph.get_state_history(config, limit=LOOKED_BACK):
        if snapshot.created_at is None:
            continue
        oldest, count = str(snapshot.config["configurable"]["checkpoint_id"]), count + 1
        here = (datetime.fromisoformat(snapshot.created_at), oldest)
        first |= dict.fromkeys((one.id for one in spoken_in(snapshot.values)), here)
    if count == LOOKED_BACK:
        first = {name: found for name, found in first.items() if found[1] != oldest}
    return [
        one if one.id not in first else replace(one, at=first[one.id][0], checkpoint=first[one.id][1]) for one in spoken
    ]
