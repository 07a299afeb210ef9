"""LangGraph's graphs on our store: `BideSaver` is a checkpointer for `compile(checkpointer=…)`. Its parts:

saver       the door: every method of a LangGraph checkpointer, blocking and async
putting     what one `put` and one `put_writes` write
reading     checkpoints, lists of them, and the histories that LangGraph's delta channels ask for
upkeep      deleting, pruning, copying
values      the values of channels: written when they changed, lists as splices
rows        the rows of the four tables, and how their bodies are closed and opened
packing     values to bytes and back, with our codec or the serializer that was given
theirs      LangGraph's own types, under names that last
"""

try:
    import langgraph.checkpoint.base as _checkpoint
except ImportError as problem:  # pragma: no cover — a test runs it in a process of its own
    raise ImportError(
        'BideSaver is a checkpointer for LangGraph, which is not installed here: pip install "bide[langgraph]".'
    ) from problem

from bide.interop.langgraph.saver import BideSaver

__all__ = ["BideSaver"]

del _checkpoint
