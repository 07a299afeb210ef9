"""The door: `config` and options as callers write them become typed values, once, and travel no further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from bide.engine.opening import Request
from bide.engine.plan import shown_element
from bide.engine.run_context import merged_config
from bide.errors import GraphError, InvalidUpdateError, UnknownCheckpointError, did_you_mean
from bide.graph.validate import static_nodes
from bide.store.rows import checkpoint_id
from bide.types import Command, Durability, OnPaused, RunControl, StreamMode

if TYPE_CHECKING:
    from bide.graph.session import Build

Config = Mapping[str, Any]

__all__ = [
    "Config",
    "Options",
    "Reference",
    "RunConfig",
    "check_choice",
    "check_options",
    "checkpoint_id",
    "merged_config",
    "read_config",
    "read_ns",
    "read_reference",
    "read_request",
    "shown_config",
    "shown_ns",
]


class Options(TypedDict, total=False):
    """What `invoke`, `stream` and their async twins take beside input and config."""

    context: Any
    stream_mode: StreamMode | Sequence[StreamMode]
    interrupt_before: Sequence[str] | str | None
    interrupt_after: Sequence[str] | str | None
    durability: Durability | None
    on_paused: OnPaused | None
    checkpoint: str | Mapping[str, Any] | None
    raise_on_interrupt: bool
    subgraphs: bool
    version: Literal["v1", "v2"]
    control: RunControl | None
    output_keys: str | Sequence[str] | None
    tell: Sequence[str] | None
    """Of a run that a worker drives: what it writes to the thread's log, for whoever streams it."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A caller's config, read."""

    thread_id: str | None
    checkpoint_id: str | None
    checkpoint_ns: str
    recursion_limit: int
    max_concurrency: int | None
    metadata: Mapping[str, Any] | None
    """What the caller says about the run; kept with its checkpoints."""
    shown: Mapping[str, Any]
    """The config as nodes see it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A checkpoint's id, taken apart: the life of a thread, and a place in its history."""

    uid: str
    seq: int


def read_config(config: Config | None) -> RunConfig:
    """Read `config={"configurable": {"thread_id": …}, …}`."""
    config = {} if config is None else config
    inner = config.get("configurable") or {} if isinstance(config, Mapping) else None
    if not isinstance(config, Mapping) or not isinstance(inner, Mapping):
        raise InvalidUpdateError(f'config is {config!r}. Write {{"configurable": {{"thread_id": …}}}}.')
    if "thread_id" in config:
        raise InvalidUpdateError(
            'config has a "thread_id" at its top, where nothing reads it. Write {"configurable": {"thread_id": …}}.'
        )
    for name in ("recursion_limit", "max_concurrency"):
        if name in inner:
            raise InvalidUpdateError(
                f'config has {name!r} inside "configurable", where nothing reads it. Write {{"configurable": {{…}}, '
                f'"{name}": …}}.'
            )
    _check_spelling(config, "configurable")
    _check_spelling(inner, "thread_id")
    thread_id = inner.get("thread_id")
    limit = config.get("recursion_limit", 10_000)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InvalidUpdateError(f"recursion_limit must be at least 1, not {limit!r}.")
    most = config.get("max_concurrency")
    if most is not None and (not isinstance(most, int) or most < 1):
        raise InvalidUpdateError(f"max_concurrency must be at least 1, not {most!r}.")
    shown = {"metadata": {}, **config, "configurable": dict(inner)}
    if thread_id == "" or ("thread_id" in inner and thread_id is None):
        raise InvalidUpdateError(
            f"thread_id is {thread_id!r}, so everybody without one would share a thread. Give each its own, or leave "
            f"the key out to have one made."
        )
    if thread_id is not None:
        # Identities are strings everywhere inside; 42 and "42" are the same thread.
        thread_id = shown["configurable"]["thread_id"] = str(thread_id)
        if not thread_id.isprintable() and "\ud800" <= max(thread_id) <= "\udfff":
            raise InvalidUpdateError(f"thread_id {thread_id!r} holds half a character, which no database can store.")
    ns = inner.get("checkpoint_ns") or ""
    return RunConfig(thread_id, inner.get("checkpoint_id"), ns, limit, most, _metadata(config, inner), shown)


def _metadata(config: Config, inner: Config) -> dict[str, Any]:
    """Collect what the caller says about the run: its metadata, and the plain values of `configurable`."""
    own = {key: value for key, value in inner.items() if key not in _PLACES and not key.startswith("__")}
    plain = {key: value for key, value in own.items() if isinstance(value, (str, int, float, bool))}
    return {**plain, **(config.get("metadata") or {})}


_PLACES = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"})


def _check_spelling(given: Mapping[str, Any], name: str) -> None:
    """Refuse a key that is nearly `name`: the call would go to a thread that nobody meant."""
    for key in given:
        if name not in given and did_you_mean(key, [name]):
            raise InvalidUpdateError(f"config holds {key!r}, which nothing reads.{did_you_mean(key, [name])}")


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse an option that nobody reads: a typo must not change what a call does."""
    for name in options:
        if name not in Options.__annotations__:
            hint = did_you_mean(name, Options.__annotations__)
            raise InvalidUpdateError(
                f"There is no option {name!r}.{hint} Known options: {', '.join(Options.__annotations__)}."
            )
    check_choice("on_paused", options.get("on_paused"), OnPaused)
    check_choice("durability", options.get("durability"), Durability)
    check_choice("version", options.get("version"), Literal["v1", "v2"])


def check_choice(name: str, given: Any, choices: Any) -> None:
    """Refuse a word that is none of the choices."""
    if given is not None and given not in get_args(choices):
        raise GraphError(f"{name}={given!r} is none of the choices: {', '.join(map(repr, get_args(choices)))}.")


def read_reference(text: Any) -> Reference | None:
    """Read the id of a checkpoint, or a config that holds one."""
    if isinstance(text, Mapping):
        text = (text.get("configurable") or {}).get("checkpoint_id")
    if text is None:
        return None
    uid, dash, seq = str(text).rpartition("-")
    if not dash or not (seq.isascii() and seq.isdecimal()):
        raise UnknownCheckpointError(
            f"{text!r} is no checkpoint id. Take it from result.checkpoint_id, or from a snapshot's config."
        )
    return Reference(uid, int(seq))


def shown_config(thread_id: str | None, uid: str, seq: int, ns: str = "") -> dict[str, Any]:
    """Write the config that leads back to a checkpoint."""
    place = {"checkpoint_ns": shown_ns(ns), "checkpoint_id": checkpoint_id(uid, seq)}
    return {"configurable": {"thread_id": thread_id, **place}}


def shown_ns(ns: str) -> str:
    """Write the place of a graph inside others as LangGraph does: `team:12|member:3`, or `team` for a lasting one."""
    if ns.startswith("@"):
        return ns[1:]
    return "|".join(part for element in ns.split("|") if element for part in shown_element(element))


def read_ns(text: str) -> str:
    """Read the place of a graph inside others back."""
    if text and ":" not in text:
        return f"@{text}"
    elements: list[str] = []
    for part in text.split("|") if text else ():
        node, colon, number = part.partition(":")
        if colon:
            elements.append(f"{number}.{node}")
        elif elements:
            elements[-1] += f":{part}"
    return "|".join(elements)


def read_request(
    given: Any,
    options: Options,
    config: RunConfig,
    build: Build,
    *,
    wants: frozenset[str],
    durable: bool,
) -> Request:
    """Put together what the engine is asked."""
    reference = read_reference(options.get("checkpoint") or config.checkpoint_id)
    return Request(
        input=given,
        seq=None if reference is None else reference.seq,
        merges=options.get("checkpoint") is not None and not isinstance(given, Command),
        on_paused=options.get("on_paused") or build.on_paused,
        before=build.before | static_nodes(options.get("interrupt_before")),
        after=build.after | static_nodes(options.get("interrupt_after")),
        wants=wants,
        durable=durable,
        has_thread=durable,
        recursion_limit=config.recursion_limit,
    )
