"""What is told of a thread's end in short; all of it is at its last checkpoint."""

from __future__ import annotations

from typing import Any

from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint
from bide.graph.streaming import output_of

LONGEST = 2000
"""How many characters a summary has at most."""


def summary_of(spec: GraphSpec, checkpoint: Checkpoint) -> str:
    """Return the end of a thread in short: what it calls `summary` itself, or else the beginning of its output."""
    output: Any = output_of(spec, checkpoint)
    said = output.get("summary") if isinstance(output, dict) else output
    text = said if isinstance(said, str) else _written(output)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _written(output: Any) -> str:
    try:
        return repr(output)
    except Exception as problem:  # noqa: BLE001 — what cannot be shown must not keep a thread from ending
        return f"(cannot be shown: {type(problem).__name__})"
