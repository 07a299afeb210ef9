"""One schema and one set of queries serve both databases: here PostgreSQL reads them.

SQLite reads the same files in every other test of the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import fresh_database

SQL = Path(__file__).resolve().parents[2] / "src" / "bide" / "store" / "sql"

# What a parameter may not be found in, then the parameter. The lookbehind keeps `::type` from reading as `:type`.
TOKEN = re.compile(
    r"""
      (?P<keep> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$\w*\$.*?\$\w*\$ )
    | (?<![:\w]) : (?P<parameter>[a-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
ROW_LOCK = re.compile(r"/\*\s*lock:\s*(?P<kind>[a-z ]*?)\s*\*/", re.IGNORECASE)


def named_queries(text: str) -> dict[str, str]:
    """Split a file at its `-- name: …` lines; a name that comes twice would hide the first query."""
    parts = re.split(r"^--\s*name:\s*(\w+)\s*$", text, flags=re.MULTILINE)
    names = parts[1::2]
    repeated = {name for name in names if names.count(name) > 1}
    assert not repeated, f"Two queries have the same name: {sorted(repeated)}"
    return dict(zip(names, parts[2::2], strict=True))


def in_postgres(query: str) -> str:
    """Turn `:name` into `$1`, `$2`, … and the lock comment into the row lock that SQLite does not have."""
    order: list[str] = []

    def replace(token: re.Match[str]) -> str:
        if token["parameter"] is None:
            return token["keep"]
        if token["parameter"] not in order:
            order.append(token["parameter"])
        return f"${order.index(token['parameter']) + 1}"

    locked = ROW_LOCK.sub(lambda lock: f"FOR UPDATE {lock['kind']}", query)
    return TOKEN.sub(replace, locked).strip().rstrip(";")


def prepare(connection: psycopg.Connection, query: str) -> None:
    """Let PostgreSQL parse and type a query without running it."""
    connection.execute(f"PREPARE probe AS {in_postgres(query)}")
    connection.execute("DEALLOCATE probe")


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to a database that holds our schema and nothing else."""
    with fresh_database(postgres_dsn) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute((SQL / "schema.sql").read_text(encoding="utf-8"))
        yield connection


# Read when the tests are collected, so that each query is a test; a missing file is a failure of its own, below.
FILES = [file for file in sorted(SQL.glob("*.sql")) if file.name != "schema.sql"]
QUERIES = named_queries("\n".join(file.read_text(encoding="utf-8") for file in FILES))


def test_there_are_queries_to_prepare():
    assert QUERIES, f"No `-- name:` line was found in {SQL}"


def test_schema_makes_tables(connection):
    found = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()

    assert found is not None
    assert found[0] > 0


@pytest.mark.parametrize("name", QUERIES)
def test_query_prepares(connection, name):
    try:
        prepare(connection, QUERIES[name])
    except psycopg.Error as error:
        pytest.fail(f"PostgreSQL refuses {name}: {error}\n{in_postgres(QUERIES[name])}")


@pytest.mark.parametrize("broken", ["SELECT nothing FROM nowhere", "SELEC 1", "SELECT length(:a) WHERE :a > 1"])
def test_query_that_postgres_refuses_is_noticed(connection, broken):
    with pytest.raises(psycopg.Error):
        prepare(connection, broken)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("SELECT :a, :b, :a;", "SELECT $1, $2, $1"),
        ("SELECT x::text WHERE y = :y", "SELECT x::text WHERE y = $1"),
        ("SELECT :n::bigint", "SELECT $1::bigint"),
        ("SELECT ':a', 'it''s :b', \":c\"", "SELECT ':a', 'it''s :b', \":c\""),
        ("-- keeps :this\nSELECT /* and :that */ 1", "-- keeps :this\nSELECT /* and :that */ 1"),
        ("SELECT 1 /* lock: skip locked */", "SELECT 1 FOR UPDATE skip locked"),
        ("SELECT 1 /* lock: */", "SELECT 1 FOR UPDATE"),
    ],
)
def test_parameters_are_found_where_they_are_and_nowhere_else(ours, theirs):
    assert in_postgres(ours).split() == theirs.split()


def test_names_split_the_file_and_keep_their_why():
    text = "-- a header\n\n-- name: one\n-- why\nSELECT 1;\n\n-- name: two\nSELECT 2;\n"

    assert list(named_queries(text)) == ["one", "two"]
    assert "-- why" in named_queries(text)["one"]
