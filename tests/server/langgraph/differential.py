"""Compare two servers of the protocol: the same scenarios on both, ids and times masked, differences printed.

    python -m tests.server.langgraph.differential OURS THEIRS [scenario …]

with the addresses of two running servers that serve `twin_graphs.py`; without addresses nothing is compared: THEIRS is
LangGraph's own server, which is no dependency of ours and is installed elsewhere. What only ours shows is none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from langgraph_sdk import get_sync_client

from tests.server.langgraph.scenarios import SCENARIOS

_ID_KEYS = frozenset(
    {"thread_id", "run_id", "checkpoint_id", "parent_checkpoint_id", "id", "assistant_id", "langgraph_request_id"}
    | {"langgraph_checkpoint_ns", "checkpoint_ns", "created_by", "graph_id"}
)
_NOISE = frozenset(
    {"user_id", "langgraph_version", "langgraph_api_version", "langgraph_plan", "langgraph_host", "langgraph_api_url"}
    | {"langgraph_auth_user_id", "langgraph_request_id", "langgraph_auth_user", "langgraph_auth_permissions"}
    | {"run_attempt", "__request_start_time_ms__", "__after_seconds__", "path", "triggers", "langgraph_triggers"}
    | {"langgraph_path", "ls_integration", "__pregel_node_finished", "langsmith_session_name", "checkpoint_during"}
)
"""What their server says of itself, and what is private to their engine."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+\d\d:\d\d|Z)?$")
_SEGMENT = re.compile(r"(?<=[A-Za-z_]):[^|:]+")


def masked(value: Any, key: str = "") -> Any:
    """Return what was seen, without what can never be the same."""
    if isinstance(value, dict):
        if key == "interrupts" and "id" not in value:  # of a thread: by task, whose ids never agree
            return [masked(one, "asked") for one in value.values()]
        shown = {name: inner for name, inner in value.items() if name not in _NOISE}
        if shown.get("response_schema", ...) is None:
            del shown["response_schema"]
        return {_SEGMENT.sub(":ID", _UUID.sub("ID", name)): masked(inner, name) for name, inner in shown.items()}
    if isinstance(value, list):
        return [masked(one, key) for one in value]
    if isinstance(value, str):
        if _TIME.match(value):
            return "TIME"
        if key in _ID_KEYS and value and not value.startswith(("ai-", "h-", "tool-", "call-")):
            return "ID"
        return (
            _SEGMENT.sub(":ID", _UUID.sub("ID", value)) if key in ("event", "checkpoint_ns") else _UUID.sub("ID", value)
        )
    return value


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield where ours lacks something of theirs, or says something else."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in theirs.items():
            if key in ours:
                yield from differences(ours[key], value, f"{path}.{key}")
            else:
                yield f"{path}.{key}: missing, theirs is {value!r}"
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} items, theirs {len(theirs)}"
            yield f"   ours   {_short(ours)}"
            yield f"   theirs {_short(theirs)}"
            return
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif ours != theirs or type(ours) is not type(theirs):
        yield f"{path}: {ours!r}, theirs {theirs!r}"


def _short(listed: list[Any]) -> str:
    return "; ".join(str(one)[:230] for one in listed)


def seen(url: str, scenario: Any) -> list[tuple[str, Any]]:
    """Play a scenario on a server."""
    shown: list[tuple[str, Any]] = []
    with get_sync_client(url=url) as client:
        try:
            for what, value in scenario(client):
                shown.append((what, masked(value)))
        except Exception as problem:  # noqa: BLE001 - a scenario that breaks is a difference
            shown.append(("broke", f"{type(problem).__name__}: {problem}"))
    return shown


def main(ours: str, theirs: str, *wanted: str) -> int:
    """Compare two servers; return how many scenarios differ."""
    differing = 0
    for scenario in SCENARIOS:
        if wanted and scenario.__name__ not in wanted:
            continue
        mine, other = seen(ours, scenario), dict(seen(theirs, scenario))
        found = [
            line
            for what, value in mine
            for line in (differences(value, other[what], what) if what in other else [f"{what}: {value!r} (only here)"])
        ]
        found += [f"{what}: {value!r} (only there)" for what, value in other.items() if what not in dict(mine)]
        differing += bool(found)
        print(f"== {scenario.__name__}: {'same' if not found else f'{len(found)} differences'}")
        for line in found:
            print(f"   {line}")
    return differing


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
