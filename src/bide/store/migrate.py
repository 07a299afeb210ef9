"""Bringing a database to the present schema: made whole when new, by numbered steps when older, refused when newer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from bide.clock import Instant
from bide.errors import StoreFormatError
from bide.store.database import SQL, Database, Transaction

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


def migrate(database: Database, now: Instant, migrations: Sequence[Migration] | None = None) -> int:
    """Bring the database to the newest schema; return its version. One transaction: all of it, or nothing."""
    steps = known_migrations() if migrations is None else migrations
    newest = steps[-1].version if steps else FIRST

    def bring(tx: Transaction) -> int:
        if not database.is_ours(tx):
            database.make(tx)
            tx.run("insert_migration", {"version": newest, "name": "schema", "now": now})
            return newest
        version = _version(tx, database.path)
        if version > newest:
            raise StoreFormatError(
                f"{database.path!r} was written by a newer Bide (schema {version}, this one knows {newest}). "
                f"Nothing was changed. Upgrade bide, or open another database."
            )
        for step in steps:
            if step.version > version:
                database.run_script(tx, step.script)
                tx.run("insert_migration", {"version": step.version, "name": step.name, "now": now})
        return newest

    return database.change_schema(bring)


def _version(tx: Transaction, path: str) -> int:
    row = tx.one("read_version", {})
    if row is None or not isinstance(row[0], int):
        raise StoreFormatError(
            f"{path!r} does not say which version of Bide wrote it, so it is damaged. Nothing was changed. Restore it "
            f"from a backup, or choose another path."
        )
    return row[0]
