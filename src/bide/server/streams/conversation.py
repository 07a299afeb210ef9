"""Messages as streams tell them: token by token, as they grow, or as calls of tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from typing import Any

from bide.server.streams.sse import Part, part

_CHUNK = "Chunk"


class Conversation:
    """What was said so far in one run."""

    def __init__(self, modes: Set[str]) -> None:
        self.modes = modes
        self._grown: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, str] = {}

    def parts(self, suffix: str, data: str) -> Iterator[Part]:
        """Tell a message or a chunk of one, with what is known of where it comes from."""
        if "messages-tuple" in self.modes:
            yield Part(f"messages{suffix}", data)
        if "messages" in self.modes:
            yield from self._growing(suffix, *json.loads(data))
        if "tools" in self.modes:
            yield from self._tools(suffix, json.loads(data)[0])

    def _growing(self, suffix: str, said: dict[str, Any], where: Any) -> Iterator[Part]:
        """Tell a message as it is so far, each time it grows."""
        name = said.get("id") or ""
        if name not in self._grown:
            yield part(f"messages/metadata{suffix}", {name: {"metadata": where}})
        is_chunk = str(said.get("type", "")).endswith(_CHUNK)
        grown = self._grown[name] = joined(self._grown.get(name), said) if is_chunk else said
        yield part(f"messages/partial{suffix}" if is_chunk else f"messages/complete{suffix}", [grown])

    def _tools(self, suffix: str, said: dict[str, Any]) -> Iterator[Part]:
        for call in said.get("tool_calls") or ():
            if call.get("id") and call["id"] not in self._calls:
                self._calls[call["id"]] = str(call.get("name"))
                told = {"event": "on_tool_start", "toolCallId": call["id"], "name": call.get("name")}
                yield part(f"tools{suffix}", {**told, "input": call.get("args")})
        if said.get("type") == "tool":
            id_ = str(said.get("tool_call_id"))
            kind = "on_tool_error" if said.get("status") == "error" else "on_tool_end"
            name = said.get("name") or self._calls.get(id_)
            yield part(f"tools{suffix}", {"event": kind, "toolCallId": id_, "name": name, "output": said["content"]})


def joined(before: dict[str, Any] | None, chunk: dict[str, Any]) -> dict[str, Any]:
    """Return a message with one chunk more."""
    whole = {**chunk, "type": str(chunk["type"]).removesuffix(f"Message{_CHUNK}").lower()}
    if before is None:
        return whole
    content = chunk.get("content")
    if isinstance(content, str) and isinstance(before["content"], str):
        whole["content"] = before["content"] + content
    else:
        whole["content"] = [*_blocks(before["content"]), *_blocks(content)]
    whole["tool_calls"] = chunk.get("tool_calls") or before.get("tool_calls") or []
    return whole


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
