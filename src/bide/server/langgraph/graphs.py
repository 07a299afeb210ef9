"""What an assistant's graph looks like: its nodes and edges, its schemas, and the graphs inside it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from bide.graph.compiled import CompiledGraph
from bide.server.context import Context, Server, Who
from bide.server.langgraph.assistant_shapes import Fields
from bide.server.langgraph.drawn import drawn
from bide.server.langgraph.resolving import visible_assistant
from bide.server.langgraph.schemas import schemas_of
from bide.server.langgraph.wire import read_bool
from bide.server.problems import Problem

router = APIRouter(tags=["assistants"])

DEEPEST = 100


@router.get("/assistants/{assistant_id}/graph")
def graph(ctx: Server, caller: Who, assistant_id: str, xray: Annotated[str, Query()] = "") -> Fields:
    """Return the nodes and edges of an assistant's graph; `xray` opens the graphs inside it, so many levels deep."""
    return drawn(_graph_of(ctx, caller, assistant_id)[1].spec, _levels(xray))


@router.get("/assistants/{assistant_id}/schemas")
def schemas(ctx: Server, caller: Who, assistant_id: str) -> Fields:
    """Return what goes into an assistant's graph, what comes out, and what it may be told beside, as JSON Schema."""
    return schemas_of(*_graph_of(ctx, caller, assistant_id))


@router.get("/assistants/{assistant_id}/subgraphs")
def subgraphs(ctx: Server, caller: Who, assistant_id: str, recurse: Annotated[str, Query()] = "") -> Fields:
    """Return the schemas of the graphs inside an assistant's graph; `recurse` goes on inside them."""
    return _inside(_graph_of(ctx, caller, assistant_id)[1], None, recurse)


@router.get("/assistants/{assistant_id}/subgraphs/{namespace}")
def subgraph(
    ctx: Server, caller: Who, assistant_id: str, namespace: str, recurse: Annotated[str, Query()] = ""
) -> Fields:
    """Return the schemas of the graph at one place inside an assistant's graph."""
    return _inside(_graph_of(ctx, caller, assistant_id)[1], namespace, recurse)


def _graph_of(ctx: Context, caller: Any, assistant_id: str) -> tuple[str, CompiledGraph]:
    assistant = visible_assistant(ctx, caller, assistant_id)
    found = ctx.app.graphs.find(assistant.graph_id)
    if found is None:
        raise Problem(
            404,
            f"Assistant {assistant_id[:80]!r} is one of graph {assistant.graph_id!r}, which this server does not serve "
            f"any more. Graphs: {ctx.app.graphs.listed()}.",
        )
    return assistant.graph_id, found


def _levels(xray: str) -> int | bool:
    if xray.strip().isdecimal() and len(xray) < 6:
        return min(int(xray), DEEPEST)
    return read_bool(xray)


def _inside(graph: CompiledGraph, namespace: str | None, recurse: str) -> Fields:
    found = graph.get_subgraphs(namespace=namespace, recurse=read_bool(recurse) or namespace is not None)
    # Graphs may be unnamed inside others: they are known by where they are.
    return {name: schemas_of(inner.name, inner) for name, inner in found}
