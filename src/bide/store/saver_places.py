"""The places of the rows that LangGraph's savers write (bide.interop.langgraph), for all who open their bodies.

Each takes the columns of a row's identity in the order of its table in schema.sql.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bide.store.seal import place_of


def saver_checkpoint_place(key: Sequence[Any]) -> str:
    """Return the place of a checkpoint's body: thread_id, ns, checkpoint_id, parent_id, run_id, seq."""
    return place_of("saver_checkpoints", *key)


def saver_metadata_place(key: Sequence[Any]) -> str:
    """Return the place of a checkpoint's metadata, which lie in the same row."""
    return place_of("saver_metadata", *key)


def saver_value_place(key: Sequence[Any]) -> str:
    """Return the place of a row of a channel's log: thread_id, ns, channel, seq."""
    return place_of("saver_values", *key)


def saver_write_place(key: Sequence[Any]) -> str:
    """Return the place of a write: thread_id, ns, checkpoint_id, task_id, idx, channel, task_path."""
    return place_of("saver_writes", *key)


def saver_blobs(thread_id: str) -> str:
    """Return under which name large bodies of a LangGraph thread are held: one of ours may have the same id."""
    return f"langgraph\x1f{thread_id}"
