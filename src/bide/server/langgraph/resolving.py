"""From what a client calls an assistant to the graph and the config that it means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid5
from weakref import WeakKeyDictionary

from bide.clock import Instant
from bide.runtime import Bide
from bide.server.auth.authorize import Filter, authorize, matches
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.door import is_id
from bide.server.langgraph.assistant_shapes import Assistant
from bide.server.problems import Problem
from bide.store import Store
from bide.store.assistants import AssistantRow, Assistants

NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The one that LangGraph's server names its own assistants in: a graph has the same id there and here."""
BY_THE_SYSTEM = {"created_by": "system"}
UNTITLED = "Untitled"

_made: WeakKeyDictionary[Store, Instant] = WeakKeyDictionary()


def system_id(graph: str) -> str:
    """Return the id of the assistant that a graph has by itself."""
    return str(uuid5(NAMESPACE, graph))


def resolve_assistant(ctx: Context, caller: Caller, id_or_name: str) -> Assistant:
    """Return the assistant with this id that the caller may use, or the one that a graph has by itself."""
    found = find_assistant(ctx.app, caller, id_or_name)
    if found is None:
        raise unknown(ctx.app, id_or_name)
    return found


def usable_assistant(ctx: Context, caller: Caller, id_or_name: str) -> Assistant:
    """Return an assistant that the caller may see, and so start: its config is told to whoever runs it."""
    found = resolve_assistant(ctx, caller, id_or_name)
    if not found.is_system and not is_visible(
        authorize(caller, "assistants", "read", {"assistant_id": found.assistant_id}), found
    ):
        raise unknown(ctx.app, id_or_name)
    return found


def visible_assistant(
    ctx: Context, caller: Caller, id_or_name: str, action: str = "read", said: dict[str, Any] | None = None
) -> Assistant:
    """Return an assistant with which the caller may do something, as the application's own handlers say.

    `said` is what is going to be done to it; a handler may change that.
    """
    value = {} if said is None else said
    value["assistant_id"] = id_or_name
    seen = authorize(caller, "assistants", action, value)
    value.pop("assistant_id", None)
    found = resolve_assistant(ctx, caller, id_or_name)
    if not is_visible(seen, found):
        raise unknown(ctx.app, id_or_name)
    return found


def is_visible(seen: Filter | None, assistant: Assistant) -> bool:
    """Whether a filter lets an assistant through; those that come with the graphs are there for everybody."""
    return assistant.is_system or matches(seen, assistant.metadata)


def find_assistant(app: Bide, caller: Caller, id_or_name: str) -> Assistant | None:
    """Return the assistant with this id, or of the graph with this name, if there is one."""
    for known in app.graphs:
        if id_or_name == known.name or id_or_name.lower() == system_id(known.name):
            return system_assistant(app, known.name)
    if not is_id(id_or_name):
        return None
    row = Assistants(app.store).get(caller.owner, id_or_name)
    return None if row is None else assistant_of(row)


def system_assistants(app: Bide) -> Iterator[Assistant]:
    """Yield the assistants that graphs have by themselves: everybody sees them, and they are not stored."""
    for known in app.graphs:
        yield system_assistant(app, known.name)


def system_assistant(app: Bide, graph: str) -> Assistant:
    """Return the assistant that a graph has by itself."""
    then = _made_at(app.store)
    return Assistant(
        system_id(graph), graph, graph, metadata=BY_THE_SYSTEM, created_at=then, updated_at=then, is_system=True
    )


def assistant_of(row: AssistantRow) -> Assistant:
    """Return one that somebody made."""
    graph, name, description, config, context, metadata = row.wording
    return Assistant(
        row.assistant_id,
        graph,
        name or UNTITLED,
        description,
        config,
        context,
        metadata,
        row.version,
        row.created_at,
        row.updated_at,
    )


def unknown(app: Bide, id_or_name: str) -> Problem:
    """Say that there is no such assistant, in words that clients look for."""
    return Problem(
        404,
        f"Invalid assistant ID: {id_or_name[:80]!r}. There is no such assistant, and no graph of that name. Graphs: "
        f"{app.graphs.listed()}.",
    )


def _made_at(store: Store) -> Instant:
    """Return when the database was made: so old are the assistants that come with the graphs, on every server."""
    if store not in _made:
        row = store.database.read(lambda tx: tx.one("made_at", {}))
        _made[store] = row[0] if row else 0
    return _made[store]
