"""What clients say about assistants, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from bide.clock import Instant
from bide.server.langgraph.choosing import FURTHEST, Asked, Page, SortOrder
from bide.server.langgraph.wire import iso, jsonable

Fields = dict[str, Any]
AssistantField = Literal[
    "assistant_id",
    "graph_id",
    "name",
    "description",
    "config",
    "context",
    "created_at",
    "updated_at",
    "metadata",
    "version",
]


@dataclass(frozen=True, slots=True)
class Assistant:
    """A graph with a name and a config: one that somebody made, or the one that each graph has by itself."""

    assistant_id: str
    graph_id: str
    name: str
    description: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    created_at: Instant = 0
    updated_at: Instant = 0
    is_system: bool = False

    def shown(self) -> Fields:
        """Return it as clients know it."""
        return {**self.version_shown(), "updated_at": iso(self.updated_at)}

    def version_shown(self) -> Fields:
        """Return one of its versions as clients know it."""
        return {
            "assistant_id": self.assistant_id,
            "graph_id": self.graph_id,
            "name": self.name,
            "description": self.description,
            "config": jsonable(self.config),
            "context": jsonable(self.context),
            "metadata": jsonable(self.metadata),
            "version": self.version,
            "created_at": iso(self.created_at),
        }


class AssistantCreate(Asked):
    """An assistant to be made."""

    graph_id: str
    assistant_id: str | None = None
    config: Fields | None = None
    context: Fields | None = None
    metadata: Fields | None = None
    name: str | None = None
    description: str | None = None
    if_exists: Literal["raise", "do_nothing"] = "raise"


class AssistantPatch(Asked):
    """What of an assistant is to be another; what is left out stays."""

    graph_id: str | None = None
    config: Fields | None = None
    context: Fields | None = None
    metadata: Fields | None = None
    name: str | None = None
    description: str | None = None

    def changes(self) -> Fields:
        """Return what is to be another."""
        said = {name: getattr(self, name) for name in self.model_fields_set & set(AssistantPatch.model_fields)}
        return {name: value for name, value in said.items() if value is not None}


class AssistantCount(Asked):
    """Which assistants are meant."""

    metadata: Fields | None = None
    graph_id: str | None = None
    name: str | None = None


class AssistantSearch(AssistantCount, Page):
    """Which assistants are to be listed."""

    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] | None = None
    sort_order: SortOrder | None = None
    select: list[AssistantField] | None = None


class VersionSearch(Page):
    """Which versions are to be listed."""

    metadata: Fields | None = None


class Latest(Asked):
    """The version that is to be the present one."""

    version: int = Field(ge=1, le=FURTHEST)
