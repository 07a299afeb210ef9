"""Without `schema=` a store stays in the schema where it was opened, wherever its connections look by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, TypedDict

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg_pool import ConnectionPool

from bide import Store, step
from bide.errors import StoreUnavailableError
from bide.store.postgres_wire import Wire
from tests.store.test_postgres_fences import NEW
from tests.threads import one_node, thread


class State(TypedDict):
    n: int


@pytest.fixture
def pool(postgres_database: str) -> Iterator[ConnectionPool[Any]]:
    """One connection, which a store shares with the rest of an application."""
    with ConnectionPool(postgres_database, min_size=1, max_size=1) as pool:
        yield pool


def by_others(pool: ConnectionPool[Any], *statements: str) -> None:
    with pool.connection() as connection:
        for statement in statements:
            connection.execute(statement)


def threads_in(url: str, schema: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [name for (name,) in connection.execute(f'SELECT thread_id FROM "{schema}".threads').fetchall()]


def test_search_path_that_somebody_else_changed_leads_nowhere_else(pool, postgres_database):
    Store.open(postgres_database, schema="tenant_b").close()
    with Store.open(pool) as store:
        by_others(pool, "SET search_path TO tenant_b")
        store.begin(NEW)

        assert [row.thread_id for row in store.threads()] == ["t"]
    assert threads_in(postgres_database, "public") == ["t"]
    assert threads_in(postgres_database, "tenant_b") == []


def test_temporary_table_of_a_step_does_not_stand_in_for_ours(postgres_database):
    def node(state: State) -> dict[str, int]:
        step(lambda tx: tx.execute("CREATE TEMP TABLE IF NOT EXISTS events (x int)") and 1, effect="tx")
        return {"n": state["n"] + 1}

    with Store.open(postgres_database, most_connections=1) as store:
        graph = one_node(State, node, checkpointer=store)

        assert [graph.invoke({"n": 1}, thread(name)) for name in ("t", "u")] == [{"n": 2}, {"n": 2}]


def test_temporary_tables_are_not_taken_for_ours_when_the_store_is_made(pool, postgres_database):
    by_others(pool, "CREATE TEMP TABLE threads (x int)", "CREATE TEMP TABLE migrations (x int)")

    with Store.open(pool) as store:
        store.begin(NEW)
    with Store.open(pool) as store:
        assert len(store.threads()) == 1
    assert threads_in(postgres_database, "public") == ["t"]


def test_tables_are_found_in_any_schema_that_is_looked_in(postgres_database):
    with Store.open(postgres_database) as store:
        store.begin(NEW)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA first")
        connection.execute("CREATE TABLE first.threads (theirs int)")

    with Store.open(make_conninfo(postgres_database, options="-c search_path=first,public")) as store:
        assert [row.thread_id for row in store.threads()] == ["t"]


@pytest.mark.parametrize("schema", ["Tenant B", 'a"b', r"a\1b", "50%s"])
def test_schema_that_is_looked_in_may_have_any_name(pool, postgres_database, schema):
    name = '"' + schema.replace('"', '""') + '"'
    by_others(pool, f"CREATE SCHEMA {name}", f"SET search_path TO {name}")

    with Store.open(pool) as store:
        by_others(pool, "SET search_path TO public")
        store.begin(NEW)
        assert [row.thread_id for row in store.threads()] == ["t"]


def test_schema_is_shown_only_if_it_was_given(postgres_database):
    with Store.open(postgres_database) as found, Store.open(postgres_database, schema="given") as given:
        assert "schema" not in found.database.path
        assert given.database.path.endswith(" (schema given)")


def test_finding_the_schema_is_one_round_trip_when_the_store_is_opened(postgres_database, monkeypatch):
    trips, exchange = 0, Wire.exchange

    def counted(wire: Wire, *args: Any) -> Any:
        nonlocal trips
        trips += 1
        return exchange(wire, *args)

    monkeypatch.setattr(Wire, "exchange", counted)

    def trips_of(work: Callable[[], Store]) -> int:
        before = trips
        work().close()
        return trips - before

    Store.open(postgres_database).close()

    given = trips_of(lambda: Store.open(postgres_database, schema="public"))
    assert trips_of(lambda: Store.open(postgres_database)) == given + 1


@pytest.mark.parametrize("schema", [None, "bide"])
def test_server_that_takes_no_writes_is_told_at_once_when_the_store_is_made(postgres_database, schema):
    standby = make_conninfo(postgres_database, options="-c default_transaction_read_only=on")
    begun = monotonic()

    with pytest.raises(StoreUnavailableError, match="is read-only"):
        Store.open(standby, schema=schema)

    assert monotonic() - begun < 20
