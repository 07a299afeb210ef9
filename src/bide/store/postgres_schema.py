"""Making and recognising our tables in PostgreSQL, in plain transactions."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from bide.errors import StoreFormatError
from bide.store.database import Transaction, queries, sql_text, statements
from bide.store.postgres_sql import Statements, our_tables, quoted, render
from bide.store.postgres_transaction import PostgresTransaction
from bide.store.postgres_wire import Wire

T = TypeVar("T")

logger = logging.getLogger("bide.store")


class PostgresSchema:
    """The part of a database that `migrate` needs."""

    path: str

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self._is_opened = False

    @abstractmethod
    def _try(self, once: Callable[[Wire], T]) -> T: ...

    @abstractmethod
    def _transaction(self, wire: Wire, name: str, begin: str = "begin") -> PostgresTransaction: ...

    def change_schema(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction in which nobody else makes or changes our tables.

        It leaves no note of its outcome, since there may be no table for it yet; whoever lost the connection runs it
        again and finds what is there.
        """

        def once(wire: Wire) -> T:
            tx = self._transaction(wire, "migrate")
            try:
                self._settle(tx)
                tx.send("hold_schema", {"schema": self.statements.schema or ""})
                value = work(tx)
                tx.commit()
            except BaseException:
                tx.take_back()
                raise
            return value

        value = self._try(once)
        self._is_opened = True
        return value

    def _settle(self, tx: Transaction) -> None:
        """Find the schema of our tables, if none was given, and stay there.

        Where a connection looks by itself may be changed by whoever shares it, and a temporary table comes first.
        """
        if self.statements.schema is None:
            row = tx.one("find_place", {})
            assert row is not None
            self.statements.settle_in(row[0])

    def is_ours(self, tx: Transaction) -> bool:
        """Say whether our tables are there; those of another program are refused."""
        row = tx.one(
            "find_schema",
            {
                "migrations": self.statements.qualified("migrations"),
                "schema": quoted(self.statements.schema) if self.statements.schema else "",
                "tables": ",".join(our_tables()),
            },
        )
        assert row is not None
        mark, table, *settings = row
        self._warn_of(settings)
        if mark == "Bide":
            return True
        if table is not None:
            raise StoreFormatError(
                f"{self.path} has a table {table!r} of another program, and Bide needs that name. Nothing was changed. "
                f"Open the store in a schema of its own, which is made if need be: Store.open(url, schema='bide')."
            )
        return False

    def make(self, tx: Transaction) -> None:
        """Make the schema, if one was named, and our tables in it, and mark them as ours."""
        schema = self.statements.schema
        if schema is not None and tx.one("schema_is_there", {"schema": schema}) != (True,):
            tx.connection.execute(queries("postgres")["make_schema"].replace(":schema", quoted(schema)))
        self.run_script(tx, sql_text("schema.sql"))
        self.run_script(tx, sql_text("postgres/schema.sql"))

    def run_script(self, tx: Transaction, script: str) -> None:
        """Run the statements of a script; names in it are looked for in our schema, for this transaction alone."""
        connection: Any = tx.connection
        if self.statements.schema is not None:
            # Temporary tables are looked for before all others, unless they are named.
            tx.run("look_only_in", {"schema": f"{quoted(self.statements.schema)}, pg_temp"})
            connection = tx.connection
        for statement in statements(script):
            connection.execute(render(statement))

    def _warn_of(self, settings: list[str]) -> None:
        """Say it aloud when the server is set up to forget what it has acknowledged."""
        names = ("fsync", "synchronous_commit", "full_page_writes")
        off = [name for name, value in zip(names, settings, strict=True) if value == "off"]
        if off:
            logger.warning(
                "%s runs with %s switched off, so what it has acknowledged may be lost when the machine fails. Switch "
                "%s on, unless this server is for tests.",
                self.path,
                in_words(off),
                "it" if len(off) == 1 else "them",
            )


def in_words(names: list[str]) -> str:
    """Write a list as a sentence has it: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
