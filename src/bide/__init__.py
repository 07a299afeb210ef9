"""Bide: agents and workflows that pause for the world and resume exactly once."""

from typing import TYPE_CHECKING

from bide.codec import checkpointable
from bide.engine.care import CachePolicy, RetryPolicy
from bide.engine.channels import AnyValue, EphemeralValue, LastValue, UntrackedValue
from bide.engine.context import get_config, get_runtime, get_store, get_stream_writer, interrupt
from bide.engine.spawning import ChildThread, spawn
from bide.engine.steps import Done, NotDone, step
from bide.engine.waiting import ask, sleep, wait_for
from bide.errors import (
    AlreadyAnsweredError,
    AmbiguousResumeError,
    BideError,
    CodecError,
    ConflictError,
    CorruptDataError,
    DeliveryError,
    EmptyInputError,
    EncryptionError,
    ExportFormatError,
    GraphChanged,
    GraphDrained,
    GraphError,
    GraphInterrupt,
    GraphRecursionError,
    IdempotencyError,
    InterruptError,
    InterruptSwallowedError,
    InvalidAnswerError,
    InvalidUpdateError,
    LeaseLostError,
    NodeFailure,
    NodeTimeoutError,
    NotWaitingError,
    ReplayMismatchError,
    ResumeError,
    RetentionError,
    ScheduleError,
    SettingsError,
    StepError,
    StoreBusyError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    ThreadBusyError,
    ThreadDeletedError,
    ThreadExistsError,
    ThreadPausedError,
    UnknownCheckpointError,
    UnknownCursorError,
    UnknownInterruptError,
    UnknownKeyError,
    UnknownThreadError,
    UnknownTypeError,
    UnstorableValueError,
    ValueTooLargeError,
    WaitCancelled,
    WaitChangedError,
    WaitExpired,
    WaitExpiredError,
)
from bide.graph.compiled import CompiledGraph
from bide.graph.functional import entrypoint, task
from bide.graph.prebuilt import MessagesState
from bide.graph.result import GraphOutput, Result
from bide.graph.state import StateGraph
from bide.messages import (
    REMOVE_ALL_MESSAGES,
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    add_messages,
)
from bide.store import Store
from bide.store.cache import InMemoryCache
from bide.store.memory import (
    AsyncPostgresSaver,
    AsyncSqliteSaver,
    InMemorySaver,
    MemorySaver,
    PostgresSaver,
    SqliteSaver,
)
from bide.types import (
    END,
    START,
    Command,
    Interrupt,
    NodeError,
    Overwrite,
    RunControl,
    Runtime,
    Send,
    StateSnapshot,
    StateUpdate,
    StreamMode,
    StreamWriter,
    TimeoutPolicy,
)

__version__ = "0.1.0"

CompiledStateGraph = CompiledGraph
"""As LangGraph calls it."""

__all__ = [
    "END",
    "REMOVE_ALL_MESSAGES",
    "START",
    "AIMessage",
    "AlreadyAnsweredError",
    "AmbiguousResumeError",
    "AnyValue",
    "AsyncPostgresSaver",
    "AsyncSqliteSaver",
    "BaseStore",
    "Bide",
    "BideError",
    "CachePolicy",
    "ChildThread",
    "CodecError",
    "Command",
    "CompiledGraph",
    "CompiledStateGraph",
    "ConflictError",
    "CorruptDataError",
    "DeliveryError",
    "Done",
    "EmptyInputError",
    "Encryption",
    "EncryptionError",
    "EphemeralValue",
    "ExportFormatError",
    "GetOp",
    "GraphChanged",
    "GraphDrained",
    "GraphError",
    "GraphInterrupt",
    "GraphOutput",
    "GraphRecursionError",
    "HumanMessage",
    "IdempotencyError",
    "InMemoryCache",
    "InMemorySaver",
    "InMemoryStore",
    "Interrupt",
    "InterruptError",
    "InterruptSwallowedError",
    "InvalidAnswerError",
    "InvalidUpdateError",
    "Item",
    "ItemStore",
    "LastValue",
    "LeaseLostError",
    "ListNamespacesOp",
    "MemorySaver",
    "MessagesState",
    "NodeError",
    "NodeFailure",
    "NodeTimeoutError",
    "NotDone",
    "NotWaitingError",
    "Overwrite",
    "PostgresSaver",
    "Pruned",
    "PutOp",
    "RemoveMessage",
    "ReplayMismatchError",
    "Result",
    "ResumeError",
    "Retention",
    "RetentionError",
    "RetryPolicy",
    "RunControl",
    "Runtime",
    "ScheduleError",
    "SearchItem",
    "SearchOp",
    "Send",
    "SettingsError",
    "SqliteSaver",
    "StateGraph",
    "StateSnapshot",
    "StateUpdate",
    "StepError",
    "Store",
    "StoreBusyError",
    "StoreError",
    "StoreFormatError",
    "StoreUnavailableError",
    "StreamMode",
    "StreamWriter",
    "SystemMessage",
    "ThreadBusyError",
    "ThreadDeletedError",
    "ThreadExistsError",
    "ThreadPausedError",
    "TimeoutPolicy",
    "ToolMessage",
    "UnknownCheckpointError",
    "UnknownCursorError",
    "UnknownInterruptError",
    "UnknownKeyError",
    "UnknownThreadError",
    "UnknownTypeError",
    "UnstorableValueError",
    "UntrackedValue",
    "ValueTooLargeError",
    "WaitCancelled",
    "WaitChangedError",
    "WaitExpired",
    "WaitExpiredError",
    "Wake",
    "Worker",
    "add_messages",
    "all_of",
    "any_of",
    "ask",
    "checkpointable",
    "entrypoint",
    "get_config",
    "get_runtime",
    "get_store",
    "get_stream_writer",
    "interrupt",
    "quorum",
    "sleep",
    "spawn",
    "step",
    "task",
    "wait_for",
]

if TYPE_CHECKING:
    from bide.runtime import Bide, Worker
    from bide.store.encryption import Encryption
    from bide.store.item_memory import InMemoryStore
    from bide.store.item_ops import GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp
    from bide.store.items import BaseStore, ItemStore
    from bide.store.retention import Pruned, Retention
    from bide.waits import Wake, all_of, any_of, quorum
else:  # a type checker would take this for a word that everything is here
    _LATE = {
        **dict.fromkeys(("Bide", "Worker"), "runtime"),
        **dict.fromkeys(("Wake", "all_of", "any_of", "quorum"), "waits"),
        "Encryption": "store.encryption",
        **dict.fromkeys(("Pruned", "Retention"), "store.retention"),
        "InMemoryStore": "store.item_memory",
        **dict.fromkeys(("GetOp", "Item", "ListNamespacesOp", "PutOp", "SearchItem", "SearchOp"), "store.item_ops"),
        **dict.fromkeys(("BaseStore", "ItemStore"), "store.items"),
    }

    def __getattr__(name: str) -> object:
        """Load what many have no use for; tell whoever looks for an absent name of LangGraph's what to do instead."""
        from importlib import import_module

        if name in _LATE:
            globals()[name] = found = getattr(import_module(f"bide.{_LATE[name]}"), name)
            return found
        from bide.absent import refusal_of  # only those who miss something pay for it

        raise refusal_of(name)
