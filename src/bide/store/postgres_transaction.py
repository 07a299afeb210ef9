"""A transaction of PostgreSQL: what need not be answered at once waits, and goes out together with what must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bide.errors import StepError
from bide.failpoints import ON as FAILPOINTS_ON
from bide.failpoints import failpoint
from bide.store.database import Answer, Otherwise, Row
from bide.store.postgres_errors import UNMET
from bide.store.postgres_sql import Statement, Statements
from bide.store.postgres_wire import Command, ConnectionLost, Refused, Wire

IDLE_MILLISECONDS = 30_000
"""How long the server keeps a transaction open from which it hears nothing: less than anybody waits for its locks."""


class Unmet(Exception):
    """A statement found no row where there had to be one; the transaction is taken back."""

    def __init__(self, otherwise: Otherwise) -> None:
        super().__init__()
        self.otherwise = otherwise


class _Sent:
    """A statement that waits to be sent, and then holds its result."""

    __slots__ = ("command", "is_answered", "otherwise", "query", "result")

    def __init__(self, query: str, command: Command, otherwise: Otherwise | None) -> None:
        self.query = query
        self.command = command
        self.otherwise = otherwise
        self.is_answered = False
        self.result: Any = None


class PostgresTransaction:
    """One transaction on one wire.

    As long as nothing must be answered at once, nothing is sent; then BEGIN and COMMIT are not needed either, since
    the server takes what lies between two synchronisation points for one transaction.
    """

    def __init__(self, wire: Wire, statements: Statements, name: str, patience: float, begin: str = "begin") -> None:
        self.name = name
        self._wire = wire
        self._statements = statements
        self._patience = patience
        self._begin = begin
        self._waiting: list[_Sent] = []
        self._is_open = False
        self._is_lent = False

    # ── What Transaction promises ──────────────────────────────────────────────────────────────────────────────────

    @property
    def connection(self) -> Any:
        """The driver's own connection, inside the transaction."""
        self._flush(must_open=True)
        self._is_lent = True
        return self._wire.lend()

    def run(self, query: str, params: Mapping[str, Any]) -> int:
        """Run a query for its effect; return how many rows it changed."""
        return int(self._now(query, params).command_tuples or 0)

    def one(self, query: str, params: Mapping[str, Any]) -> Row | None:
        """Return the first row, or None."""
        rows = self._wire.rows(self._now(query, params))
        return rows[0] if rows else None

    def all(self, query: str, params: Mapping[str, Any]) -> Sequence[Row]:
        """Return every row."""
        return self._wire.rows(self._now(query, params))

    def send(self, query: str, params: Mapping[str, Any]) -> None:
        """Run a query for its effect, with the next that must be answered, or with the commit."""
        self._later(query, self._statements.plain(query), params)

    def expect(self, query: str, params: Mapping[str, Any], otherwise: Otherwise) -> None:
        """Run a query that must change or find a row, or else the server takes the transaction back."""
        self._later(query, self._statements.expecting(query), params, otherwise)

    def ask(self, query: str, params: Mapping[str, Any]) -> Answer:
        """Ask with the next question that must be answered."""
        sent = self._later(query, self._statements.plain(query), params)

        def answer() -> Sequence[Row]:
            if not sent.is_answered:
                self._flush(must_open=True)
            return self._wire.rows(sent.result)

        return answer

    # ── Its course ─────────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self) -> None:
        """Send what waits, and commit. If the connection breaks here, nobody can tell whether that was done."""
        if FAILPOINTS_ON:
            self._flush(must_open=True)
            failpoint(f"{self.name}:written")
        if self._is_open:
            self._check_still_open()
            self._exchange([*self._taken(), _Sent("commit", self._bound("commit"), None)])
        elif self._waiting:
            self._exchange(self._taken())
        if FAILPOINTS_ON:
            failpoint(f"{self.name}:committed")

    def end_reading(self, *, wait: bool) -> None:
        """End a transaction that has changed nothing; nobody need wait for that."""
        if not self._is_open or self._wire.is_broken:
            return
        if wait:
            self._exchange([_Sent("commit", self._bound("commit"), None)])
        else:
            self._wire.leave(self._statements.plain("commit").text)

    def take_back(self) -> None:
        """End a transaction that failed. A connection on which even that fails is closed, which does the same."""
        self._waiting.clear()
        if self._wire.is_broken or not self._wire.is_in_transaction:
            return
        try:
            self._exchange([_Sent("rollback", self._bound("rollback"), None)])
        except (ConnectionLost, Refused):
            self._wire.is_broken = True

    def _now(self, query: str, params: Mapping[str, Any]) -> Any:
        sent = self._later(query, self._statements.plain(query), params)
        if not sent.is_answered:
            self._flush(must_open=True)
        return sent.result

    def _later(
        self, query: str, statement: Statement, params: Mapping[str, Any], otherwise: Otherwise | None = None
    ) -> _Sent:
        sent = _Sent(query, Command(statement, *statement.bind(params)), otherwise)
        self._waiting.append(sent)
        if FAILPOINTS_ON:
            # Whoever wants to die between two statements must find them apart.
            self._flush(must_open=True)
            failpoint(f"{self.name}:{query}")
        return sent

    def _flush(self, *, must_open: bool) -> None:
        waiting = self._taken()
        if must_open and not self._is_open and self._begin:
            self._is_open = True
            limit = self._bound("limit_idleness", milliseconds=str(IDLE_MILLISECONDS))
            waiting[:0] = [_Sent("begin", self._bound(self._begin), None), _Sent("limit_idleness", limit, None)]
        if waiting:
            self._exchange(waiting)

    def _taken(self) -> list[_Sent]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _exchange(self, waiting: list[_Sent]) -> None:
        try:
            results = self._wire.exchange([sent.command for sent in waiting], self._patience)
        except Refused as problem:
            otherwise = None if problem.index is None else waiting[problem.index].otherwise
            if otherwise is not None and problem.sqlstate == UNMET:
                raise Unmet(otherwise) from problem
            raise
        for sent, result in zip(waiting, results, strict=True):
            sent.result, sent.is_answered = result, True

    def _bound(self, query: str, **params: Any) -> Command:
        statement = self._statements.plain(query)
        return Command(statement, *statement.bind(params))

    def _check_still_open(self) -> None:
        """Refuse to go on if the statements that are not ours have ended the transaction."""
        if self._is_lent and not self._wire.is_in_transaction:
            raise StepError(
                "step(effect='tx') has ended the store's own transaction, so what it did is not one with the step. "
                "Leave COMMIT and ROLLBACK to the store."
            )
