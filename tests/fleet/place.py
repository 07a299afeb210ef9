"""Where a fleet works: a file, or a schema of a server; the ledger lies beside it, outside of the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, NamedTuple, Self

from bide import Store
from tests.faults.ledger import Ledger
from tests.stores import SCHEMA

Query = Callable[..., list[tuple[Any, ...]]]
"""Runs a query of the test's own, on a connection of the test's own."""

BOOKINGS = "CREATE TABLE {prefix}bookings (parcel TEXT NOT NULL, what TEXT NOT NULL)"


class Place(NamedTuple):
    """One store and one ledger, as every process of a fleet is told of them."""

    url: str
    folder: str
    lease: float = 30.0

    @property
    def is_file(self) -> bool:
        return self.url.startswith("sqlite")

    @property
    def ledger(self) -> Ledger:
        return Ledger(Path(self.folder) / "ledger.jsonl")

    @property
    def insert_booking(self) -> str:
        mark = "?" if self.is_file else "%s"
        return f"INSERT INTO {self.prefix}bookings (parcel, what) VALUES ({mark}, {mark})"

    @property
    def prefix(self) -> str:
        return "" if self.is_file else f"{SCHEMA}."

    def open(self, **options: Any) -> Store:
        return Store.open(self.url, schema=None if self.is_file else SCHEMA, lease=self.lease, **options)

    def prepare(self) -> Place:
        """Make the tables, ours and the shop's own."""
        with self.open() as store:
            make = BOOKINGS.format(prefix=self.prefix)
            store.database.write("prepare", lambda tx: tx.connection.execute(make) and None)
        return self

    def is_free(self) -> bool:
        """Say whether nobody writes right now. A file belongs to whoever writes, also while that process is stopped."""
        if not self.is_file:
            return True
        path = self.url.removeprefix("sqlite:///")
        return all(is_unlocked(path + ending) for ending in ("-next-lock", "-lock"))

    @contextmanager
    def looking(self) -> Iterator[Query]:
        """Look into the database past the store."""
        if self.is_file:
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None)) as file:
                yield lambda query, *given: file.execute(query, given).fetchall()
            return
        import psycopg

        with psycopg.connect(self.url, options=f"-c search_path={SCHEMA}", autocommit=True) as server:
            yield lambda query, *given: fetched(server.execute(in_their_words(query), given))


def is_unlocked(path: str) -> bool:
    """Say whether nobody has locked a file."""
    with open(path, "rb") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
        return True


def in_their_words(query: str) -> str:
    """Return a query as the driver of PostgreSQL wants it."""
    return query.replace("%", "%%").replace("?", "%s")


def fetched(cursor: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query; a statement for its effect has none."""
    return cursor.fetchall() if cursor.description else []


class Places:
    """One empty place after the other, in a folder of its own; on a server all share one schema, since it takes longer
    to make its tables than to tell a story."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn
        self.count = 0
        self._stack = ExitStack()
        self._wipe: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        if self.dsn:
            from tests.postgres import fresh_database
            from tests.stores import wiping

            self.dsn = self._stack.enter_context(fresh_database(self.dsn))
            self._wipe = self._stack.enter_context(wiping(self.dsn))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def new(self, lease: float = 30.0) -> Place:
        """Give the next place; the last one is no more."""
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        if self._wipe is not None:
            self._wipe()
        return Place(self.dsn or f"sqlite:///{folder / 'bide.db'}", str(folder), lease).prepare()
