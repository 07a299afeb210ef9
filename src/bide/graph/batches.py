"""Many inputs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from bide.errors import InvalidUpdateError
from bide.graph.door import merged_config

if TYPE_CHECKING:
    from bide.graph.compiled import CompiledGraph

MOST_AT_ONCE = 32
"""How many inputs run at once, unless `max_concurrency` says otherwise."""


def batch(
    graph: CompiledGraph, inputs: Sequence[Any], config: Any, *, return_exceptions: bool = False, **options: Any
) -> list[Any]:
    """Invoke a graph for each input, in threads."""
    from concurrent.futures import ThreadPoolExecutor  # brings logging along: a tenth of `import bide`

    configs = _configs(inputs, config)
    if not inputs:
        return []

    def call(given: Any, own: Any) -> Any:
        try:
            return graph.invoke(given, own, **options)
        except Exception as error:
            if not return_exceptions:
                raise
            return error

    with ThreadPoolExecutor(_most(graph, configs), thread_name_prefix="bide-batch") as pool:
        pairs = zip(inputs, configs, strict=True)
        futures = [pool.submit(copy_context().run, call, given, own) for given, own in pairs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


async def abatch(
    graph: CompiledGraph, inputs: Sequence[Any], config: Any, *, return_exceptions: bool = False, **options: Any
) -> list[Any]:
    """Invoke a graph for each input, on the event loop."""
    from asyncio import Semaphore, ensure_future, gather, wait  # a fifth of `import bide`, which sync callers spare

    configs = _configs(inputs, config)
    if not inputs:
        return []
    gate = Semaphore(_most(graph, configs))

    async def call(given: Any, own: Any) -> Any:
        async with gate:
            try:
                return await graph.ainvoke(given, own, **options)
            except Exception as error:
                if not return_exceptions:
                    raise
                return error

    calls = [ensure_future(call(given, own)) for given, own in zip(inputs, configs, strict=True)]
    try:
        return await gather(*calls)
    except BaseException:
        # Nobody would hear of the others: they stop where they can be gone on with, before the error is told.
        for unfinished in calls:
            unfinished.cancel()
        await wait(calls)
        raise


def _configs(inputs: Sequence[Any], config: Any) -> list[Any]:
    if config is None or isinstance(config, Mapping):
        return [config] * len(inputs)
    if len(config) != len(inputs):
        raise InvalidUpdateError(
            f"There are {len(inputs)} inputs and {len(config)} configs. Give one for each, or one."
        )
    return list(config)


def _most(graph: CompiledGraph, configs: Sequence[Any]) -> int:
    merged = (merged_config(graph.bound, own) or {} for own in configs)
    given = [own["max_concurrency"] for own in merged if own.get("max_concurrency")]
    return min(given) if given else MOST_AT_ONCE
