"""Messages as the thread protocol tells them: a start, blocks that grow one after the other, a finish; and tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_ROLES = {"ai": "ai", "human": "human", "system": "system", "tool": "tool"}
Told = tuple[str, dict[str, Any]]
"""The channel, and what is said there."""


class MessageEvents:
    """The messages of one namespace that have begun and are not finished."""

    def __init__(self) -> None:
        self._open: dict[str, _Growing] = {}
        self._calls: dict[str, str] = {}

    def told(self, said: dict[str, Any], where: Any) -> Iterator[Told]:
        """Tell a message, or a chunk of one."""
        kind = str(said.get("type", ""))
        name = str(said.get("id") or "")
        growing = self._open.get(name)
        if growing is None:
            growing = self._open[name] = _Growing(name)
            role = _ROLES.get(kind.removesuffix("MessageChunk").lower(), "ai")
            yield "messages", {"event": "message-start", "role": role, "id": name, "metadata": where}
        yield from growing.grow(said)
        if not kind.endswith("Chunk") or said.get("chunk_position") == "last":
            yield from self._finish(name)
        if not kind.endswith("Chunk"):
            yield from self._tools(said)

    def finish_all(self) -> Iterator[Told]:
        """Finish what has begun: its node is over."""
        for name in list(self._open):
            yield from self._finish(name)

    def _finish(self, name: str) -> Iterator[Told]:
        growing = self._open.pop(name)
        yield from growing.close()
        usage = {} if growing.usage is None else {"usage": growing.usage}
        yield "messages", {"event": "message-finish", "id": name, **usage}
        for call in growing.calls:
            yield from self._tools({"tool_calls": [call]})

    def _tools(self, said: dict[str, Any]) -> Iterator[Told]:
        for call in said.get("tool_calls") or ():
            id_ = call.get("id")
            if id_ and id_ not in self._calls:
                self._calls[id_] = str(call.get("name") or "")
                told = {"event": "tool-started", "tool_call_id": id_, "tool_name": call.get("name") or ""}
                yield "tools", {**told, "input": call.get("args")}
        if said.get("type") == "tool":
            id_ = str(said.get("tool_call_id"))
            if said.get("status") == "error":
                yield "tools", {"event": "tool-error", "tool_call_id": id_, "message": str(said.get("content"))}
            else:
                yield "tools", {"event": "tool-finished", "tool_call_id": id_, "output": said}


class _Growing:
    """One message: blocks never interleave, so a new kind of block finishes the one before."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.usage: Any = None
        self.calls: list[dict[str, Any]] = []
        self._index = -1
        self._block: dict[str, Any] | None = None

    def grow(self, said: dict[str, Any]) -> Iterator[Told]:
        self.usage = said.get("usage_metadata") or self.usage
        for block in _blocks(said.get("content")):
            yield from self._add(block)
        for chunk in said.get("tool_call_chunks") or ():
            yield from self._add_call(chunk)
        if not str(said.get("type", "")).endswith("Chunk"):
            for call in said.get("tool_calls") or ():
                yield from self._whole({"type": "tool_call", **call})
        elif said.get("tool_calls") and said.get("chunk_position") == "last":
            self.calls = list(said["tool_calls"])

    def _add(self, block: dict[str, Any]) -> Iterator[Told]:
        kind = str(block.get("type", "text"))
        if kind not in ("text", "reasoning"):
            yield from self._whole(block)
            return
        if self._block is None or self._block["type"] != kind:
            yield from self._begin({"type": kind, kind: ""})
        assert self._block is not None
        piece = str(block.get(kind) or "")
        self._block[kind] += piece
        if piece:
            yield self._told("content-block-delta", delta={"type": f"{kind}-delta", kind: piece})

    def _add_call(self, chunk: dict[str, Any]) -> Iterator[Told]:
        is_same = self._block is not None and self._block["type"] == "tool_call_chunk"
        if not is_same or (chunk.get("id") and self._block and chunk["id"] != self._block.get("id")):
            begun = {"type": "tool_call_chunk", "id": chunk.get("id"), "name": chunk.get("name"), "args": ""}
            yield from self._begin(begun)
        assert self._block is not None
        self._block["args"] += chunk.get("args") or ""
        fields = {"type": "tool_call_chunk", "args": self._block["args"]}
        yield self._told("content-block-delta", delta={"type": "block-delta", "fields": fields})

    def _whole(self, block: dict[str, Any]) -> Iterator[Told]:
        yield from self._begin(dict(block))
        yield from self.close()

    def _begin(self, block: dict[str, Any]) -> Iterator[Told]:
        yield from self.close()
        self._index += 1
        self._block = block
        yield self._told("content-block-start", content=dict(block))

    def close(self) -> Iterator[Told]:
        """Finish the block that grows."""
        if self._block is not None:
            done, self._block = self._block, None
            if done["type"] == "tool_call_chunk":
                done = {**done, "type": "tool_call", "args": _read(done["args"])}
                self.calls.append(done)
            yield self._told("content-block-finish", content=done)

    def _told(self, event: str, **more: Any) -> Told:
        return "messages", {"event": event, "id": self.name, "index": self._index, **more}


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    listed = content if isinstance(content, list) else []
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in listed]


def _read(args: str) -> Any:
    try:
        return json.loads(args) if args else {}
    except ValueError:
        return args
