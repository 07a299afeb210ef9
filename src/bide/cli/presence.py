"""Whose database it is, and whether it is there: whoever only looks makes none, and never looks into another one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from bide.cli.exits import CliError, Exit

if TYPE_CHECKING:
    from bide.cli.desk import Place
    from bide.store import Store

Missing = Literal["refuse", "make", "imagine"]
"""What becomes of a database that is not there: an error, a new one, or an empty one in memory, for a picture."""


@contextmanager
def databases(missing: Missing, place: str) -> Iterator[None]:
    """Decide what becomes of SQLite files that are not there, while somebody's file is loaded and opens its store."""
    from bide.store import opening
    from bide.store.sqlite import SqliteDatabase

    class Present(SqliteDatabase):
        """Opens what there is."""

        def __init__(self, path: str) -> None:
            if path != ":memory:" and not os.path.exists(path):
                if missing == "refuse":
                    raise _absent(os.path.realpath(path), place)
                path = ":memory:"
            super().__init__(path)

    if missing == "make":
        yield
        return
    opening.SqliteDatabase = Present  # type: ignore[attr-defined]
    try:
        yield
    finally:
        opening.SqliteDatabase = SqliteDatabase  # type: ignore[attr-defined]


def _absent(path: str, place: str) -> CliError:
    app = "" if os.environ.get("BIDE_APP") == place else f" --app {place}"
    return CliError(
        f"There is no database {path!r} yet, which {place} names. A command that only looks does not make one; the "
        f"first start or the first worker does.",
        Exit.UNAVAILABLE,
        hints=(f"bide start GRAPH{app}", f"bide migrate{app}   (makes it, and nothing else)"),
    )


def check_only_store(own: Store, place: Place) -> None:
    """Refuse a store beside the application's own: nobody could tell which of them was meant."""
    if place.store is None or _is_same(own, place.store):
        return
    raise CliError(
        f"{place.app} has a store of its own, {own.database.path!r}, and --store (or BIDE_STORE) names another, "
        f"{_shown(place.store)}. Leave --store out, or name graphs without a store.",
        Exit.USAGE,
    )


def _is_same(own: Store, url: str) -> bool:
    from bide.store.opening import is_postgres, path_of
    from bide.store.sqlite import SqliteDatabase

    if is_postgres(url):
        # Two URLs may well mean one server: only what certainly differs is refused.
        return not isinstance(own.database, SqliteDatabase)
    path = path_of(url)
    return own.database.path == (path if path == ":memory:" else os.path.realpath(path))


def _shown(url: str) -> str:
    from bide.store.opening import is_postgres

    return "a PostgreSQL" if is_postgres(url) else repr(url)
