"""The connection that a `step(effect="tx")` may use: the store's own, without the right to end its transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from bide.errors import StepError

_ENDS_IT = ("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "PREPARE", "VACUUM")
_OUTLIVES_IT = ("ATTACH", "DETACH", "PRAGMA", "SET", "RESET", "DISCARD", "LISTEN")
"""On a connection that others use afterwards."""


class BorrowedConnection:
    """Runs statements inside the store's transaction. The store commits it, together with the step's journal."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        """Run one statement; return the driver's cursor. Parameters are written as the driver wants them."""
        self._check(sql)
        cursor = self._connection.cursor()
        cursor.execute(sql, parameters)
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Any]) -> Any:
        """Run one statement for each set of parameters."""
        self._check(sql)
        cursor = self._connection.cursor()
        cursor.executemany(sql, parameters)
        return cursor

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

    def _check(self, sql: str) -> None:
        first, second = (*sql.upper().replace(";", " ").split(None, 2), "", "")[:2]
        if first in (*_ENDS_IT, *_OUTLIVES_IT) and (first, second) != ("SET", "LOCAL"):
            raise StepError(
                f"step(effect='tx') ran {first}. The transaction is the store's own, and is committed together with "
                f"the step; leave it to the store."
            )
