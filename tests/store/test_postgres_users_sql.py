"""The user's own SQL in `step(effect="tx")`: one transaction with the step, in the same PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import psycopg
import pytest

from bide import START, Command, StateGraph, Store, interrupt, step
from bide.errors import StepError, StoreError
from tests.threads import thread

Work = Callable[[Any], Any]


class State(TypedDict):
    n: int


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.books (amount bigint UNIQUE)")
    with Store.open(postgres_url, schema="bide") as store:
        yield store


def booked(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [amount for (amount,) in connection.execute("SELECT amount FROM public.books ORDER BY 1").fetchall()]


def pay(store: Store, work: Work) -> Any:
    """Run a node that does something in the store's transaction, and then asks."""

    def node(state: State) -> dict[str, Any]:
        return {"n": step(work, effect="tx", key="pay") + interrupt("?")}

    builder = StateGraph(State)
    builder.add_node("pay", node)
    builder.add_edge(START, "pay")
    graph = builder.compile(checkpointer=store)
    return graph, graph.invoke({"n": 0}, thread("t"))


def test_it_is_done_once_however_often_the_node_runs(store, postgres_url):
    def book(connection: Any) -> int:
        found = connection.execute("INSERT INTO public.books VALUES (%s) RETURNING amount", (7,)).fetchone()
        return int(found[0])

    graph, _ = pay(store, book)

    assert graph.invoke(Command(resume=1), thread("t"))["n"] == 8
    assert booked(postgres_url) == [7]


def test_many_rows_at_once(store, postgres_url):
    def book(connection: Any) -> int:
        connection.executemany("INSERT INTO public.books VALUES (%s)", [(1,), (2,), (3,)])
        return 3

    pay(store, book)

    assert booked(postgres_url) == [1, 2, 3]


def test_error_takes_all_of_it_back(store, postgres_url):
    def book(connection: Any) -> int:
        connection.execute("INSERT INTO public.books VALUES (1)")
        raise ValueError("no money")

    with pytest.raises(ValueError, match="no money"):
        pay(store, book)

    assert booked(postgres_url) == []


def test_statement_that_the_database_refuses_is_an_error_with_its_words(store, postgres_url):
    def book(connection: Any) -> int:
        connection.execute("INSERT INTO public.books VALUES (1), (1)")
        return 1

    with pytest.raises(StoreError, match="duplicate key"):
        pay(store, book)

    assert booked(postgres_url) == []


def test_error_that_was_caught_inside_is_told_since_nothing_can_be_written_after_it(store, postgres_url):
    def book(connection: Any) -> int:
        connection.execute("INSERT INTO public.books VALUES (1)")
        try:
            connection.execute("INSERT INTO public.books VALUES (1)")
        except psycopg.Error:
            return 1
        return 0

    with pytest.raises(StoreError, match=r"its error was caught.*Let the error out"):
        pay(store, book)

    assert booked(postgres_url) == []


@pytest.mark.parametrize("statement", ["COMMIT", "rollback;", "BEGIN", "SET search_path = x", "  start transaction"])
def test_transaction_is_left_to_the_store(store, postgres_url, statement):
    with pytest.raises(StepError, match="leave it to the store"):
        pay(store, lambda connection: connection.execute(statement) and 1)


def test_setting_for_this_transaction_alone_is_allowed(store):
    def limit(connection: Any) -> int:
        connection.execute("SET LOCAL statement_timeout = 5000")
        return 1

    assert pay(store, limit)[1]["__interrupt__"]


def test_commit_hidden_behind_another_statement_is_noticed(store, postgres_url):
    with pytest.raises(StepError, match="has ended the store's own transaction"):
        pay(store, lambda connection: connection.execute("INSERT INTO public.books VALUES (1); COMMIT") and 1)


@pytest.mark.parametrize("name", ["commit", "rollback", "cursor", "close", "transaction"])
def test_rest_of_the_connection_is_not_given_away(store, name):
    with pytest.raises(StepError, match=rf"used connection.{name}"):
        pay(store, lambda connection: getattr(connection, name)())
