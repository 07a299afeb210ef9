"""step(effect=…): what a crash in the middle means for an effect that must not be repeated."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, Done, NotDone, StateGraph, Store, interrupt, step
from bide.errors import StepError, StoreUnavailableError, UnstorableValueError
from tests.drivers import Driver
from tests.engine.ledger import Ledger
from tests.threads import one_node, thread


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def resume(graph: CompiledGraph, answer: Any = "yes") -> Any:
    return graph.invoke(Command(resume=answer), thread())


# ── Effects that must not be repeated on doubt ─────────────────────────────────────────────────────────────────────


def doubtful(store: Store, ledger: Ledger, verify: Any = None) -> CompiledGraph:
    """A thread whose worker was stopped in the middle of a `once` step."""

    def node(state: Log) -> Log:
        return {"log": [step(ledger.charge, 10, effect="once", verify=verify)]}

    graph = one_node(Log, node, checkpointer=store)
    ledger.trouble = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({"log": []}, thread())
    ledger.trouble = None
    return graph


def test_effect_that_verify_finds_done_is_not_repeated(store: Store, ledger: Ledger):
    asked = []

    def verify(key: str) -> Done:
        asked.append(key)
        return Done("found receipt")

    graph = doubtful(store, ledger, verify)

    assert graph.invoke(None, thread())["log"] == ["found receipt"]
    assert ledger.calls == [10]
    assert len(asked) == 1


@pytest.mark.parametrize("answer", [NotDone, NotDone()])
def test_effect_that_verify_finds_not_done_is_made(store: Store, ledger: Ledger, answer: Any):
    graph = doubtful(store, ledger, lambda key: answer)

    assert graph.invoke(None, thread())["log"] == ["receipt 2"]
    assert ledger.calls == [10, 10]


@pytest.mark.parametrize("verify", [None, lambda key: None], ids=["no verify", "verify does not know"])
def test_person_is_asked_about_an_effect_in_doubt(store: Store, ledger: Ledger, verify: Any):
    graph = doubtful(store, ledger, verify)

    asked = graph.invoke(None, thread())
    done = resume(graph, {"happened": True, "result": "receipt from the bank"})

    assert asked.interrupt_value["type"] == "step_in_doubt"
    assert "Did it happen?" in asked.interrupt_value["message"]
    assert done["log"] == ["receipt from the bank"]
    assert ledger.calls == [10]


def test_effect_that_a_person_says_did_not_happen_is_made(store: Store, ledger: Ledger):
    graph = doubtful(store, ledger)
    graph.invoke(None, thread())

    assert resume(graph, {"happened": False})["log"] == ["receipt 2"]


async def test_async_effect_in_doubt_is_verified_too(store: Store, ledger: Ledger):
    async def node(state: Log) -> Log:
        return {"log": [await step(ledger.acharge, 10, effect="once", verify=lambda key: Done("found"))]}

    graph = one_node(Log, node, checkpointer=store)
    ledger.trouble = OSError("line dropped")
    with pytest.raises(OSError, match="line dropped"):
        await graph.ainvoke({"log": []}, thread())

    assert (await graph.ainvoke(None, thread()))["log"] == ["found"]
    assert ledger.calls == [10]


# ── Effects in the store's own transaction ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def books(tmp_path: Path) -> Callable[[], list[int]]:
    """The rows of a table that lies in the same file as the store."""
    path = tmp_path / "bide.db"

    def rows() -> list[int]:
        with closing(sqlite3.connect(path)) as reader:
            found = [amount for (amount,) in reader.execute("SELECT amount FROM books ORDER BY amount")]
        reader.close()
        return found

    with Store.open(f"sqlite:///{path}"), closing(sqlite3.connect(path)) as writer, writer:
        writer.execute("CREATE TABLE books (amount BIGINT)")
    writer.close()
    return rows


def test_rows_and_journal_are_one_transaction(tmp_path: Path, books: Callable[[], list[int]]):
    def book(connection: Any, amount: int) -> int:
        connection.execute("INSERT INTO books VALUES (?)", (amount,))
        return amount * 2

    def node(state: Log) -> Log:
        return {"log": [step(book, 10, effect="tx"), interrupt("?")]}

    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        graph = one_node(Log, node, checkpointer=store)
        graph.invoke({"log": []}, thread())
        done = resume(graph)

    assert books() == [10]
    assert done["log"] == [20, "yes"]


@pytest.mark.parametrize("trouble", ["raises", "cannot be stored"])
def test_rows_are_taken_back_when_the_step_fails(tmp_path: Path, books: Callable[[], list[int]], trouble: str):
    def book(connection: Any, amount: int) -> Any:
        connection.execute("INSERT INTO books VALUES (?)", (amount,))
        if trouble == "raises":
            raise UnstorableValueError("no")
        return object()

    def node(state: Log) -> Log:
        return {"log": [step(book, 10, effect="tx")]}

    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        graph = one_node(Log, node, checkpointer=store)
        with pytest.raises(UnstorableValueError):
            graph.invoke({"log": []}, thread())

    assert books() == []


def test_transaction_step_needs_a_store_and_a_plain_function(store: Store, ledger: Ledger):
    with pytest.raises(StepError, match="needs a store"):
        one_node(Log, lambda state: step(ledger.charge, 1, effect="tx")).invoke({"log": []})
    with pytest.raises(StepError, match="plain function"):
        one_node(Log, lambda state: step(ledger.acharge, 1, effect="tx"), checkpointer=store).invoke({"log": []})


class Pair(TypedDict, total=False):
    left: int
    right: Any


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_step_is_not_made_while_what_it_rests_on_cannot_be_saved(driver: Driver, store: Store, durability: Any):
    made: list[str] = []
    refusals = iter([StoreUnavailableError("the disk is away")])
    commit = store.commit

    def refuse_once(*args: Any) -> None:
        for refusal in refusals:
            raise refusal
        commit(*args)

    graph = StateGraph(Pair)
    graph.add_node("first", driver.node(lambda state: {"left": 1}))
    graph.add_node("second", driver.node(lambda state: {"right": step(made.append, "made")}))
    graph.add_edge(START, "first").add_edge("first", "second")
    compiled = graph.compile(checkpointer=store)
    store.commit = refuse_once  # type: ignore[method-assign]

    with pytest.raises(StoreUnavailableError):
        driver.invoke(compiled, {}, thread(), durability=durability)

    assert made == []
    driver.invoke(compiled, None, thread())
    assert made == ["made"]
