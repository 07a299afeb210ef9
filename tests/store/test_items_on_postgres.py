"""The queries of the long-term store mean the same in both databases: here PostgreSQL runs them.

There is no PostgreSQL store yet, so the requests are performed in a transaction of this file's own. SQLite is the
model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bide.codec import Codec
from bide.store.item_checks import request_of
from bide.store.item_memory import InMemoryStore
from bide.store.item_ops import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from bide.store.item_requests import SWEPT_BY_A_PUT, Visit, drop_expired, perform, refresh
from tests.postgres import fresh_database
from tests.store.conftest import FakeClock
from tests.store.test_schema_on_postgres import QUERIES, ROW_LOCK, SQL, TOKEN

CODEC = Codec()


class PostgresTransaction:
    """Named queries on one connection, as `bide.store.database.Transaction` wants them."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def run(self, query: str, params: Mapping[str, Any]) -> int:
        return self.connection.execute(named(query), params).rowcount

    def one(self, query: str, params: Mapping[str, Any]) -> tuple[Any, ...] | None:
        return self.connection.execute(named(query), params).fetchone()

    def all(self, query: str, params: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        return self.connection.execute(named(query), params).fetchall()


def named(query: str) -> str:
    """Return a query with the parameters and the row locks of PostgreSQL."""
    locked = ROW_LOCK.sub(lambda lock: f"FOR UPDATE {lock['kind']}", QUERIES[query])
    return TOKEN.sub(lambda token: token["keep"] or f"%({token['parameter']})s", locked)


@pytest.fixture(scope="module")
def connection(postgres_dsn: str) -> Iterator[psycopg.Connection]:
    with fresh_database(postgres_dsn) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute((SQL / "schema.sql").read_text(encoding="utf-8"))
        yield connection


def batch(connection: psycopg.Connection, ops: list[Op], now: int) -> list[Any]:
    """Do what `ItemStore.batch` does."""
    with connection.transaction():
        visit = Visit(PostgresTransaction(connection), now, CODEC)
        results = perform([request_of(op, CODEC, None, True) for op in ops], visit)
        refresh(visit.tx, visit.touched, now)
        drop_expired(visit.tx, now, SWEPT_BY_A_PUT)
        return results


SEGMENTS = st.text(alphabet="a1.%\x00\x01\xff\ud800", min_size=1, max_size=2)
NAMESPACES = st.lists(SEGMENTS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["", "a", "b", "\x00", "ä"])
OPS = st.one_of(
    st.builds(
        PutOp,
        NAMESPACES,
        KEYS,
        st.none() | st.fixed_dictionaries({"n": st.integers(0, 3)}),
        st.none(),
        st.none() | st.sampled_from([1, 2]),
    ),
    st.builds(GetOp, NAMESPACES, KEYS, st.none() | st.booleans()),
    st.builds(
        SearchOp,
        st.lists(SEGMENTS, max_size=2).map(tuple),
        st.none() | st.fixed_dictionaries({"n": st.fixed_dictionaries({"$gte": st.integers(0, 3)})}),
        st.integers(0, 4),
        st.integers(0, 2),
        st.none(),
        st.none() | st.booleans(),
    ),
    st.builds(
        ListNamespacesOp,
        st.none() | st.tuples(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), NAMESPACES)),
        st.none() | st.integers(1, 2),
        st.integers(0, 4),
        st.integers(0, 2),
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.lists(OPS, max_size=6), st.integers(0, 90_000)), max_size=5))
def test_postgres_answers_as_sqlite_does(connection, story):
    connection.execute("TRUNCATE items")
    clock = FakeClock()
    with InMemoryStore(clock=clock) as items:
        for ops, pause in story:
            assert batch(connection, ops, clock.now()) == items.batch(ops)
            clock.advance(pause)

        everything = SearchOp((), limit=1000, refresh_ttl=False)
        assert batch(connection, [everything], clock.now()) == items.batch([everything])
