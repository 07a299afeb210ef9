"""A database of an older Bide is brought forward by numbered steps: all of them or none, and never backward."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from bide import Store
from bide.errors import StoreError, StoreFormatError
from bide.store import migrate as migrate_module
from bide.store.migrate import FIRST, Migration, known_migrations, migrate
from bide.store.sqlite import SqliteDatabase
from tests.store.conftest import Kept

NOW = 1_700_000_000_000
PATIENCE_SECONDS = 30

ADD_LABELS = Migration(
    FIRST + 1,
    "add_labels",
    """
    -- Labels by which threads are found.
    CREATE TABLE labels (
        thread_id TEXT NOT NULL,
        label     TEXT NOT NULL   -- one of many
    );
    INSERT INTO labels SELECT thread_id, 'old' FROM threads;
    """,
)
COUNT_LABELS = Migration(FIRST + 2, "count_labels", "ALTER TABLE labels ADD COLUMN count BIGINT;")
BROKEN = Migration(FIRST + 3, "broken", "CREATE TABLE halfway (x TEXT);\nINSERT INTO nowhere VALUES (1);")


def rows(database: SqliteDatabase, sql: str) -> list[Any]:
    return database.read(lambda tx: tx.connection.execute(sql).fetchall())


def applied(database: SqliteDatabase) -> list[tuple[int, str]]:
    return rows(database, "SELECT version, name FROM migrations ORDER BY version")


def dump(database: SqliteDatabase) -> list[str]:
    return database.read(lambda tx: list(tx.connection.iterdump()))


@pytest.fixture
def older(kept: Kept, database: SqliteDatabase) -> SqliteDatabase:
    """A database that was made by the first version, with threads in it."""
    assert applied(database) == [(FIRST, "schema")]
    return database


def test_new_database_is_made_whole_and_knows_its_version(database):
    version = migrate(database, NOW)

    assert version == FIRST
    assert applied(database) == [(FIRST, "schema")]
    assert rows(database, "SELECT applied_at FROM migrations") == [(NOW,)]


@pytest.mark.complaint(46)
def test_older_database_is_brought_forward_step_by_step_with_what_it_holds(older, kept):
    version = migrate(older, NOW, [ADD_LABELS, COUNT_LABELS])

    assert version == FIRST + 2
    assert applied(older) == [(FIRST, "schema"), (FIRST + 1, "add_labels"), (FIRST + 2, "count_labels")]
    assert sorted(rows(older, "SELECT * FROM labels")) == [("finished", "old", None), ("waiting", "old", None)]


def test_step_that_was_taken_is_not_taken_again(older):
    migrate(older, NOW, [ADD_LABELS])
    before = dump(older)

    assert migrate(older, NOW + 1, [ADD_LABELS]) == FIRST + 1

    assert dump(older) == before


def test_database_in_the_middle_gets_only_what_it_lacks(older):
    migrate(older, NOW, [ADD_LABELS])

    migrate(older, NOW + 1, [ADD_LABELS, COUNT_LABELS])

    assert len(rows(older, "SELECT * FROM labels")) == 2
    assert rows(older, "SELECT version, applied_at FROM migrations WHERE version > 1") == [
        (FIRST + 1, NOW),
        (FIRST + 2, NOW + 1),
    ]


@pytest.mark.complaint(31)
def test_step_that_fails_takes_back_all_steps_of_the_same_call(older, kept):
    before = dump(older)

    with pytest.raises(StoreError, match="no such table: nowhere"):
        migrate(older, NOW, [ADD_LABELS, COUNT_LABELS, BROKEN])

    assert dump(older) == before
    older.close()
    kept.check()


def test_step_that_is_mended_is_taken_from_where_the_database_stands(older):
    with pytest.raises(StoreError):
        migrate(older, NOW, [ADD_LABELS, BROKEN])

    migrate(older, NOW, [ADD_LABELS, BROKEN._replace(script="CREATE TABLE halfway (x TEXT);")])

    assert [name for _, name in applied(older)] == ["schema", "add_labels", "broken"]
    assert rows(older, "SELECT count(*) FROM halfway") == [(0,)]


def test_newer_database_is_refused_with_both_versions_and_left_as_it_was(older):
    migrate(older, NOW, [ADD_LABELS, COUNT_LABELS])
    before = dump(older)

    with pytest.raises(StoreFormatError, match=rf"schema {FIRST + 2}, this one knows {FIRST + 1}.*Upgrade bide"):
        migrate(older, NOW, [ADD_LABELS])

    assert dump(older) == before


def test_two_processes_that_open_an_older_database_bring_it_forward_once(older, path):
    others = [SqliteDatabase(str(path)) for _ in range(4)]
    barrier = Barrier(len(others), timeout=PATIENCE_SECONDS)

    def bring(database: SqliteDatabase) -> int:
        barrier.wait()
        return migrate(database, NOW, [ADD_LABELS, COUNT_LABELS])

    with ThreadPoolExecutor(len(others)) as pool:
        versions = list(pool.map(bring, others))
    for other in others:
        other.close()

    assert versions == [FIRST + 2] * 4
    assert len(rows(older, "SELECT * FROM labels")) == 2


def test_two_processes_that_make_a_new_database_make_it_once(path):
    barrier = Barrier(4, timeout=PATIENCE_SECONDS)

    def open_store(_: int) -> Store:
        barrier.wait()
        return Store.open(f"sqlite:///{path}")

    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(open_store, range(4)))

    assert {store.version for store in stores} == {stores[0].version}
    assert len(applied(stores[0].database)) == 1
    for store in stores:
        store.close()


def test_semicolons_and_dashes_inside_a_text_do_not_cut_a_statement(older):
    script = "INSERT INTO labels VALUES ('a; b', '-- no comment');"

    migrate(older, NOW, [ADD_LABELS, Migration(FIRST + 2, "odd_texts", script)])

    assert ("a; b", "-- no comment") in rows(older, "SELECT thread_id, label FROM labels")


def test_files_of_migrations_are_numbered_without_a_gap_and_say_what_they_do():
    folder = Path(migrate_module.__file__).parent / "sql" / "migrations"
    names = sorted(file.name for file in folder.glob("*.sql"))

    versions = [migration.version for migration in known_migrations()]

    assert all(re.fullmatch(r"\d{4}_[a-z0-9_]+\.sql", name) for name in names)
    assert versions == list(range(FIRST + 1, FIRST + 1 + len(names)))
