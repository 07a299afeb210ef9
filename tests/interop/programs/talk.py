"""Drives a graph of LangGraph to its end, over whatever an earlier process has left: `talk.py <url>`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from bide.interop.langgraph import BideSaver  # noqa: E402
from tests.interop.graphs import CONFIG, RESUME, asking  # noqa: E402

LONG = "x" * 600


def drive(url: str) -> dict[str, Any]:
    """Bring the thread to its end; what was done before is not done again."""
    with BideSaver(url) as saver:
        graph = asking().compile(checkpointer=saver)
        state = graph.get_state(CONFIG)  # type: ignore[arg-type]
        if not state.created_at:
            graph.invoke({"log": [LONG]}, CONFIG, durability="sync")  # type: ignore[call-overload]
        elif state.tasks and not state.interrupts:  # a task that is done and not applied yet is no longer in `next`
            graph.invoke(None, CONFIG, durability="sync")  # type: ignore[call-overload]
        if graph.get_state(CONFIG).interrupts:  # type: ignore[arg-type]
            graph.invoke(RESUME, CONFIG, durability="sync")  # type: ignore[call-overload]
        values: dict[str, Any] = graph.get_state(CONFIG).values  # type: ignore[arg-type]
        return values


if __name__ == "__main__":
    print(json.dumps(drive(sys.argv[1])))
