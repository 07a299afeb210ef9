"""`bide migrate`: a database with the schema of this Bide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import Exit
from bide.cli.options import command

if TYPE_CHECKING:
    from bide.store.database import Database, Transaction


@command
def migrate(
    desk: Desk,
    check: Annotated[bool, typer.Option("--check", help="Only say whether there is something to do.")] = False,
) -> None:
    """Make a database, or bring it to the schema of this Bide. Opening a store does the same."""
    from bide.store.migrate import FIRST, known_migrations
    from bide.store.opening import open_database

    if not check:
        desk.missing = "make"
    if desk.loaded.app is not None or desk.loaded.store is not None:
        version = desk.store.version
        _tell(desk, desk.store.database, version, version, "which is current (the application has opened it)")
        return
    if check:
        desk.check_exists()
    steps = known_migrations()
    newest = steps[-1].version if steps else FIRST
    database = open_database(desk.url, schema=desk.place.schema)
    try:
        before = _version(database)
        if not check:
            _migrate(desk, database, before)
            return
        told = "which is current" if before == newest else f"and this Bide has schema {newest}: bide migrate"
        _tell(desk, database, before, before, told, newest)
    finally:
        database.close()
    if before != newest:
        raise typer.Exit(int(Exit.FAILED))


def _migrate(desk: Desk, database: Database, before: int | None) -> None:
    from bide.store.store import Store

    with Store(database) as store:
        told = "which was made" if before is None else f"brought here from schema {before}"
        _tell(desk, database, before, store.version, told if before != store.version else "which is current")


def _tell(
    desk: Desk, database: Database, before: int | None, now: int | None, told: str, newest: int | None = None
) -> None:
    document: dict[str, Any] = {"database": database.path, "before": before, "now": now}
    document["is_current"] = newest is None or now == newest
    desk.tell(document, f"{database.path}: schema {now or 'none'}, {told}.")


def _version(database: Database) -> int | None:
    def read(tx: Transaction) -> int | None:
        row = tx.one("read_version", {}) if database.is_ours(tx) else None
        return None if row is None else int(row[0])

    return database.read(read)
