"""LangGraph's names that are not in `bide`: what to do instead, told to whoever imports one.

Only names that people import by habit are here; docs/langgraph.md has every name.
"""

from __future__ import annotations

_MEMORY = "the long-term store is in the database of the threads: get_store(); see docs/long-term-store.md"
_AGENT = (
    "ready-made agents are not there yet. Call the model and its tools in a node of your own; "
    'docs/langchain.md shows it under "Tools, and people"'
)
_CACHE = "results are kept in the database of the threads; give nodes a cache_policy, see docs/robustness.md"
_LIMIT = "it is not there yet; compare get_runtime().step with the recursion_limit that you give"
_INBOX = "ask any dict of this shape with interrupt(); its class is not there yet"
_REDUCER = "annotate the key with its reducer: Annotated[list, operator.add]"

INSTEAD = {
    "ShallowPostgresSaver": "it is PostgresSaver with retention: PostgresSaver(…, retention=Retention(keep_last=1))",
    "BaseCheckpointSaver": (
        'a checkpointer is a bide.Store: Store.open("sqlite:///app.db"); for graphs that stay with LangGraph there is '
        "bide.interop.langgraph.BideSaver"
    ),
    "SqliteStore": _MEMORY,
    "AsyncSqliteStore": _MEMORY,
    "PostgresStore": _MEMORY,
    "AsyncPostgresStore": _MEMORY,
    "SqliteCache": _CACHE,
    "RedisCache": _CACHE,
    "BaseCache": _CACHE,
    "create_react_agent": _AGENT,
    "create_agent": _AGENT,
    "ToolNode": _AGENT,
    "tools_condition": _AGENT,
    "ToolRuntime": _AGENT,
    "InjectedState": _AGENT,
    "InjectedStore": _AGENT,
    "AgentState": _AGENT,
    "HumanInterrupt": _INBOX,
    "HumanInterruptConfig": _INBOX,
    "HumanResponse": _INBOX,
    "ActionRequest": _INBOX,
    "NodeInterrupt": "call interrupt(value) in the node, or return Interrupt(value)",
    "GraphBubbleUp": "a pause is no Exception here, so `except Exception` lets it pass",
    "ParentCommand": "return Command(graph=Command.PARENT, goto=…)",
    "RemainingSteps": _LIMIT,
    "IsLastStep": _LIMIT,
    "MessageGraph": "write StateGraph(MessagesState)",
    "Pregel": "write StateGraph(State), or @entrypoint",
    "RemoteGraph": "graphs on a server are not there yet",
    "PregelTask": "it is bide.types.TaskSnapshot",
    "Durability": "it is bide.types.Durability",
    "Topic": _REDUCER,
    "BinaryOperatorAggregate": _REDUCER,
    "JsonPlusSerializer": "values are stored without one; name your own classes with @checkpointable",
    "EncryptedSerializer": "open the store with keys: Store.open(url, encryption=Encryption(keys={…}))",
    "default_retry_on": "leave retry_on out of RetryPolicy(), and it is the default",
}


def refusal_of(name: str) -> Exception:
    """Return what to raise for a name that `bide` does not have.

    For a name of LangGraph's that is an `ImportError`: of an `AttributeError`, `from bide import …` shows no text.
    """
    if name not in INSTEAD:
        return AttributeError(f"module 'bide' has no attribute {name!r}")
    return ImportError(
        f"Bide has no {name}: {INSTEAD[name]}. Every name of LangGraph, and what became of it: docs/langgraph.md.",
        name=f"bide.{name}",
    )
