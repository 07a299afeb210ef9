"""What the stream mode `messages` is made of: the tokens of LangChain's models, and whole messages that nodes return.

A model that is called inside a node finds our callback handler in one of two ways: in the `config` that the node hands
on, or in the context variable where LangChain keeps the config of whatever runs. `langchain_scope` sees to both.
LangChain is used where the process has loaded it, and is never the first thing to be loaded here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from typing import Any

from bide.errors import InvalidUpdateError
from bide.graph.schema import read_update
from bide.messages import Message
from bide.types import Overwrite

Told = tuple[Any, dict[str, Any]]
"""One part of the stream: a message or a chunk of one, and where it comes from."""

Writes = Iterable[tuple[str, Any]]
"""What a node wrote, key by key."""

_SILENT = frozenset({"nostream", "langsmith:nostream"})
_RUNNABLES = "langchain_core.runnables.config"


def task_metadata(
    config: Mapping[str, Any], *, node: str, step: int, path: tuple[Any, ...], triggers: Iterable[str], namespace: str
) -> dict[str, Any]:
    """Say where the messages of a task come from, under the names that readers of LangGraph's streams know."""
    thread_id = (config.get("configurable") or {}).get("thread_id")
    return {
        **(config.get("metadata") or {}),
        **({} if thread_id is None else {"thread_id": thread_id}),
        "langgraph_step": step,
        "langgraph_node": node,
        "langgraph_triggers": tuple(triggers),
        "langgraph_path": path,
        "langgraph_checkpoint_ns": namespace,
        "checkpoint_ns": namespace,
    }


# ── Tokens ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def token_handler(emit: Callable[[Told], None], metadata: Mapping[str, Any], seen: set[str] | None = None) -> Any:
    """Return the callback handler that makes chat models stream, and emits what they say; None without LangChain.

    Every chunk becomes `emit((chunk, metadata))`, with what LangChain knows of the model beside what is given. A model
    that cannot stream is told with its whole message. The ids of all of them are added to `seen`.
    """
    if sys.modules.get("langchain_core") is None:
        return None
    return _handler_class()(emit, metadata, set() if seen is None else seen)


@lru_cache(maxsize=1)
def _handler_class() -> Any:
    # Somebody has loaded LangChain, though perhaps not yet the parts that a model brings along.
    import_module(_RUNNABLES)
    return type("TokenHandler", (_Tokens, import_module("langchain_core.callbacks").BaseCallbackHandler), {})


class _Tokens:
    """What our handler does; only once LangChain is loaded it becomes one of LangChain's handlers."""

    run_inline = True  # in the order in which they are made, also when the model is async
    raise_error = True  # an event that cannot be told must not be lost in a log
    ignore_chain = ignore_agent = ignore_retriever = ignore_retry = ignore_custom_event = True

    def __init__(self, emit: Callable[[Told], None], metadata: Mapping[str, Any], seen: set[str]) -> None:
        super().__init__()
        self._emit = emit
        self._metadata = metadata
        self._seen = seen
        self._runs: dict[Any, dict[str, Any]] = {}
        self._streaming: set[Any] = set()

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, tags: Any = None, metadata: Any = None, **_: Any
    ) -> None:
        """Begin to follow a call of a model, unless its tags ask for silence."""
        if _SILENT.isdisjoint(tags or ()):
            shown = [tag for tag in tags or () if not tag.startswith("seq:step")]
            self._runs[run_id] = {**(metadata or {}), **self._metadata, **({"tags": shown} if shown else {})}

    def on_llm_new_token(self, token: Any, *, run_id: Any, chunk: Any = None, **_: Any) -> None:
        """Tell a chunk."""
        message = getattr(chunk, "message", None)  # a model that is no chat model has text only
        if run_id not in self._runs or message is None:
            return
        self._streaming.add(run_id)
        if message.id is None:
            # The name that LangChain gives to the whole message, if the model has none for it.
            message = message.model_copy(update={"id": f"lc_run--{run_id}-0"})
        self._tell(run_id, message)

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        """Tell the whole message, if it has not been told in chunks."""
        for message in _first_message(response) if run_id in self._runs else ():
            if run_id in self._streaming or message.id in self._seen:
                self._seen.add(message.id)
            else:
                self._tell(run_id, message)
        self._forget(run_id)

    def on_llm_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        """Follow the call no longer."""
        self._forget(run_id)

    def tap_output_iter(self, run_id: Any, output: Iterator[Any]) -> Iterator[Any]:
        """Leave the output alone. That we have this method is how LangChain knows that somebody wants tokens."""
        return output

    def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
        """Leave the output alone; see `tap_output_iter`."""
        return output

    def _tell(self, run_id: Any, message: Any) -> None:
        self._seen.add(message.id)
        self._emit((message, dict(self._runs[run_id])))

    def _forget(self, run_id: Any) -> None:
        self._runs.pop(run_id, None)
        self._streaming.discard(run_id)


def _first_message(response: Any) -> list[Any]:
    """Return the message of a model's first answer; others are alternatives to it."""
    found = [answer.message for answers in response.generations[:1] for answer in answers[:1] if _is_chat(answer)]
    return [message for message in found if message.id is not None]


def _is_chat(answer: Any) -> bool:
    return getattr(answer, "message", None) is not None


# ── Where models find the handler ──────────────────────────────────────────────────────────────────────────────────


def langchain_is_loaded() -> bool:
    """Tell whether this process has runnables of LangChain, which would look for a config."""
    # The last name that the module defines: another thread may be in the middle of loading it.
    return hasattr(sys.modules.get(_RUNNABLES), "run_in_executor")


def langchain_scope(config: Mapping[str, Any], handler: Any = None) -> AbstractContextManager[Mapping[str, Any]]:
    """Make `config` and `handler` known to LangChain's runnables, and yield the config that the node is given.

    A runnable that is called without a config takes this one. Callbacks, tags and metadata of a runnable that we run
    inside of are taken over where `config` has none of its own. A no-op where LangChain is not loaded.
    """
    return _Scope(config, handler) if langchain_is_loaded() else nullcontext(config)


class _Scope(AbstractContextManager[Mapping[str, Any]]):
    def __init__(self, config: Mapping[str, Any], handler: Any) -> None:
        self._runnables: Any = sys.modules[_RUNNABLES]
        self._variable: ContextVar[Any] = self._runnables.var_child_runnable_config
        self._config = config
        self._handler = handler

    def __enter__(self) -> Mapping[str, Any]:
        config = _config_inside(self._config, self._variable.get() or {})
        manager = _callbacks(self._runnables.CallbackManager, config, self._handler)
        if manager is not None:
            config["callbacks"] = manager
        self._token = self._variable.set(config)
        return config

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


# LangChain copies these, each with a `.copy()` of its own.
_COPIED: Mapping[str, Callable[[Any], Any]] = {"tags": list, "metadata": dict, "configurable": dict}


def _config_inside(config: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config for what runs inside a node."""
    inherited = {key: outer[key] for key in ("callbacks", "tags", "metadata") if outer.get(key)}
    # A run has its name and its id for itself: two models with one id would be one run to whoever traces them.
    own = {key: value for key, value in config.items() if value is not None and key not in ("run_id", "run_name")}
    return {key: _COPIED[key](value) if key in _COPIED else value for key, value in {**inherited, **own}.items()}


def _callbacks(manager_class: Any, config: Mapping[str, Any], handler: Any) -> Any:
    """Return a manager of all callbacks inside a node; None if there are none, and nothing to tell them.

    It has our handler, and not that of a graph around this one, which has its own stream. It also keeps tags and
    metadata for a model that is called with others.
    """
    given, tags, metadata = config.get("callbacks"), config.get("tags"), config.get("metadata")
    if not (given or handler or tags or metadata):
        return None
    if given is None or isinstance(given, list | tuple):
        manager = manager_class(list(given or ()), list(given or ()))
    elif hasattr(given, "inheritable_handlers"):
        manager = given.copy()
    else:
        raise InvalidUpdateError(
            f'config["callbacks"] is {given!r}. Give a list of callback handlers, or a callback manager of LangChain.'
        )
    manager.handlers = _foreign(manager.handlers)
    manager.inheritable_handlers = _foreign(manager.inheritable_handlers)
    if handler is not None:
        manager.add_handler(handler, inherit=True)
    manager.add_tags(tags or [], inherit=True)
    manager.add_metadata(metadata or {}, inherit=True)
    return manager


def _foreign(handlers: Iterable[Any]) -> list[Any]:
    return [handler for handler in handlers if not isinstance(handler, _Tokens)]


# ── Messages that a node returns ───────────────────────────────────────────────────────────────────────────────────


def messages_in(update: Mapping[str, Any] | Writes, seen: set[str], given: Any = None) -> list[Any]:
    """Return the messages that a node wrote and that have not been told yet, ours and LangChain's; note them in `seen`.

    `given` is the state that the node was given: what it hands back of that is no news. Removals are no messages.
    """
    values = update.values() if isinstance(update, Mapping) else [value for _, value in update]
    found = [one for value in values for one in _messages_of(value) if one.type != "remove"]
    if any(one.id not in seen for one in found):
        seen.update(one.id for value in _values_of(given) for one in _messages_of(value) if one.id is not None)
    fresh = []
    for one in found:
        if one.id is None:
            fresh.append(one)
        elif one.id not in seen:
            fresh.append(one)
            seen.add(one.id)
    return fresh


def _messages_of(value: Any) -> list[Any]:
    if isinstance(value, Overwrite):
        value = value.value
    return [one for one in (value if isinstance(value, list | tuple) else (value,)) if isinstance(one, Message)]


def _values_of(given: Any) -> Iterable[Any]:
    """Return the values in a state; a Send may carry a message by itself, or a list of them."""
    state = None if isinstance(given, Message) else read_update(given)
    return (given,) if state is None else state.values()
