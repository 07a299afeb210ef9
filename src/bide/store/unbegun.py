"""Where runs are to begin that have not begun yet: what they begin at must be there when their turn comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bide.store.bodies import Bodies
from bide.store.database import Transaction
from bide.store.needed import PLAIN
from bide.store.starting import BASE, start_place


def promised_points(tx: Transaction, bodies: Bodies, thread_id: str) -> set[int]:
    """Return the numbers of the checkpoints of a thread at which runs were told to begin, or to begin again."""
    found: set[int] = set()
    for run_id, sealed in tx.all("list_unbegun", {"thread_id": thread_id}):
        options: Any = PLAIN.decode(bodies.open(tx, start_place(thread_id, run_id, "options"), sealed), "options")
        found.update(_number_of(reference) for reference in _references(options))
    return found - {0}


def _references(options: Any) -> Iterator[Any]:
    """Give what says where to begin: a checkpoint's id, or a config that holds one."""
    for said in (options.get(BASE), options.get("checkpoint"), options.get("config")):
        yield (said.get("configurable") or {}).get("checkpoint_id") if isinstance(said, Mapping) else said


def _number_of(reference: Any) -> int:
    """Read the number in a checkpoint's id; whoever is given something else will say so when it begins."""
    number = reference.rpartition("-")[2] if isinstance(reference, str) else ""
    return int(number) if number.isascii() and number.isdecimal() else 0
