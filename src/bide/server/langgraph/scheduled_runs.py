"""What a client says about the runs of a cron, as options of the schedule that starts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from bide.runtime.starts import StartOptions
from bide.server.langgraph.assistant_shapes import Assistant


def options_of(assistant: Assistant, payload: Mapping[str, Any], metadata: Mapping[str, Any], cron_id: str) -> Any:
    """Return the options of `app.schedule` for runs of an assistant: its own config, under what the client says."""
    context = payload.get("context")
    said = {
        "config": _config(assistant, payload.get("config") or {}, {**metadata, "cron_id": cron_id}),
        "context": (dict(assistant.context) or None) if context is None else context,
        "interrupt_before": payload.get("interrupt_before"),
        "interrupt_after": payload.get("interrupt_after"),
        "durability": _durability(payload),
        "if_busy": payload.get("multitask_strategy") or "enqueue",
        "notes": {
            "assistant_id": assistant.assistant_id,
            "metadata": {**metadata, "cron_id": cron_id},
            "webhook": payload.get("webhook"),
            "kwargs": dict(payload),
            "multitask_strategy": payload.get("multitask_strategy") or "enqueue",
        },
    }
    return cast("StartOptions", {name: value for name, value in said.items() if value is not None})


def _config(assistant: Assistant, given: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    own = assistant.config
    told = {"assistant_id": assistant.assistant_id, "graph_id": assistant.graph_id}
    return {
        **own,
        **given,
        "configurable": {**(own.get("configurable") or {}), **(given.get("configurable") or {}), **told},
        "metadata": {**(own.get("metadata") or {}), **(given.get("metadata") or {}), **metadata, **told},
    }


def _durability(payload: Mapping[str, Any]) -> str | None:
    if payload.get("durability") is not None:
        return str(payload["durability"])
    return "exit" if payload.get("checkpoint_during") is False else None
