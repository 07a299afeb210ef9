"""What may be said about a node beside its function, and about a graph when it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from bide.engine.care import CachePolicy, RetryPolicy, read_limits, read_retry
from bide.errors import GraphError, did_you_mean
from bide.types import Durability, OnPaused, Timeout


class NodeOptions(TypedDict, total=False):
    """The policies of a node; `set_node_defaults` takes the same for all nodes."""

    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None
    cache_policy: CachePolicy | None
    timeout: Timeout | None
    error_handler: Callable[..., Any] | None


class CompileOptions(TypedDict, total=False):
    """What `compile` takes beside stores and pauses."""

    on_paused: OnPaused
    durability: Durability
    name: str | None
    migrate: Callable[..., Any] | None
    debug: bool
    """Taken for LangGraph's sake; `stream_mode="debug"` shows what happens."""


FOR_COMPILE = ("checkpointer", "store", "cache", "interrupt_before", "interrupt_after", *CompileOptions.__annotations__)
POLICIES = tuple(NodeOptions.__annotations__)
FOR_NODES = ("defer", "input_schema", "destinations", "metadata", *POLICIES)
"""All that `compile` and `add_node` take by name, for whoever mistypes one."""


def check_compile_options(options: Mapping[str, Any]) -> None:
    """Refuse an option that nobody reads."""
    _check_names("compile()", options, CompileOptions.__annotations__, FOR_COMPILE)


def check_node_options(where: str, options: Mapping[str, Any], told: Sequence[str] = POLICIES) -> None:
    """Refuse policies that make no sense, where they are written."""
    _check_names(where, options, NodeOptions.__annotations__, told)
    read_retry(options.get("retry_policy"))
    read_limits(options.get("timeout"))
    cache = options.get("cache_policy")
    if cache is not None and not isinstance(cache, CachePolicy):
        raise GraphError(f"cache_policy={cache!r} is no CachePolicy. Write CachePolicy(ttl=…).")


def _check_names(where: str, options: Mapping[str, Any], known: Mapping[str, Any], told: Sequence[str]) -> None:
    for name in options:
        if name not in known:
            raise GraphError(
                f"{where} has no option {name!r}.{did_you_mean(name, told)} Known options: {', '.join(told)}."
            )
