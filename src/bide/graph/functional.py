"""`@entrypoint` and `@task`: a workflow as a plain function, in place of nodes and edges."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, overload

from bide.codec import Codec, Registry
from bide.codec.annotations import types_in
from bide.codec.chat import is_known_message_class
from bide.codec.registry import shape_of
from bide.engine.care import CachePolicy, RetryPolicy
from bide.engine.channels import LastValue, Pointers, lend
from bide.engine.spec import FRAMES, PREVIOUS, Call, GraphSpec, NodeSpec
from bide.errors import CodecError, GraphError
from bide.graph.calls import injected_of, name_of, read_call, types_of
from bide.graph.compiled import Build, CompiledGraph
from bide.graph.options import CompileOptions, NodeOptions, check_compile_options, check_node_options
from bide.graph.spec import care_of
from bide.store import Store
from bide.store.cache import StoredCache
from bide.types import START, FinalValue, Timeout

if TYPE_CHECKING:
    from bide.engine.children import Child

P = ParamSpec("P")
T = TypeVar("T")

INPUT, VALUE = "input", "value"


class Task(Generic[P, T]):
    """A function whose calls are kept: calling it starts it, and returns something to wait for."""

    def __init__(self, function: Callable[P, T], name: str, options: NodeOptions) -> None:
        check_node_options(name, options)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise GraphError(f"Task {name!r} is a generator. A task returns one value; return a list of them.")
        _check_name(name, "a task")
        functools.update_wrapper(self, function)
        injected, _, parameters = injected_of(function)
        injected = tuple((parameter, what) for parameter, what in injected if _is_ours(function, parameter, what))
        _let_be_stored(function)
        call = Call(function, _is_async(function), False, injected, parameters=parameters)
        self.name = name
        self.node = NodeSpec(name, call, _nothing_to_read, care=care_of(options, {}))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Child:
        """Start the function beside the code that calls it: in a thread, or, if it is async, on the event loop."""
        from bide.engine.children import start_child  # brings logging along: a tenth of `import bide`

        return start_child(self.node, args, kwargs)

    def __repr__(self) -> str:
        return f"<task {self.name!r}>"


@overload
def task(function: Callable[P, T], /) -> Task[P, T]: ...


@overload
def task(
    function: None = None, /, *, name: str | None = None, **options: Unpack[NodeOptions]
) -> Callable[[Callable[P, T]], Task[P, T]]: ...


def task(function: Any = None, /, *, name: str | None = None, **options: Unpack[NodeOptions]) -> Any:
    """Make a function a task: each call is made once, however often the code around it runs again.

    Called in an `@entrypoint` or in a node, it runs beside that code and returns a future: `.result()`, or `await`.
    Its result is kept with the thread; it may ask with `interrupt()`. Options: retry_policy, cache_policy, timeout.
    """

    def make(given: Callable[P, T]) -> Task[P, T]:
        own = name or name_of(given)
        if not own:
            raise GraphError(f"{given!r} has no name of its own. Write @task(name='…').")
        return Task(given, own, options)

    return make if function is None else make(function)


class entrypoint:
    """Make a function a workflow: `@entrypoint(checkpointer=…)`. It is run with `invoke`, `stream` and the like.

    The function takes one input, and may name `config`, `runtime`, `store`, `writer` and `previous` (what its last
    call on the thread returned). `return entrypoint.final(value=…, save=…)` gives the caller one value and the next
    call another.
    """

    final = FinalValue

    def __init__(
        self,
        checkpointer: Store | str | bool | None = None,
        *,
        store: Any = None,
        cache: Any = None,
        context_schema: Any = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        cache_policy: CachePolicy | None = None,
        timeout: Timeout | None = None,
        **options: Unpack[CompileOptions],
    ) -> None:
        check_compile_options(options)
        if callable(checkpointer):
            raise GraphError("@entrypoint takes its options first: write @entrypoint() above the function.")
        self.checkpointer = checkpointer
        self.policies: NodeOptions = {
            "retry_policy": retry_policy,
            "cache_policy": cache_policy,
            "timeout": timeout,
        }
        self.options = options
        self.build = Build(
            on_paused=options.get("on_paused") or "error",
            durability=options.get("durability") or "sync",
            context_schema=context_schema,
            items=store,
            cache=cache,
            migrate=options.get("migrate"),
        )

    def __call__(self, function: Callable[..., Any]) -> CompiledGraph:
        """Return the function as a graph of one node."""
        name = self.options.get("name") or name_of(function) or "entrypoint"
        check_node_options(name, self.policies)
        _check_name(name, "an entrypoint")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise GraphError(f"{name!r} is a generator. An entrypoint returns one value; write to the stream instead.")
        call = read_call(function, f"Entrypoint {name!r}")
        if not call.takes_state:
            raise GraphError(f"Entrypoint {name!r} takes no input. Give it one parameter, the input of the workflow.")
        spec = _spec(name, call, function, self.policies)
        graph = CompiledGraph(spec, self.checkpointer, self.build)
        if graph.cache is None and graph.store is not None:
            graph.cache = StoredCache(graph.store)  # its tasks may have a cache policy, which nobody knows beforehand
        graph.__doc__ = function.__doc__
        return graph


def _check_name(name: str, what: str) -> None:
    if not name or any(mark in name for mark in "|:#"):
        raise GraphError(f"{name!r} cannot be the name of {what}: '|', ':' and '#' mark the path of a task.")


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _is_ours(function: Callable[..., Any], parameter: str, what: str) -> bool:
    """Whether the engine fills a parameter of a task: not one with a value of its own that only has such a name."""
    default = inspect.signature(function).parameters[parameter].default
    return what in _FOR_TASKS and (default is None or default is inspect.Parameter.empty)


_FOR_TASKS = frozenset({"config", "runtime", "store", "writer", "previous"})


_TASK_TYPES = Registry()
"""What tasks take and return: whoever calls a task, in whatever entrypoint, cannot name its types beforehand."""


def _let_be_stored(function: Callable[..., Any]) -> None:
    for cls in _types_of(function):
        # A class inside a function may have been there before, under this name; the first one keeps it.
        with suppress(CodecError):
            _TASK_TYPES.add(cls, f"{cls.__module__}.{cls.__qualname__}")


def _types_of(function: Callable[..., Any]) -> Iterator[type]:
    for annotation in types_of(function):
        yield from (cls for cls in types_in(annotation) if not is_known_message_class(cls) and shape_of(cls))


def _spec(name: str, call: Call, function: Callable[..., Any], policies: NodeOptions) -> GraphSpec:
    node = NodeSpec(name, call, _read_input, care=care_of(policies, {}))
    types = Registry(_TASK_TYPES)
    for cls in _types_of(function):
        if Registry().of(cls) is None:
            # By its own name, even if a task has brought it: what is stored must not depend on which came first.
            types.add(cls, cls.__name__)
    plain = LastValue()
    return GraphSpec(
        name=name,
        nodes={name: node},
        start=NodeSpec(START, Call(_nothing_to_read, False), _read_input, edges=(name,)),
        channels={INPUT: plain, VALUE: plain, PREVIOUS: plain, FRAMES: Pointers()},
        joins={},
        input_keys=frozenset({INPUT}),
        output_keys=(VALUE,),
        state_keys=frozenset({INPUT, VALUE}),
        read_update=_read_update,
        fingerprint=blake2b(f"entrypoint {name}".encode(), digest_size=8).hexdigest(),
        codec=Codec(types),
        open_state=False,
        value_key=VALUE,
    )


def _read_update(given: Any) -> Mapping[str, Any]:
    return {INPUT: given}


def _read_input(values: Mapping[str, Any]) -> Any:
    return lend(values.get(INPUT))


def _nothing_to_read(values: Any) -> None:
    """A task has its arguments, and no state to read."""
