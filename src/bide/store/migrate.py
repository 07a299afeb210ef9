"""Bringing a database to the present schema: made whole when new, by numbered steps when older, refused when newer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from bide.clock import Instant
from bide.errors import StoreFormatError
from bide.store.database import SQL, sql_text, statements
from bide.store.sqlite import SqliteDatabase, SqliteTransaction
from bide.store.sqlite_header import APPLICATION_ID

FIRST = 1
"""The version that `schema.sql` had when it was first released; files in `migrations/` begin at the next one."""


class Migration(NamedTuple):
    """One numbered step."""

    version: int
    name: str
    script: str


@cache
def known_migrations() -> Sequence[Migration]:
    """Read the numbered files, in order."""
    found = (SQL / "migrations").glob("*.sql")
    return tuple(sorted(_migration(file.name, file.read_text(encoding="utf-8")) for file in found))


def _migration(name: str, script: str) -> Migration:
    found = re.fullmatch(r"(\d{4})_(\w+)\.sql", name)
    if found is None:
        raise StoreFormatError(f"The migration file {name!r} must be named like 0002_what_it_does.sql.")
    return Migration(int(found[1]), found[2], script)


def migrate(database: SqliteDatabase, now: Instant, migrations: Sequence[Migration] | None = None) -> int:
    """Bring the database to the newest schema; return its version. One transaction: all of it, or nothing."""
    steps = known_migrations() if migrations is None else migrations
    newest = steps[-1].version if steps else FIRST

    def bring(transaction: SqliteTransaction) -> int:
        version = _version(transaction, database.path)
        if version is None:
            _make(transaction, newest, now)
            return newest
        if version > newest:
            raise StoreFormatError(
                f"{database.path!r} was written by a newer Bide (schema {version}, this one knows {newest}). "
                f"Nothing was changed. Upgrade bide, or open another database."
            )
        for step in steps:
            if step.version > version:
                _apply(transaction, step, now)
        return newest

    return database.write("migrate", bring)


def _version(transaction: SqliteTransaction, path: str) -> int | None:
    """Return the schema's version, or None for an empty database."""
    connection = transaction.connection
    if connection.execute("PRAGMA schema_version").fetchone()[0] == 0:
        return None
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreFormatError(
            f"{path!r} is a database of another program, not of Bide. Nothing was changed. Choose another path."
        )
    row = transaction.one("read_version", {})
    if row is None or not isinstance(row[0], int):
        raise StoreFormatError(
            f"{path!r} does not say which version of Bide wrote it, so it is damaged. Nothing was changed. Restore it "
            f"from a backup, or choose another path."
        )
    return row[0]


def _make(transaction: SqliteTransaction, newest: int, now: Instant) -> None:
    connection = transaction.connection
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in statements(_for_sqlite(sql_text("schema.sql"))):
        connection.execute(statement)
    transaction.run("insert_migration", {"version": newest, "name": "schema", "now": now})


def _apply(transaction: SqliteTransaction, step: Migration, now: Instant) -> None:
    for statement in statements(_for_sqlite(step.script)):
        transaction.connection.execute(statement)
    transaction.run("insert_migration", {"version": step.version, "name": step.name, "now": now})


def _for_sqlite(script: str) -> str:
    return re.sub(r"/\* sqlite: (.*?) \*/", r"\1", script)
