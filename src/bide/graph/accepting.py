"""What is handed to the store for a worker to run later: inputs and options as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from bide.engine.given import read_given
from bide.engine.spawning import Spawned
from bide.engine.spec import GraphSpec
from bide.errors import InvalidUpdateError, did_you_mean
from bide.store import Store
from bide.store.needed import PLAIN
from bide.store.queue_rows import Claim, Start
from bide.store.starting import BASE
from bide.types import UNSET, Command

STORED = ("context", "interrupt_before", "interrupt_after", "on_paused", "durability", "checkpoint", "tell")
"""The options of `invoke` that a run keeps for as long as it lives."""
GO_ON: Command[Any] = Command()
"""What is written as the input of a run that has none, so that it is known whether it has begun."""


class Accepted(NamedTuple):
    """What a claimed run is to be driven with."""

    given: Any
    config: dict[str, Any]
    options: dict[str, Any]


def start_of_child(spawned: Spawned, store: Store, owner: str) -> Start:
    """Return a child as the store takes it in; it is its parent's owner's."""
    return Start(
        spawned.child.graph,
        spawned.input,
        spawned.child.thread_id,
        queue=spawned.queue,
        version=store.versions.get(spawned.child.graph, ""),
        priority=spawned.priority,
        limit=spawned.limit,
        parent=spawned.parent,
        on_close=spawned.on_close,
        owner=owner,
    )


def write_options(config: Mapping[str, Any] | None, options: Mapping[str, Any]) -> bytes | None:
    """Write down what a run is started with beside its input; None when that is nothing."""
    for name in options:
        if name not in (*STORED, BASE):
            hint = did_you_mean(name, STORED)
            raise InvalidUpdateError(f"A run that a worker drives has no option {name!r}.{hint} There are {_listed()}.")
    said = {name: value for name, value in options.items() if value is not None}
    if config:
        said["config"] = {**config}
    return PLAIN.encode(said, "options") if said else None


def _listed() -> str:
    return ", ".join(STORED)


def accepted(spec: GraphSpec, claim: Claim) -> Accepted:
    """Read what a claimed run is to be driven with; its input is there until its first checkpoint is written."""
    said = {} if claim.options is None else cast("dict[str, Any]", PLAIN.decode(claim.options, "options"))
    config = dict(said.pop("config", {}))
    config["configurable"] = {**config.get("configurable", {}), "thread_id": claim.lease.thread_id}
    given = None if claim.input is None else read_given(spec.codec, claim.input)
    base = said.pop(BASE, None)
    if claim.input is None:
        said.pop("checkpoint", None)  # it says where the run began, not where it is now
    elif base is not None:
        config["configurable"]["checkpoint_id"] = base
        given = None if _is_going_on(given) else given
    return Accepted(given, config, said)


def _is_going_on(given: Any) -> bool:
    return isinstance(given, Command) and given.resume is UNSET and given.update is None and not given.targets
