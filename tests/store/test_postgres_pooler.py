"""Behind a transaction-mode pooler, each transaction may be on another connection: nothing of the last one is left."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import psycopg
import pytest

from bide import START, Command, StateGraph, Store, interrupt, step
from tests.pooler import pooler
from tests.threads import thread

MANY = 6


class State(TypedDict):
    n: int


@pytest.fixture
def pooled(postgres_database: str) -> Iterator[str]:
    with pooler(postgres_database) as dsn:
        yield dsn


def graph(store: Store) -> Any:
    def add(state: State) -> dict[str, Any]:
        return {"n": step(lambda n: n + 1, state["n"])}

    def ask(state: State) -> dict[str, Any]:
        return {"n": state["n"] + interrupt("how many?")}

    builder = StateGraph(State)
    builder.add_sequence([add, ask])
    builder.add_edge(START, "add")
    return builder.compile(checkpointer=store)


@pytest.mark.complaint(30)
def test_threads_run_pause_and_go_on_while_others_share_the_connections(pooled):
    with Store.open(pooled, schema="pooled") as store, ThreadPoolExecutor(MANY) as threads:

        def live(name: str) -> int:
            asking = graph(store)
            asking.invoke({"n": 1}, thread(name))
            assert asking.get_state(thread(name)).next == ("ask",)
            return asking.invoke(Command(resume=5), thread(name))["n"]

        results = list(threads.map(live, [f"thread {number}" for number in range(MANY * 4)]))

    assert results == [7] * MANY * 4


@pytest.mark.complaint(30)
def test_several_processes_behind_the_pooler_do_not_trip_over_each_others_statements(pooled):
    with Store.open(pooled, schema="pooled") as one, Store.open(pooled, schema="pooled") as two:
        graph(one).invoke({"n": 1}, thread("t"))

        assert graph(two).invoke(Command(resume=5), thread("t"))["n"] == 7


@pytest.mark.complaint(33)
def test_schema_is_found_though_no_setting_survives_a_transaction(pooled, postgres_database):
    with Store.open(pooled, schema="pooled") as store:
        graph(store).invoke({"n": 1}, thread("t"))

    with psycopg.connect(postgres_database) as connection:
        tables = connection.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename = 'threads'").fetchall()
    assert tables == [("pooled",)]


def test_users_own_sql_is_one_transaction_with_its_step(pooled, postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE books (amount bigint)")

    def book(connection: Any, amount: int) -> int:
        connection.execute("INSERT INTO books VALUES (%s)", (amount,))
        return amount

    def pay(state: State) -> dict[str, Any]:
        return {"n": step(book, state["n"], effect="tx")}

    with Store.open(pooled, schema="pooled") as store:
        builder = StateGraph(State)
        builder.add_node(pay)
        builder.add_edge(START, "pay")
        assert builder.compile(checkpointer=store).invoke({"n": 10}, thread("t"))["n"] == 10

    with psycopg.connect(postgres_database) as connection:
        assert connection.execute("SELECT amount FROM books").fetchall() == [(10,)]
