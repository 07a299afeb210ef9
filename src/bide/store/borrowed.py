"""The connection that a `step(effect="tx")` may use: the store's own, without the right to end its transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, NoReturn

from bide.errors import StepError

_NOT_YOURS = frozenset(
    ["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH", "VACUUM", "PRAGMA"]
)


class BorrowedConnection:
    """Runs statements inside the store's transaction. The store commits it, together with the step's journal."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self._checked(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any]) -> sqlite3.Cursor:
        """Run one statement for each set of parameters."""
        self._check(sql)
        return self._connection.executemany(sql, parameters)

    def __enter__(self) -> BorrowedConnection:
        """Stand in for `with connection:`; the transaction is the store's, and ends with the step."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the block; nothing is committed yet."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StepError(
            f"step(effect='tx') used connection.{name}. The connection is lent by the store, which commits it together "
            f"with the step: use execute() and executemany(), and leave the transaction alone."
        )

    def _checked(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        self._check(sql)
        return self._connection.execute(sql, parameters)

    def _check(self, sql: str) -> None:
        first = sql.split(None, 1)[0].rstrip(";").upper() if sql.strip() else ""
        if first in _NOT_YOURS:
            raise StepError(
                f"step(effect='tx') ran {first}. The transaction is the store's own, and is committed together with "
                f"the step; leave it to the store."
            )
