"""A database that tells the proxy when the operation begins that is to be hit: not one before it, and not one after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bide.store.postgres import PostgresDatabase
from tests.faults.proxy import ChaosProxy, Plan, peace

PLAIN = "plain "
"""Put before the name of an operation that is one statement."""


class AimedDatabase(PostgresDatabase):
    """Goes through a proxy, which has one plan for the first operation of some name, and peace for all others."""

    def __init__(self, proxy: ChaosProxy, schema: str, target: str, plan: Plan, **options: Any) -> None:
        super().__init__(proxy.dsn, schema=schema, **options)
        self.proxy = proxy
        self.target: str | None = target
        self.target_plan = plan
        self.trips = 0
        """How many round trips the operation took."""

    def write(self, name: str, work: Callable[[Any], Any]) -> Any:
        return self._aimed(name, lambda: super(AimedDatabase, self).write(name, work))

    def write_one(self, name: str, query: str, params: Mapping[str, Any], *, proof: str) -> int:
        write = super().write_one
        return int(self._aimed(PLAIN + name, lambda: write(name, query, params, proof=proof)))

    def change_schema(self, work: Callable[[Any], Any]) -> Any:
        return self._aimed("migrate", lambda: super(AimedDatabase, self).change_schema(work))

    def _aimed(self, name: str, operation: Callable[[], Any]) -> Any:
        if name != self.target:
            return operation()
        self.target = None
        self.proxy.batches.clear()
        self.proxy.plan = self.target_plan
        try:
            return operation()
        finally:
            self.trips = len(self.proxy.batches)
            self.proxy.plan = peace
