"""Ways in which careful readers have broken earlier versions; none of them may come back."""

from __future__ import annotations

import asyncio
import operator
import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, MemorySaver, StateGraph, Store, interrupt, step
from bide.errors import (
    InvalidUpdateError,
    LeaseLostError,
    StepError,
    StoreUnavailableError,
    ThreadBusyError,
    ThreadPausedError,
    UnknownInterruptError,
    UnstorableValueError,
)
from tests.threads import in_a_row, let_tasks_end, one_node, side_by_side, thread

PATIENCE = 30


class State(TypedDict, total=False):
    items: Annotated[list[str], operator.add]
    n: int
    x: Any


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    with MemorySaver() if request.param == "memory" else Store.open(f"sqlite:///{tmp_path}/bide.db") as store:
        yield store


# ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def make_table(store: Store) -> None:
    store.database.write("table", lambda tx: tx.connection.execute("CREATE TABLE pay (who)"))


def paid(store: Store) -> Counter[int]:
    rows = store.database.read(lambda tx: tx.connection.execute("SELECT who FROM pay").fetchall())
    return Counter(who for (who,) in rows)


def test_block_of_a_borrowed_connection_writes_once_and_harms_nobody(store: Store):
    make_table(store)

    def pay(connection: Any, who: int) -> None:
        with connection:
            connection.execute("INSERT INTO pay VALUES (?)", (who,))

    payer = one_node(State, lambda state: {"x": step(pay, state["n"], effect="tx")}, checkpointer=store)
    other = in_a_row(State, {name: lambda state: {"items": ["."]} for name in "abcdef"}, checkpointer=store)
    with ThreadPoolExecutor(12) as pool:
        runs = [pool.submit(payer.invoke, {"n": who}, thread(f"payer {who}")) for who in range(6)]
        runs += [pool.submit(other.invoke, {"items": []}, thread(f"other {number}")) for number in range(6)]

    assert [run.exception() for run in runs] == [None] * 12
    assert paid(store) == Counter(range(6))


@pytest.mark.parametrize("name", ["commit", "rollback", "close", "executescript"])
def test_borrowed_connection_cannot_end_the_transaction(store: Store, name: str):
    make_table(store)

    def pay(connection: Any) -> None:
        connection.execute("INSERT INTO pay VALUES (1)")
        getattr(connection, name)()

    graph = one_node(State, lambda state: {"x": step(pay, effect="tx")}, checkpointer=store)
    with pytest.raises(StepError, match=f"connection.{name}"):
        graph.invoke({}, thread())

    assert not paid(store)


def test_statement_that_ends_the_transaction_is_refused(store: Store):
    graph = one_node(
        State,
        lambda state: {"x": step(lambda connection: connection.execute(" commit;"), effect="tx")},
        checkpointer=store,
    )

    with pytest.raises(StepError, match="ran COMMIT"):
        graph.invoke({}, thread())


def test_same_input_after_a_failure_does_not_make_a_finished_step_again(store: Store):
    made: list[str] = []

    def node(state: State) -> State:
        step(made.append, "paid", effect="once")
        raise ValueError("the printer is on fire")

    graph = one_node(State, node, checkpointer=store)
    with pytest.raises(ValueError, match="printer"):
        graph.invoke({"n": 1}, thread())

    with pytest.raises(ThreadPausedError, match=r"stopped inside node.*1 step.*invoke\(None"):
        graph.invoke({"n": 1}, thread())

    assert made == ["paid"]


def test_same_input_after_a_failure_may_begin_anew_when_that_is_said(store: Store):
    made: list[str] = []

    def node(state: State) -> State:
        step(made.append, "paid")
        if len(made) == 1:
            raise ValueError("once")
        return {"x": "done"}

    graph = one_node(State, node, checkpointer=store)
    with pytest.raises(ValueError, match="once"):
        graph.invoke({"n": 1}, thread())

    assert graph.invoke({"n": 2}, thread(), on_paused="restart")["x"] == "done"
    assert made == ["paid", "paid"]


def test_person_who_is_asked_about_a_step_is_told_what_it_raised(store: Store):
    def pay() -> None:
        raise ValueError("card declined")

    graph = one_node(State, lambda state: {"x": step(pay, effect="once")}, checkpointer=store)
    with pytest.raises(ValueError, match="card declined"):
        graph.invoke({}, thread())

    asked = graph.invoke(None, thread()).interrupt_value

    assert "raised ValueError('card declined')" in asked["message"]
    assert "'happened'" in asked["message"]


def test_function_that_was_called_too_early_is_explained():
    graph = one_node(State, lambda state: {"x": step(len("too early"))})

    with pytest.raises(StepError, match=r"step\(charge, order\), not step\(charge\(order\)\)"):
        graph.invoke({})


async def test_step_that_is_being_written_down_when_its_run_is_cancelled_is_not_made_again(tmp_path: Path):
    made: list[str] = []
    is_keeping, may_keep = threading.Event(), threading.Event()

    class Slow(Store):
        def keep(self, lease: Any, line: Any) -> None:
            is_keeping.set()
            may_keep.wait(PATIENCE)
            super().keep(lease, line)

    async def charge() -> None:
        made.append("charged")

    async def node(state: State) -> State:
        await step(charge)
        return {"x": "done"}

    with Store.open(f"sqlite:///{tmp_path}/bide.db") as plain, Slow(plain.database) as store:
        call = asyncio.create_task(one_node(State, node, checkpointer=store).ainvoke({}, thread()))
        await asyncio.to_thread(is_keeping.wait, PATIENCE)
        call.cancel()
        asyncio.get_running_loop().call_soon(may_keep.set)
        with pytest.raises(asyncio.CancelledError):
            await call
        result = await one_node(State, node, checkpointer=store).ainvoke(None, thread())

    assert result["x"] == "done"
    assert made == ["charged"]


# ── What runs on ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_ctrl_c_does_not_free_a_thread_whose_nodes_still_run(store: Store):
    may_end, made = threading.Event(), []

    def slow(state: State) -> State:
        may_end.wait(PATIENCE)
        step(made.append, "slow")
        return {"items": ["slow"]}

    def stop(state: State) -> State:
        if not may_end.is_set():
            raise KeyboardInterrupt
        return {"items": ["stop"]}

    graph = side_by_side(State, {"slow": slow, "stop": stop}, checkpointer=store)
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({"items": []}, thread())
    with pytest.raises(ThreadBusyError):
        graph.invoke(None, thread())
    may_end.set()
    let_tasks_end()

    assert graph.invoke(None, thread())["items"] == ["slow", "stop"]
    assert made == ["slow"]


def test_step_of_a_run_that_has_ended_is_not_begun(store: Store):
    made: list[str] = []

    def node(state: State) -> State:
        store.delete_thread("t")
        step(made.append, "first")
        return {}

    with pytest.raises(LeaseLostError):
        one_node(State, node, checkpointer=store).invoke({}, thread())

    assert len(made) <= 1


@pytest.mark.parametrize("last", ["bad", "good"])
def test_value_that_cannot_be_stored_fails_its_own_task_and_no_sibling(store: Store, last: str):
    has_returned, good_runs = threading.Event(), []

    def wait_if(name: str) -> None:
        has_returned.wait(PATIENCE) if name == last else has_returned.set()

    def bad(state: State) -> State:
        wait_if("bad")
        return {"x": object()}

    def good(state: State) -> State:
        good_runs.append(1)
        wait_if("good")
        return {"items": ["good"]}

    with pytest.raises(UnstorableValueError, match=r"state\['x'\]"):
        side_by_side(State, {"bad": bad, "good": good}, checkpointer=store).invoke({"items": []}, thread())
    mended = side_by_side(State, {"bad": lambda state: {"x": 1}, "good": good}, checkpointer=store)

    assert mended.invoke(None, thread()) == {"items": ["good"], "x": 1}
    assert good_runs == [1]


# ── Questions ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_question_inside_a_task_group_is_a_pause(store: Store):
    async def ask(question: str) -> Any:
        return interrupt(question, key=question)

    async def node(state: State) -> State:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(ask("ready"))
        return {"x": asked.result()}

    graph = one_node(State, node, checkpointer=store)
    paused = await graph.ainvoke({}, thread())

    assert paused.interrupt_value == "ready"
    assert (await graph.ainvoke(Command(resume="yes"), thread()))["x"] == "yes"


def test_misspelt_update_is_an_error_of_the_node_that_asks(store: Store):
    runs: list[str] = []
    has_begun = threading.Event()

    def sibling(state: State) -> State:
        has_begun.set()
        runs.append("sibling")
        return {"items": ["sibling"]}

    def ask(state: State) -> State:
        has_begun.wait(PATIENCE)
        return {"x": interrupt("?", update={"itemz": ["typo"]})}

    graph = side_by_side(State, {"ask": ask, "sibling": sibling}, checkpointer=store)
    with pytest.raises(InvalidUpdateError, match=r"node 'ask'.*'itemz'.*Did you mean 'items'"):
        graph.invoke({"items": []}, thread())
    with pytest.raises(InvalidUpdateError):
        graph.invoke(None, thread())

    assert runs == ["sibling"]
    assert "itemz" in str(graph.get_state(thread()).tasks[0].error)


@pytest.mark.parametrize("spoil", [str.upper, lambda id_: id_[:-1]], ids=["upper case", "cut short"])
def test_map_with_a_wrong_id_is_refused_and_never_taken_for_an_answer(store: Store, spoil: Any):
    graph = side_by_side(
        State, {"a": lambda s: {"n": interrupt("a")}, "b": lambda s: {"x": interrupt("b")}}, checkpointer=store
    )
    first, second = graph.invoke({}, thread()).interrupts

    with pytest.raises(UnknownInterruptError):
        graph.invoke(Command(resume={first.id: 1, spoil(second.id): 2}), thread())

    assert len(graph.get_state(thread()).interrupts) == 2


def test_state_of_a_dataclass_may_be_asked_about_and_returned_by_a_step(store: Store):
    @dataclass
    class Order:
        item: str = "tea"
        notes: list[str] = field(default_factory=list)

    def node(order: Order) -> dict[str, Any]:
        return {"notes": [step(lambda: order).item, interrupt(order)]}

    graph = StateGraph(Order).add_node(node).add_edge(START, "node").compile(store)

    assert graph.invoke({}, thread()).interrupt_value == Order()
    assert graph.invoke(Command(resume="yes"), thread())["notes"] == ["tea", "yes"]


def test_tasks_added_by_a_goto_survive_an_edit(store: Store):
    builder = StateGraph(State).add_node("a", lambda state: {"items": ["a"]}).add_edge(START, "a")
    for name in "bc":
        builder.add_node(name, lambda state, name=name: {"items": [name]})
    builder.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    graph = builder.compile(store, interrupt_before=["b", "c"])
    graph.invoke({"items": []}, thread())

    graph.invoke(Command(resume=1, goto="c"), thread())
    graph.update_state(thread(), {"n": 3})

    assert graph.get_state(thread()).next == ("b", "c")


# ── State and store ────────────────────────────────────────────────────────────────────────────────────────────────


def test_reducer_that_changes_its_value_in_place_leaks_nothing_into_other_threads():
    def extend(old: list[str], new: list[str]) -> list[str]:
        old.extend(new)
        return old

    for checkpointer in (None, MemorySaver()):
        graph = one_node({"items": Annotated[list, extend]}, lambda state: {"items": ["x"]}, checkpointer=checkpointer)
        graph.invoke({"items": ["one"]}, thread("1"))

        assert graph.invoke({"items": ["two"]}, thread("2"))["items"] == ["two", "x"]


def test_error_whose_text_cannot_be_stored_reaches_the_caller_as_it_is(store: Store):
    def fail(state: State) -> State:
        raise ValueError("caf\udce9.txt not found")

    graph = one_node(State, fail, checkpointer=store)
    with pytest.raises(ValueError, match="not found"):
        graph.invoke({}, thread())

    assert r"caf\udce9.txt" in str(graph.get_state(thread()).tasks[0].error)


def test_relative_path_is_the_same_file_wherever_the_process_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Store.open("sqlite:///here.db") as store:
        monkeypatch.chdir(tmp_path / "elsewhere")

        one_node(State, lambda state: {"n": 1}, checkpointer=store).invoke({}, thread())

    assert not list((tmp_path / "elsewhere").iterdir())


def test_links_to_one_database_share_one_gate(tmp_path: Path):
    os.symlink(tmp_path / "real.db", tmp_path / "link.db")

    with Store.open(f"sqlite:///{tmp_path}/link.db"), Store.open(f"sqlite:///{tmp_path}/real.db"):
        assert sorted(path.name for path in tmp_path.glob("*-lock")) == ["real.db-lock", "real.db-next-lock"]


@pytest.mark.parametrize("gone", ["bide.db", "bide.db-wal"])
def test_pause_is_not_acknowledged_when_the_database_was_deleted_meanwhile(tmp_path: Path, gone: str):
    with Store.open(f"sqlite:///{tmp_path}/bide.db") as store:
        graph = one_node(State, lambda state: {"x": interrupt("?")}, checkpointer=store)
        graph.invoke({}, thread("before"))
        (tmp_path / gone).unlink()

        with pytest.raises(StoreUnavailableError, match="moved, deleted or replaced"):
            graph.invoke({}, thread("after"))
