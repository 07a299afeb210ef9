"""Values past 64 KiB are kept once for all who hold the same, and are gone when nobody does."""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import Command, CompiledGraph, Store, ValueTooLargeError, interrupt, step
from bide.store.bodies import INLINE
from tests.stores import KINDS, SCHEMA, opened_store
from tests.threads import one_node, thread

DOCUMENT = "word " * INLINE


class State(TypedDict, total=False):
    document: str
    page: int


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


def reads(state: State) -> dict[str, Any]:
    return {"page": state.get("page", 0) + 1}


def blobs(store: Store) -> int:
    table = "blobs" if not hasattr(store.database, "schema") else f"{SCHEMA}.blobs"
    return store.database.read(lambda tx: tx.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_threads_that_hold_the_same_document_share_it(store: Store):
    graph = one_node(State, reads, checkpointer=store)

    for name in range(5):
        graph.invoke({"document": DOCUMENT}, thread(name))

    assert blobs(store) == 1
    assert [graph.get_state(thread(name)).values["document"] for name in range(5)] == [DOCUMENT] * 5


def test_document_that_is_the_same_again_is_stored_no_second_time(store: Store):
    graph = one_node(State, lambda state: {"document": state["document"], "page": 1}, checkpointer=store)

    for _ in range(3):
        graph.invoke({"document": DOCUMENT}, thread())

    assert blobs(store) == 1


def test_blob_goes_with_the_last_thread_that_uses_it(store: Store):
    graph = one_node(State, reads, checkpointer=store)
    graph.invoke({"document": DOCUMENT}, thread("one"))
    graph.invoke({"document": DOCUMENT}, thread("two"))

    store.delete_thread("one")
    assert graph.get_state(thread("two")).values["document"] == DOCUMENT

    store.delete_thread("two")
    assert blobs(store) == 0


def test_question_answer_and_step_may_be_large(store: Store):
    def asks(state: State) -> dict[str, Any]:
        text = step(str.upper, DOCUMENT)
        return {"document": text + interrupt(DOCUMENT)}

    graph = one_node(State, asks, checkpointer=store)
    asked = graph.invoke({}, thread())

    result = graph.invoke(Command(resume=DOCUMENT), thread())

    assert asked.interrupt_value == DOCUMENT
    assert result["document"] == DOCUMENT.upper() + DOCUMENT


def test_owners_do_not_share(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'bide.db'}"
    with Store.open(url, owner="acme") as acme, Store.open(url, owner="globex") as globex:
        for name, store in (("a", acme), ("b", globex)):
            one_node(State, reads, checkpointer=store).invoke({"document": DOCUMENT}, thread(name))

        assert blobs(acme) == 2
        # and whoever opens the store sees each thread whole
        assert graph_on(acme).get_state(thread("b")).values["document"] == DOCUMENT


def graph_on(store: Store) -> CompiledGraph:
    return one_node(State, reads, checkpointer=store)


def test_value_above_the_limit_is_refused_with_its_size_and_what_to_do(tmp_path: Path):
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", largest_value=1024 * 1024) as store:
        graph = graph_on(store)

        with pytest.raises(ValueTooLargeError, match=r"2\.0 MiB .* up to 1\.0 MiB .*largest_value="):
            graph.invoke({"document": "x" * 2 * 1024 * 1024}, thread())

        assert store.threads() == []
        assert graph.invoke({"document": "short"}, thread())["page"] == 1


def test_value_above_the_limit_in_the_middle_of_a_run_fails_the_run_and_keeps_what_was(tmp_path: Path):
    def grows(state: State) -> dict[str, Any]:
        return {"document": "x" * 2 * 1024 * 1024}

    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", largest_value=1024 * 1024) as store:
        graph = one_node(State, grows, checkpointer=store)

        with pytest.raises(ValueTooLargeError):
            graph.invoke({"document": "short"}, thread())

        assert graph.get_state(thread()).values == {"document": "short"}


def test_list_that_grows_past_the_limit_is_refused_when_it_does_and_stays_as_it_was(tmp_path: Path):
    class Log(TypedDict):
        log: Annotated[list[str], operator.add]

    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", largest_value=100_000) as store:
        graph = one_node(Log, lambda state: {}, checkpointer=store)
        for _ in range(9):
            graph.invoke({"log": ["x" * 10_000]}, thread())

        with pytest.raises(ValueTooLargeError, match=r"largest_value="):
            graph.invoke({"log": ["x" * 10_000]}, thread())

        assert len(graph.get_state(thread()).values["log"]) == 9


def test_list_near_the_limit_whose_elements_are_replaced_goes_on(tmp_path: Path):
    class Board(TypedDict):
        cells: list[str]

    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", largest_value=200_000) as store:
        graph = one_node(Board, lambda state: {}, checkpointer=store)
        cells = [f"{number:06}" * 3_000 for number in range(10)]
        for turn in range(150):
            cells[turn % 10] = f"{random.Random(turn).getrandbits(60_000):x}"
            graph.invoke({"cells": list(cells)}, thread())

        assert graph.get_state(thread()).values["cells"] == cells
