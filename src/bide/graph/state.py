"""`StateGraph`: nodes, edges and a state schema, written down and then compiled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from bide.codec import Registry
from bide.engine.channels import Channel
from bide.errors import GraphError
from bide.graph.calls import name_of, own_schema
from bide.graph.compiled import CompiledGraph
from bide.graph.schema import Schema, channel_of, is_schema, read_schema
from bide.graph.spec import build_spec
from bide.graph.validate import check_graph, check_static
from bide.store import Store
from bide.types import END, START, Durability, OnPaused


class Node(NamedTuple):
    """A node as it was added."""

    name: str
    action: Any
    schema: Schema


class StateGraph:
    """A graph in the making. `compile()` checks it and returns something that runs.

    `state_schema` is a TypedDict, a dataclass, a pydantic model, or a dict of key → type. Annotate a key with a
    reducer, `Annotated[list, operator.add]`, to merge updates instead of replacing the value.
    """

    def __init__(
        self,
        state_schema: Any,
        context_schema: Any = None,
        *,
        input_schema: Any = None,
        output_schema: Any = None,
    ) -> None:
        self.context_schema = context_schema
        self.state_schema = state_schema
        self.schema = read_schema(state_schema)
        self.input = read_schema(input_schema) if input_schema is not None else self.schema
        self.output = read_schema(output_schema) if output_schema is not None else self.schema
        self.nodes: dict[str, Node] = {}
        self.edges: set[tuple[str, str]] = set()
        self.joins: set[tuple[tuple[str, ...], str]] = set()
        self.branches: dict[str, list[tuple[str, Any, Mapping[Any, str] | None]]] = {}
        self.channels: dict[str, Channel] = {}
        self.types = Registry()
        for given in (state_schema, input_schema, output_schema):
            self.types.add_types_in(given)
        for schema in (self.schema, self.input, self.output):
            self._learn(schema)

    def _learn(self, schema: Schema) -> None:
        for key, annotation in schema.keys.items():
            if key.startswith("__") or key.startswith("join:"):
                raise GraphError(
                    f"{key!r} cannot be a state key: names with two underscores, or 'join:', are Bide's own."
                )
            channel = channel_of(key, annotation)
            known = self.channels.setdefault(key, channel)
            if not channel.agrees_with(known):
                raise GraphError(
                    f"State key {key!r} has two rules: one schema merges it by {known!r}, another by {channel!r}. "
                    f"Annotate it the same way in both, or only in the state's schema."
                )
            self.types.add_types_in(annotation)

    # ── Nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_node(self, node: Any, action: Any = None, *, input_schema: Any = None) -> StateGraph:
        """Add a node: `add_node("name", function)`, or `add_node(function)` under the function's own name."""
        if isinstance(node, str):
            name: str | None = node
            if action is None:
                raise GraphError(f"add_node({node!r}) has no function. Write add_node({node!r}, function).")
        else:
            name, action = name_of(node), node
        if not name:
            raise GraphError(f"{action!r} has no name of its own. Write add_node('name', …).")
        self._check_name(name)
        if isinstance(action, CompiledGraph):
            raise GraphError(
                f"Node {name!r} is a compiled graph. Graphs inside graphs come with a later version; for now put its "
                f"nodes into this graph, or call it in a step: step(inner.invoke, …)."
            )
        own = input_schema if input_schema is not None else own_schema(action)
        schema = self.schema
        if own is not self.state_schema and (input_schema is not None or is_schema(own)):
            schema = read_schema(own)
            self.types.add_types_in(own)
            self._learn(schema)
        self.nodes[name] = Node(name, action, schema)
        return self

    def _check_name(self, name: str) -> None:
        if name in (START, END) or name.startswith("__"):
            raise GraphError(f"{name!r} cannot be the name of a node: names with two underscores are Bide's own.")
        if name in self.nodes:
            raise GraphError(f"There is a node {name!r} already. Give the second one another name.")

    def add_sequence(self, nodes: Sequence[Any]) -> StateGraph:
        """Add several nodes and an edge from each to the next. Items are functions or `(name, function)`."""
        if not nodes:
            raise GraphError("add_sequence needs at least one node.")
        names: list[str] = []
        for item in nodes:
            name, action = item if isinstance(item, tuple) else (name_of(item) or "", item)
            self.add_node(name, action)
            names.append(name)
        for source, target in pairwise(names):
            self.add_edge(source, target)
        return self

    # ── Edges ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_edge(self, start_key: str | Sequence[str], end_key: str) -> StateGraph:
        """Go from one node to another; from a list of nodes, when all of them have finished."""
        if isinstance(start_key, str):
            self.edges.add((start_key, end_key))
        elif not start_key:
            raise GraphError(f"add_edge([], {end_key!r}): name at least one node to come from.")
        else:
            self.joins.add((tuple(dict.fromkeys(start_key)), end_key))
        return self

    def add_conditional_edges(
        self,
        source: str,
        path: Callable[..., Any],
        path_map: Mapping[Hashable, str] | Sequence[str] | None = None,
    ) -> StateGraph:
        """Let `path(state)` choose what comes after `source`: a node's name, a `Send`, or a list of them.

        `path_map` translates what it returns; a list only says which names are possible.
        """
        if path_map is not None and not isinstance(path_map, Mapping):
            path_map = {name: name for name in path_map}
        name = name_of(path) or "condition"
        known = self.branches.setdefault(source, [])
        if any(name == other for other, _, _ in known):
            name = f"{name}{len(known) + 1}"
        known.append((name, path, path_map))
        return self

    def set_entry_point(self, key: str) -> StateGraph:
        """Begin at this node: the same as `add_edge(START, key)`."""
        return self.add_edge(START, key)

    def set_conditional_entry_point(
        self, path: Callable[..., Any], path_map: Mapping[Hashable, str] | Sequence[str] | None = None
    ) -> StateGraph:
        """Let `path(state)` choose where to begin."""
        return self.add_conditional_edges(START, path, path_map)

    def set_finish_point(self, key: str) -> StateGraph:
        """End after this node: the same as `add_edge(key, END)`."""
        return self.add_edge(key, END)

    # ── Compile ────────────────────────────────────────────────────────────────────────────────────────────────────

    def compile(
        self,
        checkpointer: Store | str | None = None,
        *,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        on_paused: OnPaused = "error",
        durability: Durability = "sync",
        name: str = "graph",
    ) -> CompiledGraph:
        """Check the graph and return it ready to run.

        `checkpointer` is a store, or the URL of one: `"sqlite:///bide.db"`. Without one the graph runs in memory only
        and cannot pause.
        """
        check_graph(self)
        has_store = checkpointer is not None
        before = check_static(self, interrupt_before, "interrupt_before", has_store=has_store)
        after = check_static(self, interrupt_after, "interrupt_after", has_store=has_store)
        return CompiledGraph(
            build_spec(self, name),
            checkpointer,
            self.types,
            before=before,
            after=after,
            on_paused=on_paused,
            durability=durability,
        )
