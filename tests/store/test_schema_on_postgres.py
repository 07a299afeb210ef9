"""One schema and one set of queries serve both databases: here PostgreSQL reads them, as our driver renders them.

SQLite reads the same files in every other test of the store.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from bide.clock import SystemClock
from bide.errors import StoreUnavailableError
from bide.store.database import parse_queries, queries
from bide.store.migrate import migrate
from bide.store.postgres import PostgresDatabase
from bide.store.postgres_sql import Statements, checked_schema, our_tables, render, statement_of
from tests.postgres import fresh_database

SCHEMA = "Bide_1"
STATEMENTS = Statements(SCHEMA)
SHARED, OWN = queries(), queries("postgres")
NOT_TO_BE_PREPARED = {
    "expectation",
    "make_schema",
    "drop_schema",
    "begin",
    "begin_snapshot",
    "commit",
    "rollback",
    "listen",
}
"""Texts into which others are put, the ends of transactions, and what PostgreSQL prepares for nobody."""


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to a database that holds our tables in a schema of their own, and looks nowhere for others."""
    with fresh_database(postgres_dsn) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        database = PostgresDatabase(dsn, schema=SCHEMA)
        migrate(database, SystemClock().now())
        database.close()
        connection.execute("SET search_path = ''")
        yield connection


def prepare(connection: psycopg.Connection, text: str) -> None:
    """Let PostgreSQL parse and type a query without running it."""
    connection.execute(f"PREPARE probe AS {text}")
    connection.execute("DEALLOCATE probe")


def test_schema_makes_every_table_where_it_was_told(connection):
    found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (SCHEMA,)).fetchall()

    assert {name for (name,) in found} == set(our_tables())
    assert {"threads", "runs", "checkpoints", "outcomes"} <= set(our_tables())


@pytest.mark.parametrize("name", [*SHARED, *(name for name in OWN if name not in NOT_TO_BE_PREPARED)])
def test_query_prepares(connection, name):
    text = STATEMENTS.plain(name).text.decode()

    try:
        prepare(connection, text)
    except psycopg.Error as error:
        pytest.fail(f"PostgreSQL refuses {name}: {error}\n{text}")


@pytest.mark.parametrize("name", SHARED)
def test_query_that_must_find_a_row_prepares(connection, name):
    prepare(connection, STATEMENTS.expecting(name).text.decode())

    assert STATEMENTS.expecting(name).params == STATEMENTS.plain(name).params


@pytest.mark.parametrize("broken", ["SELECT nothing FROM nowhere", "SELEC 1", "SELECT length(:a) WHERE :a > 1"])
def test_query_that_postgres_refuses_is_noticed(connection, broken):
    with pytest.raises(psycopg.Error):
        prepare(connection, statement_of(render(broken)).text.decode())


def test_only_the_feed_is_asked_for_in_another_way_than_on_sqlite():
    """Where writers do not take turns, positions are not enough: see postgres/feed.sql."""
    assert SHARED, "there are no queries"
    assert SHARED.keys() & OWN.keys() == {"feed_end", "feed_scan", "read_feed", "feed_strays", "import_events"}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("SELECT :a, :b, :a;", "SELECT $1, $2, $1"),
        ("SELECT x::text WHERE y = :y", "SELECT x::text WHERE y = $1"),
        ("SELECT :n::bigint", "SELECT $1::bigint"),
        ("SELECT ':a', 'it''s :b', \":c\"", "SELECT ':a', 'it''s :b', \":c\""),
        ("-- keeps :this\nSELECT /* and :that */ 1", "-- keeps :this\nSELECT /* and :that */ 1"),
        ("SELECT 1 /* lock: skip locked */", "SELECT 1 FOR UPDATE SKIP LOCKED"),
        ("SELECT 1 /* lock: */", "SELECT 1 FOR UPDATE"),
        ("SELECT 1 /* lock: share */", "SELECT 1 FOR SHARE"),
        ("CREATE TABLE x (y TEXT) /* sqlite: WITHOUT ROWID */;", "CREATE TABLE x (y TEXT)"),
    ],
)
def test_parameters_and_locks_are_found_where_they_are_and_nowhere_else(ours, theirs):
    assert statement_of(render(ours)).text.decode().split() == theirs.split()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("SELECT events FROM threads", 'SELECT events FROM "s".threads'),
        ("UPDATE threads SET events = events + 1", 'UPDATE "s".threads SET events = events + 1'),
        ("DELETE FROM runs WHERE runs.epoch = 1", 'DELETE FROM "s".runs WHERE runs.epoch = 1'),
        ("INSERT INTO events (number) VALUES (1)", 'INSERT INTO "s".events (number) VALUES (1)'),
        ("ON CONFLICT DO UPDATE SET items = 1", "ON CONFLICT DO UPDATE SET items = 1"),
        ("SELECT 1 FROM threads t JOIN runs r", 'SELECT 1 FROM "s".threads t JOIN "s".runs r'),
    ],
)
def test_tables_are_named_with_their_schema_and_columns_are_not(ours, theirs):
    assert render(ours, "s") == theirs


@pytest.mark.parametrize("value", [None, 0, -5, 2**62, "", "ä'\"\\", b"", b"\x00\xff"])
def test_value_comes_back_as_it_was_whatever_it_is(connection, value):
    typed = "bytea" if isinstance(value, bytes) else "bigint" if isinstance(value, int) else "text"
    statement = statement_of(f"SELECT :value::{typed}")

    values, formats = statement.bind({"value": value})
    result = connection.pgconn.exec_params(statement.text, values, None, formats, 1)

    expected = None if value is None else value if isinstance(value, bytes) else None
    if typed == "bigint":
        assert int.from_bytes(result.get_value(0, 0), signed=True) == value
    else:
        assert result.get_value(0, 0) == (value.encode() if isinstance(value, str) else expected)


@pytest.mark.parametrize("name", ["", "1st", 'a"b', "a b", "a;b", "x" * 64, "ä", 5])
def test_name_that_is_none_for_a_schema_is_refused(name):
    with pytest.raises(StoreUnavailableError, match="is no name for a schema: use a–z, A–Z, 0–9 and _"):
        checked_schema(name)


def test_part_stands_in_every_query_that_names_it_and_is_none_itself():
    part = "-- part: all\n-- Of both.\nSELECT a\nFROM t\n\n"
    text = f"{part}-- name: one\n/* part: all */\nWHERE a = :a\n\n-- name: every\n/* part: all */\n"

    assert parse_queries(text) == {"one": "SELECT a\nFROM t\nWHERE a = :a", "every": "SELECT a\nFROM t"}


def test_part_that_is_not_in_the_file_is_missed_when_it_is_read():
    with pytest.raises(KeyError, match="elsewhere"):
        parse_queries("-- name: one\n/* part: elsewhere */\n")
