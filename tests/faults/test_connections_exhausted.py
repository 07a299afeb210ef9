"""There are fewer connections than are wanted: nobody hangs, nothing is lost, and all of them come back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from bide import Store, step
from bide.errors import StoreBusyError
from bide.store.postgres import PostgresDatabase
from tests.faults.audit import check_nothing_lost_or_doubled
from tests.faults.operations import graph_of
from tests.faults.proxy import ChaosProxy
from tests.faults.shop import Shop, State, drive_many, prepare
from tests.threads import thread

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LIMIT = 3
SECONDS = 60
ORDERS = [f"order-{number}" for number in range(24)]


def backends(dsn: str, application: str) -> list[str]:
    """Return the states of the connections that an application has."""
    with psycopg.connect(dsn) as database:
        query = "SELECT state FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()"
        return [state for (state,) in database.execute(query, [application])]


@pytest.fixture
def limited(postgres_database: str, schema: str) -> Iterator[str]:
    """The database as a role sees it that may have three connections."""
    role = f"limited_{schema}"
    with psycopg.connect(postgres_database, autocommit=True) as database:
        database.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT {LIMIT}")
        database.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
        database.execute(f"GRANT CREATE ON DATABASE {database.info.dbname} TO {role}")
        yield make_conninfo(postgres_database, user=role)
        database.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER")
        database.execute(f"DROP OWNED BY {role}")
        database.execute(f"DROP ROLE {role}")


def hog(stack: ExitStack, dsn: str, connections: int) -> None:
    for _ in range(connections):
        stack.enter_context(psycopg.connect(dsn, application_name="hog"))


def test_many_threads_share_two_connections_and_give_them_back(postgres_database, schema, ledger):
    dsn = make_conninfo(postgres_database, application_name="few")
    with Store.open(dsn, schema=schema, most_connections=2) as store:
        prepare(store, schema)
        shop = Shop(store, ledger, schema)

        drive_many(ORDERS, len(ORDERS), shop.drive)

        assert 1 <= len(backends(postgres_database, "few")) <= 2
        assert set(backends(postgres_database, "few")) == {"idle"}
        check_nothing_lost_or_doubled(shop, postgres_database, ORDERS)
    assert backends(postgres_database, "few") == []


def test_whoever_gets_no_connection_is_told_so_and_the_next_one_gets_it(postgres_database, schema):
    is_held, may_go = Event(), Event()

    def hold(connection: Any) -> str:
        is_held.set()
        assert may_go.wait(SECONDS)
        return "held"

    def keep_the_connection(state: State) -> dict[str, Any]:
        return {"told": [step(hold, effect="tx")]}

    with Store(PostgresDatabase(postgres_database, schema=schema, most_connections=1, patience=3)) as store:
        graph = graph_of(store, keep_the_connection)
        with ThreadPoolExecutor(8) as pool:
            holder = pool.submit(graph.invoke, {"order": "1", "told": []}, thread("holder"))
            assert is_held.wait(SECONDS)
            others = [pool.submit(store.threads) for _ in range(7)]
            errors = [other.exception(SECONDS) for other in others]
            may_go.set()
            result = holder.result(SECONDS)

        assert [type(error) for error in errors] == [StoreBusyError] * 7
        assert "most_connections" in str(errors[0])
        assert result["told"] == ["held"]
        assert [row.thread_id for row in store.threads()] == ["holder"]


def test_server_that_takes_no_more_connections_refuses_a_new_store_in_words(limited, schema):
    with ExitStack() as stack:
        hog(stack, limited, LIMIT)

        with pytest.raises(StoreBusyError, match=r"no connection left.*Raise max_connections"):
            Store.open(limited, schema=schema)


def test_threads_go_on_with_the_connections_that_the_server_has_left(limited, postgres_database, schema, ledger):
    with Store.open(limited, schema=schema, most_connections=8) as store, ExitStack() as stack:
        prepare(store, schema)
        hog(stack, limited, LIMIT - 1)
        shop = Shop(store, ledger, schema)

        drive_many(ORDERS, 8, shop.drive)

        check_nothing_lost_or_doubled(shop, postgres_database, ORDERS)
    assert ledger.refusals == []


def test_thread_goes_on_when_the_server_takes_connections_again(limited, postgres_database, schema, ledger):
    with ChaosProxy(limited) as proxy, Store.open(proxy.dsn, schema=schema) as store, ExitStack() as stack:
        prepare(store, schema)
        with psycopg.connect(postgres_database, autocommit=True) as database:
            database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bide'")
        hog(stack, limited, LIMIT)
        shop = Shop(store, ledger, schema)

        with ThreadPoolExecutor(1) as pool:
            driving = pool.submit(shop.drive, "order")
            assert proxy.has_refused.wait(SECONDS)
            stack.close()
            driving.result(SECONDS)

        check_nothing_lost_or_doubled(shop, postgres_database, ["order"])
