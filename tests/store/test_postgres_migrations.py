"""In PostgreSQL too, a database is made once, brought forward in plain transactions, and never taken from others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from bide import Store
from bide.errors import StoreError, StoreFormatError, StoreUnavailableError
from bide.store.migrate import FIRST, migrate
from bide.store.postgres import PostgresDatabase
from bide.store.postgres_schema import PostgresSchema
from bide.store.postgres_sql import Statements
from tests.store.test_migrations import ADD_LABELS, BROKEN, COUNT_LABELS, NOW
from tests.store.test_postgres_fences import NEW

MANY = 6


@pytest.fixture(params=[None, "our_own"])
def schema(request: pytest.FixtureRequest) -> str | None:
    return request.param


@pytest.fixture
def database(postgres_database: str, schema: str | None) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(postgres_database, schema=schema)
    yield database
    database.close()


@pytest.fixture
def older(database: PostgresDatabase) -> PostgresDatabase:
    """A database that was made by the first version, with a thread in it."""
    migrate(database, NOW, [])
    database.write("thread", lambda tx: tx.run("insert_thread", THREAD))
    return database


THREAD = {"thread_id": "t", "uid": "u", "owner": "", "graph": "g", "now": NOW}


def rows(url: str, query: str, schema: str | None) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema or 'public'}")
        return connection.execute(query).fetchall()


def tables(url: str) -> set[tuple[str, str]]:
    query = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    return set(rows(url, query, None))


VERSIONS = "SELECT version, name FROM migrations ORDER BY version"


def test_new_database_is_made_whole_and_knows_its_version(database, postgres_database, schema):
    assert migrate(database, NOW) >= FIRST

    assert rows(postgres_database, "SELECT name, applied_at FROM migrations", schema) == [("schema", NOW)]
    assert {found for found, _ in tables(postgres_database)} == {schema or "public"}


def test_older_database_is_brought_forward_step_by_step_with_what_it_holds(older, postgres_database, schema):
    assert migrate(older, NOW, [ADD_LABELS, COUNT_LABELS]) == FIRST + 2

    assert rows(postgres_database, VERSIONS, schema) == [
        (FIRST, "schema"),
        (FIRST + 1, "add_labels"),
        (FIRST + 2, "count_labels"),
    ]
    assert rows(postgres_database, "SELECT * FROM labels", schema) == [("t", "old", None)]
    assert migrate(older, NOW, [ADD_LABELS, COUNT_LABELS]) == FIRST + 2


@pytest.mark.complaint(31)
def test_step_that_fails_takes_back_all_steps_of_the_same_call(older, postgres_database, schema):
    before = tables(postgres_database)

    with pytest.raises(StoreError, match="nowhere"):
        migrate(older, NOW, [ADD_LABELS, COUNT_LABELS, BROKEN])

    assert tables(postgres_database) == before
    assert rows(postgres_database, VERSIONS, schema) == [(FIRST, "schema")]


def test_newer_database_is_refused_with_both_versions_and_left_as_it_was(older, postgres_database, schema):
    migrate(older, NOW, [ADD_LABELS, COUNT_LABELS])

    with pytest.raises(StoreFormatError, match=rf"schema {FIRST + 2}, this one knows {FIRST + 1}.*Upgrade bide"):
        migrate(older, NOW, [ADD_LABELS])

    assert len(rows(postgres_database, VERSIONS, schema)) == 3


@pytest.mark.complaint(31)
def test_many_who_make_a_new_database_at_once_make_it_once(postgres_database, schema):
    barrier = Barrier(MANY, timeout=30)

    def open_store(_: int) -> Store:
        barrier.wait()
        return Store.open(postgres_database, schema=schema)

    with ThreadPoolExecutor(MANY) as pool:
        stores = list(pool.map(open_store, range(MANY)))
    for store in stores:
        store.close()

    assert len({store.version for store in stores}) == 1
    assert len(rows(postgres_database, VERSIONS, schema)) == 1


def test_many_who_bring_an_older_database_forward_at_once_do_it_once(older, postgres_database, schema):
    others = [PostgresDatabase(postgres_database, schema=schema) for _ in range(MANY)]
    barrier = Barrier(MANY, timeout=30)

    def bring(database: PostgresDatabase) -> int:
        barrier.wait()
        return migrate(database, NOW, [ADD_LABELS, COUNT_LABELS])

    with ThreadPoolExecutor(MANY) as pool:
        versions = list(pool.map(bring, others))
    for other in others:
        other.close()

    assert versions == [FIRST + 2] * MANY
    assert rows(postgres_database, "SELECT count(*) FROM labels", schema) == [(1,)]


@pytest.mark.parametrize("table", ["threads", "runs", "migrations", "items"])
def test_database_of_another_program_is_refused_and_left_as_it_was(postgres_database, table):
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} (theirs text)")

    with pytest.raises(StoreFormatError, match=rf"'{table}' of another program.*schema='bide'"):
        Store.open(postgres_database)

    assert tables(postgres_database) == {("public", table)}


def test_beside_another_program_a_schema_of_our_own_is_made(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE threads (theirs text)")

    with Store.open(postgres_database, schema="bide_store") as store:
        store.begin(NEW)

    assert rows(postgres_database, "SELECT count(*) FROM threads", "public") == [(0,)]
    assert rows(postgres_database, "SELECT count(*) FROM threads", "bide_store") == [(1,)]


@pytest.mark.complaint(33)
def test_two_stores_in_two_schemas_do_not_see_each_other(postgres_database):
    with Store.open(postgres_database, schema="one") as one, Store.open(postgres_database, schema="two") as two:
        one.begin(NEW)

        assert (len(one.threads()), len(two.threads())) == (1, 0)


@pytest.fixture
def poor_user(postgres_database: str) -> Iterator[tuple[str, Callable[[str], object]]]:
    """The URL of a user without any rights, and a way to run the owner's statements."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS poor_user")
        connection.execute("CREATE ROLE poor_user LOGIN")
        yield make_conninfo(postgres_database, user="poor_user"), connection.execute
        connection.execute("DROP OWNED BY poor_user CASCADE")
        connection.execute("DROP ROLE poor_user")


def test_user_who_may_not_make_tables_is_told_what_to_grant(postgres_database, poor_user):
    url, _ = poor_user
    with pytest.raises(StoreUnavailableError, match="GRANT CREATE, USAGE ON SCHEMA"):
        Store.open(url)

    assert tables(postgres_database) == set()


def test_user_who_may_not_make_a_schema_is_told_what_to_grant_and_uses_one_that_is_given(poor_user):
    url, by_owner = poor_user
    with pytest.raises(StoreUnavailableError, match=r"GRANT CREATE ON DATABASE.*CREATE SCHEMA … AUTHORIZATION"):
        Store.open(url, schema="bide")

    by_owner("CREATE SCHEMA bide AUTHORIZATION poor_user")

    with Store.open(url, schema="bide") as store:
        store.begin(NEW)
        assert len(store.threads()) == 1


def test_user_who_may_not_write_is_told_what_to_grant_and_needs_no_more_than_that(postgres_database, poor_user):
    url, by_owner = poor_user
    Store.open(postgres_database, schema="bide").close()
    by_owner("GRANT USAGE ON SCHEMA bide TO poor_user")
    with pytest.raises(StoreUnavailableError, match="GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"):
        Store.open(url, schema="bide")

    by_owner("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bide TO poor_user")

    with Store.open(url, schema="bide") as store:
        store.begin(NEW)
        assert len(store.threads()) == 1


def test_name_that_the_server_keeps_for_itself_is_refused_in_words(postgres_database):
    with pytest.raises(StoreUnavailableError, match="names that begin with pg_ for itself"):
        Store.open(postgres_database, schema="pg_bide")


def test_server_that_may_forget_what_it_acknowledged_is_warned_of(postgres_database, caplog):
    with psycopg.connect(postgres_database) as connection:
        settings = connection.execute("SELECT current_setting('fsync')").fetchone()

    with caplog.at_level(logging.WARNING, "bide.store"):
        Store.open(postgres_database).close()

    assert ("fsync" in caplog.text) == (settings == ("off",))


@pytest.mark.parametrize(
    ("off", "told"),
    [
        (
            ["fsync"],
            "with fsync switched off, so what it has acknowledged may be lost when the machine fails. Switch it",
        ),
        (["fsync", "full_page_writes"], "with fsync and full_page_writes switched off"),
        (["fsync", "synchronous_commit", "full_page_writes"], "with fsync, synchronous_commit and full_page_writes"),
    ],
)
def test_what_is_switched_off_is_told_in_a_sentence(off, told, caplog):
    schema = PostgresSchema(Statements(None))
    schema.path = "postgresql://host/database"
    names = ("fsync", "synchronous_commit", "full_page_writes")

    with caplog.at_level(logging.WARNING, "bide.store"):
        schema._warn_of(["off" if name in off else "on" for name in names])

    assert told in caplog.text
