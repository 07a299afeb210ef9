"""Bide: agents and workflows that pause for the world and resume exactly once."""

from bide.codec import checkpointable
from bide.engine.channels import AnyValue, EphemeralValue, LastValue, UntrackedValue
from bide.engine.context import get_config, get_runtime, get_stream_writer, interrupt
from bide.engine.steps import Done, NotDone, step
from bide.errors import BideError, GraphInterrupt, GraphRecursionError, InvalidUpdateError
from bide.graph.compiled import CompiledGraph
from bide.graph.prebuilt import MessagesState
from bide.graph.result import Result
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
from bide.store.memory import InMemorySaver, MemorySaver
from bide.types import (
    END,
    START,
    Command,
    Interrupt,
    Overwrite,
    Runtime,
    Send,
    StateSnapshot,
    StreamWriter,
)

__version__ = "0.1.0"

__all__ = [
    "END",
    "REMOVE_ALL_MESSAGES",
    "START",
    "AIMessage",
    "AnyValue",
    "BideError",
    "Command",
    "CompiledGraph",
    "Done",
    "EphemeralValue",
    "GraphInterrupt",
    "GraphRecursionError",
    "HumanMessage",
    "InMemorySaver",
    "Interrupt",
    "InvalidUpdateError",
    "LastValue",
    "MemorySaver",
    "MessagesState",
    "NotDone",
    "Overwrite",
    "RemoveMessage",
    "Result",
    "Runtime",
    "Send",
    "StateGraph",
    "StateSnapshot",
    "Store",
    "StreamWriter",
    "SystemMessage",
    "ToolMessage",
    "UntrackedValue",
    "add_messages",
    "checkpointable",
    "get_config",
    "get_runtime",
    "get_stream_writer",
    "interrupt",
    "step",
]
