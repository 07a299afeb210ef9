"""Heartbeats on a connection of their own: others may all be in use, or wait for a lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bide.clock import elapsed
from bide.errors import StoreUnavailableError
from bide.store.lease import Renewal
from bide.store.postgres_clock import PostgresClock, Reading
from bide.store.postgres_connections import Connections
from bide.store.postgres_sql import Statements
from bide.store.postgres_wire import Command, ConnectionLost, Refused, Wire

TRIES = 6
"""Into how many parts a lease is divided, each long enough for one try to renew it."""


class PostgresLifeline:
    """Renews a lease, and reads the server's clock on the same way.

    A server that has no connection left for it may still answer on one that the store has: that is tried, too.
    """

    def __init__(
        self, connections: Connections, statements: Statements, lease: float, clock: Callable[[], PostgresClock | None]
    ) -> None:
        self._connections = connections
        self._statements = statements
        self._patience = lease / TRIES
        self._clock = clock
        self._wire: Wire | None = None

    def renew(self, params: Mapping[str, Any]) -> Renewal:
        """Renew a lease, in two sixths of it at most."""
        try:
            return self._alone(params)
        except (ConnectionLost, Refused):
            self.close()
        try:
            with self._connections.spare(self._patience) as wire:
                return self._renew(wire, params)
        except (ConnectionLost, Refused) as problem:
            raise StoreUnavailableError(
                f"The lease of this worker could not be renewed in {self._connections.name} ({problem}). It is tried "
                f"again until it has run out."
            ) from problem

    def _alone(self, params: Mapping[str, Any]) -> Renewal:
        if self._wire is None or not self._wire.is_sound():
            self.close()
            self._wire = self._connections.alone(self._patience)
        return self._renew(self._wire, params)

    def _renew(self, wire: Wire, params: Mapping[str, Any]) -> Renewal:
        # Nothing is prepared: a pooler may be in between, and once in a third of a lease it is not worth it.
        wire.is_preparing = False
        limit = {"milliseconds": str(max(int(self._patience * 1000), 1))}
        commands = [
            self._command("limit_statements", limit),
            self._command("renew_lease", params),
            self._command("read_driven", params),
            self._command("read_clock", {}),
        ]
        sent_at = elapsed()
        _, renewed, driven, told = wire.exchange(commands, self._patience, is_hurried=True)
        clock = self._clock()
        if clock is not None:
            clock.correct(Reading(sent_at, wire.rows(told)[0][0], elapsed()))
        return Renewal(renewed.command_tuples == 1, frozenset(wire.rows(driven)))

    def _command(self, query: str, params: Mapping[str, Any]) -> Command:
        statement = self._statements.plain(query)
        return Command(statement, *statement.bind(params))

    def close(self) -> None:
        """Close the connection."""
        wire, self._wire = self._wire, None
        if wire is not None:
            self._connections.drop_alone(wire)
