"""A run in LangChain's own events: the graph, its nodes and its models begin, say something, and end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from bide.server.streams.conversation import joined
from bide.server.streams.sse import Part, part

_CHUNK = "Chunk"


class _Where(NamedTuple):
    """Where in a run something is told."""

    suffix: str = ""
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = {}


class RunEvents:
    """What was told of one run so far."""

    def __init__(self, run_id: str, graph: str, metadata: Mapping[str, Any]) -> None:
        self.run_id = run_id
        self.graph = graph
        self.metadata = dict(metadata)
        self._inputs: dict[str, Any] = {}
        self._said: dict[str, tuple[dict[str, Any], Any]] = {}

    def forget(self) -> None:
        """Know no more of what was cut short: it is said again, from its beginning."""
        self._inputs.clear()
        self._said.clear()

    def begin(self, given: Any) -> Iterator[Part]:
        """Tell that the graph begins."""
        yield self._part("on_chain_start", self.graph, self.run_id, {"input": given})

    def end(self, output: Any) -> Iterator[Part]:
        """Tell that it is over, or rests."""
        yield from self._finish_models("")
        yield self._part("on_chain_end", self.graph, self.run_id, {"output": output})

    def chunk(self, chunk: Any) -> Iterator[Part]:
        """Tell something of the graph as a whole."""
        yield self._part("on_chain_stream", self.graph, self.run_id, {"chunk": chunk})

    def task(self, suffix: str, task: Mapping[str, Any], step: int) -> Iterator[Part]:
        """Tell that a node begins or ends; one that fails or asks does not end."""
        id_, name = str(task["id"]), str(task["name"])
        place = {"langgraph_node": name, "langgraph_step": step, "langgraph_triggers": task.get("triggers") or []}
        where = _Where(suffix, (f"graph:step:{step}",), place)
        if "input" in task:
            self._inputs[suffix + id_] = task["input"]
            yield self._part("on_chain_start", name, self._id(suffix + id_), {"input": task["input"]}, where)
            return
        given = self._inputs.pop(suffix + id_, None)
        yield from self._finish_models(suffix)
        if task.get("error") or task.get("interrupts"):
            return
        result = task.get("result")
        yield self._part("on_chain_stream", name, self._id(suffix + id_), {"chunk": result}, where)
        output = {"output": result, "input": given}
        yield self._part("on_chain_end", name, self._id(suffix + id_), output, where)

    def message(self, suffix: str, said: dict[str, Any], where: Any) -> Iterator[Part]:
        """Tell what a model says, word by word; a message that came at once is part of its node's result."""
        if not str(said.get("type", "")).endswith(_CHUNK):
            return
        name = suffix + str(said.get("id") or "")
        if name not in self._said:
            yield self._of_model("on_chat_model_start", name, suffix, where, {"input": {}})
        grown = joined(self._said[name][0] if name in self._said else None, said)
        self._said[name] = (grown, where)
        yield self._of_model("on_chat_model_stream", name, suffix, where, {"chunk": said})
        if said.get("chunk_position") == "last":
            yield from self._finish_model(name, suffix)

    def _finish_models(self, suffix: str) -> Iterator[Part]:
        for name in [name for name in self._said if name.startswith(suffix)]:
            yield from self._finish_model(name, suffix)

    def _finish_model(self, name: str, suffix: str) -> Iterator[Part]:
        grown, where = self._said.pop(name)
        yield self._of_model("on_chat_model_end", name, suffix, where, {"output": grown, "input": {}})

    def _of_model(self, event: str, name: str, suffix: str, where: Any, data: dict[str, Any]) -> Part:
        more = where if isinstance(where, dict) else {}
        model = str(more.get("ls_model_name") or more.get("ls_provider") or "chat_model")
        return self._part(event, model, self._id(name), data, _Where(suffix, more.get("tags") or (), more))

    def _id(self, name: str) -> str:
        """Return the id of something inside the run: the same whenever it is told."""
        return str(uuid5(UUID(self.run_id), name))

    def _part(self, event: str, name: str, run_id: str, data: dict[str, Any], where: _Where = _Where()) -> Part:  # noqa: B008 - a tuple
        told = {"event": event, "name": name, "run_id": run_id, "tags": list(where.tags), "data": data}
        metadata = {**self.metadata, **where.metadata}
        parents = [] if run_id == self.run_id else [self.run_id]
        return part(f"events{where.suffix}", {**told, "metadata": metadata, "parent_ids": parents})
