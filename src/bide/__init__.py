"""Bide: agents and workflows that pause for the world and resume exactly once."""

from bide.codec import checkpointable
from bide.engine.care import CachePolicy, RetryPolicy
from bide.engine.channels import AnyValue, EphemeralValue, LastValue, UntrackedValue
from bide.engine.context import get_config, get_runtime, get_store, get_stream_writer, interrupt
from bide.engine.steps import Done, NotDone, step
from bide.errors import (
    BideError,
    GraphDrained,
    GraphInterrupt,
    GraphRecursionError,
    InvalidUpdateError,
    NodeTimeoutError,
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
from bide.store.item_ops import GetOp, Item, ListNamespacesOp, PutOp, SearchItem, SearchOp
from bide.store.items import BaseStore, ItemStore
from bide.store.memory import InMemorySaver, InMemoryStore, MemorySaver
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

__all__ = [
    "END",
    "REMOVE_ALL_MESSAGES",
    "START",
    "AIMessage",
    "AnyValue",
    "BaseStore",
    "BideError",
    "CachePolicy",
    "Command",
    "CompiledGraph",
    "Done",
    "EphemeralValue",
    "GetOp",
    "GraphDrained",
    "GraphInterrupt",
    "GraphOutput",
    "GraphRecursionError",
    "HumanMessage",
    "InMemoryCache",
    "InMemorySaver",
    "InMemoryStore",
    "Interrupt",
    "InvalidUpdateError",
    "Item",
    "ItemStore",
    "LastValue",
    "ListNamespacesOp",
    "MemorySaver",
    "MessagesState",
    "NodeError",
    "NodeTimeoutError",
    "NotDone",
    "Overwrite",
    "PutOp",
    "RemoveMessage",
    "Result",
    "RetryPolicy",
    "RunControl",
    "Runtime",
    "SearchItem",
    "SearchOp",
    "Send",
    "StateGraph",
    "StateSnapshot",
    "StateUpdate",
    "Store",
    "StreamMode",
    "StreamWriter",
    "SystemMessage",
    "TimeoutPolicy",
    "ToolMessage",
    "UntrackedValue",
    "add_messages",
    "checkpointable",
    "entrypoint",
    "get_config",
    "get_runtime",
    "get_store",
    "get_stream_writer",
    "interrupt",
    "step",
    "task",
]
