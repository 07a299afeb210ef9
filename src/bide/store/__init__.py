"""The store: every durable transition, one transaction each, over a SQL database."""

from bide.store.store import Store

__all__ = ["Store"]
