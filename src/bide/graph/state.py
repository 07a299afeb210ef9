"""`StateGraph`: nodes, edges and a state schema, written down and then compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Unpack

from bide.codec import Registry
from bide.engine.channels import Channel
from bide.engine.spec import Call, Subgraph
from bide.errors import GraphError
from bide.graph.calls import destinations_of, name_of, own_schema, read_call
from bide.graph.compiled import Build, CompiledGraph
from bide.graph.options import FOR_NODES, CompileOptions, NodeOptions, check_compile_options, check_node_options
from bide.graph.schema import Schema, channel_of, is_schema, read_schema
from bide.graph.spec import UNNAMED, build_spec
from bide.graph.validate import check_graph, check_names, check_static, check_types
from bide.store import Store
from bide.types import END, START

RUNS = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch", "get_state", "get_graph")
"""What a compiled graph can do and a graph in the making cannot."""


class Node(NamedTuple):
    """A node as it was added."""

    name: str
    action: Any
    schema: Schema
    call: Call
    options: NodeOptions
    subgraph: Subgraph | None = None
    is_deferred: bool = False
    is_fanin: bool = False
    destinations: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None


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
        self.defaults: NodeOptions = {}
        self.edges: set[tuple[str, str]] = set()
        self.joins: set[tuple[tuple[str, ...], str]] = set()
        self.branches: dict[str, list[tuple[str, Call, Mapping[Any, str] | None, Schema]]] = {}
        self.channels: dict[str, Channel] = {}
        self.types = Registry()
        for given in (state_schema, input_schema, output_schema):
            self.types.add_types_in(given)
        for schema in (self.schema, self.input, self.output):
            self._learn(schema)

    if not TYPE_CHECKING:  # a type checker would take this for a word that everything is here

        def __getattr__(self, name: str) -> Any:
            if name in RUNS:
                raise AttributeError(
                    f"A StateGraph is built, not run: graph.compile(checkpointer=…).{name}(…)", name=name, obj=self
                )
            raise AttributeError(f"'StateGraph' object has no attribute {name!r}", name=name, obj=self)

    def __class_getitem__(cls, item: Any) -> type[StateGraph]:
        """Let `StateGraph[State]` be written, for type checkers."""
        return cls

    def _learn(self, schema: Schema) -> None:
        check_types(schema.keys)
        for key, annotation in schema.keys.items():
            if key.startswith(("__", "~")):
                raise GraphError(
                    f"{key!r} cannot be a state key: names that begin with two underscores or '~' are Bide's own."
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

    def add_node(
        self,
        node: Any,
        action: Any = None,
        *,
        defer: bool = False,
        input_schema: Any = None,
        destinations: Sequence[str] | Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **options: Unpack[NodeOptions],
    ) -> StateGraph:
        """Add a node: `add_node("name", function)`, or `add_node(function)` under the function's own name.

        A compiled graph may be a node, too. `defer=True` lets it run only when nothing else is left; `retry_policy`,
        `cache_policy`, `timeout` and `error_handler` say what happens when it fails, hangs, or was run before.
        `destinations` names where its `Command(goto=…)` may lead, for pictures.
        """
        if isinstance(node, str):
            name: str | None = node
            if action is None:
                raise GraphError(f"add_node({node!r}) has no function. Write add_node({node!r}, function).")
        else:
            name, action = name_of(node), node
        if not name:
            raise GraphError(f"{action!r} has no name of its own. Write add_node('name', …).")
        self._check_name(name)
        check_node_options(f"add_node({name!r})", options, FOR_NODES)
        subgraph = action.as_subgraph() if isinstance(action, CompiledGraph) else None
        if subgraph is not None and options.get("timeout") is not None:
            raise GraphError(
                f"add_node({name!r}, timeout=…): the node is a graph, which cannot be given up half way. Give timeouts "
                f"to the nodes inside it."
            )
        if subgraph is not None:
            self.types.learn(subgraph.spec.codec.registry)
        self.nodes[name] = Node(
            name,
            action,
            self._schema_of(action, input_schema),
            Call(_no_function, False) if subgraph is not None else read_call(action, f"Node {name!r}"),
            options,
            subgraph,
            defer,
            destinations=tuple(destinations or destinations_of(action)),
            metadata=metadata,
        )
        return self

    def _schema_of(self, action: Any, given: Any) -> Schema:
        """Return what the node reads: a schema of its own, or the whole state."""
        own = given if given is not None else own_schema(action)
        if own is self.state_schema or (given is None and not is_schema(own)):
            return self.schema
        schema = read_schema(own)
        self.types.add_types_in(own)
        self._learn(schema)
        return schema

    def add_fanin_node(self, node: str, run: Callable[..., Any], **options: Unpack[NodeOptions]) -> StateGraph:
        """Add a node that runs once, when all branches before it have finished: `run(state, parallel_results)`.

        `parallel_results` holds what the last node of each branch returned, in the order of their names. It is a state
        key, so it is saved with the checkpoint.
        """
        if "parallel_results" not in self.channels:
            self._learn(read_schema({"parallel_results": Annotated[list[Any], operator.add]}))
        self.add_node(node, run, defer=True, **options)
        self.nodes[node] = self.nodes[node]._replace(is_fanin=True)
        return self

    def set_node_defaults(self, **options: Unpack[NodeOptions]) -> StateGraph:
        """Give every node these policies, where it has none of its own."""
        check_node_options("set_node_defaults()", options)
        self.defaults = {**self.defaults, **options}
        return self

    def _check_name(self, name: str) -> None:
        if name in (START, END) or name.startswith("__"):
            raise GraphError(f"{name!r} cannot be the name of a node: names with two underscores are Bide's own.")
        if "|" in name or ":" in name:
            raise GraphError(f"{name!r} cannot be the name of a node: '|' and ':' mark the path of a task.")
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
        is_join = isinstance(start_key, Iterable) and not isinstance(start_key, str)
        sources: tuple[Any, ...] = tuple(start_key) if is_join else (start_key,)
        if not sources:
            raise GraphError(f"add_edge([], {end_key!r}): name at least one node to come from.")
        check_names("add_edge", (*sources, end_key))
        if is_join:
            self.joins.add((tuple(dict.fromkeys(sources)), end_key))
        else:
            self.edges.add((sources[0], end_key))
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
        if path_map is None:
            path_map = destinations_of(path) or None
        if path_map is not None and not isinstance(path_map, Mapping):
            path_map = {name: name for name in path_map}
        check_names("add_conditional_edges", (source, *(path_map or {}).values()))
        name = name_of(path) or "condition"
        known = self.branches.setdefault(source, [])
        if any(name == other for other, *_ in known):
            name = f"{name}{len(known) + 1}"
        call = read_call(path, f"The conditional edge {name!r} after {source!r}")
        known.append((name, call, path_map, self._schema_of(path, None)))
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
        checkpointer: Store | str | bool | None = None,
        *,
        store: Any = None,
        cache: Any = None,
        interrupt_before: Sequence[str] | str | None = None,
        interrupt_after: Sequence[str] | str | None = None,
        **options: Unpack[CompileOptions],
    ) -> CompiledGraph:
        """Check the graph and return it ready to run.

        `checkpointer` is a store, or the URL of one: `"sqlite:///bide.db"`. Without one the graph runs in memory only
        and cannot pause; inside another graph it is saved with that one. `True` lets a graph inside another keep its
        state from one call to the next, `False` lets it be run anew at every resume.
        `store` is the long-term store (the checkpointer's own if left out), `cache` keeps results of nodes that have a
        `cache_policy`. Further options: on_paused, durability, name, migrate, debug.
        """
        check_graph(self)
        check_compile_options(options)
        can_pause = checkpointer is not None
        before = check_static(self, interrupt_before, "interrupt_before", has_store=can_pause)
        after = check_static(self, interrupt_after, "interrupt_after", has_store=can_pause)
        spec = build_spec(self, options.get("name") or UNNAMED)
        return CompiledGraph(
            spec,
            checkpointer,
            Build(
                before=before,
                after=after,
                on_paused=options.get("on_paused") or "error",
                durability=options.get("durability") or "sync",
                context_schema=self.context_schema,
                items=store,
                cache=cache,
                migrate=options.get("migrate"),
            ),
            self,
        )


def _no_function(state: Any) -> None:
    """A node that is a graph has no function of its own."""
