"""A harness lets the process die at any write, and another one take its place."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from bide import START, StateGraph, Store, interrupt, step
from bide.errors import StoreUnavailableError
from bide.testing import Crashed, Harness
from bide.testing.fixtures import VARIABLE


class Order(TypedDict, total=False):
    total: int
    approved: bool


class Shop:
    """Charges an order, and asks whether it may be shipped; remembers every charge that was made."""

    def __init__(self) -> None:
        self.charges: list[int] = []
        self.memory: list[Any] = []

    def charge(self, state: Order) -> Order:
        step(self.charges.append, state["total"])
        return {}

    def approve(self, state: Order) -> Order:
        return {"approved": interrupt("ship it?")}

    @property
    def graph(self) -> Any:
        builder = StateGraph(Order).add_sequence([("charge", self.charge), ("approve", self.approve)])
        return builder.add_edge(START, "charge").compile(name="orders")


BEFORE_THE_CHARGE = ["claim:begun", "claim:written", "claim:committed", "enter:begun", "enter:written"]
AFTER_THE_CHARGE = ["journal:committed", "commit:begun", "commit:open_wait", "commit:end_run", "commit:written"]


@pytest.mark.parametrize("point", [*BEFORE_THE_CHARGE, "enter:committed", *AFTER_THE_CHARGE, "commit:committed"])
def test_run_goes_on_in_another_process_wherever_the_first_one_died(point: str, any_store: Store):
    shop = Shop()
    with Harness([shop.graph], store=any_store) as harness:
        run = harness.start("orders", {"total": 5})

        with harness.crash_at(point):
            harness.run_until_idle()
        harness.run_until_idle()
        harness.assert_waiting(run, "question", at="approve")
        harness.answer(run, True)
        harness.run_until_idle()

        harness.assert_done(run, total=5, approved=True)
        assert shop.charges == [5]
        harness.assert_sound()


def test_step_that_was_made_and_not_written_down_is_made_again():
    shop = Shop()
    with Harness([shop.graph]) as harness:
        harness.start("orders", {"total": 5})

        with harness.crash_at("journal:written"):
            harness.run_until_idle()
        harness.run_until_idle()

        assert shop.charges == [5, 5]


def test_run_is_left_leased_until_another_worker_takes_it_over():
    with Harness([Shop().graph]) as harness:
        run = harness.start("orders", {"total": 5})

        with harness.crash_at("enter:committed"):
            harness.run_until_idle()
        left = harness.thread(run)
        first = harness.store.run(run.thread_id, run.run_id)
        harness.run_until_idle()

        assert left.status == "running"
        assert first is not None
        assert first.worker_id != harness.store.worker_id
        assert "run.reaped" in [event.kind for event in harness.store.events(run.thread_id)]


def test_answer_whose_caller_died_before_the_commit_is_not_there():
    with Harness([Shop().graph]) as harness:
        run = harness.start("orders", {"total": 5})
        harness.run_until_idle()

        with harness.crash_at("wake:written"):
            harness.answer(run, True)
        harness.assert_waiting(run, "question")
        with harness.crash_at("wake:committed"):
            harness.answer(run, False)
        harness.run_until_idle()

        harness.assert_done(run, approved=False)


def test_start_whose_caller_died_after_the_commit_is_not_made_twice():
    with Harness([Shop().graph]) as harness:
        with harness.crash_at("start:committed"):
            harness.start("orders", {"total": 5}, key="order 7")

        again = harness.start("orders", {"total": 5}, key="order 7")

        assert not again.is_new
        assert len(harness.app.list()) == 1


def test_third_visit_of_a_place_can_be_meant():
    with Harness([Shop().graph]) as harness:
        for total in (1, 2, 3):
            harness.start("orders", {"total": total})

        with harness.crash_at("enter:written", visit=3):
            harness.run_until_idle()

        assert sorted(thread.status.value for thread in harness.app.list()) == ["running", "waiting", "waiting"]


def test_place_that_is_not_reached_is_told_with_those_that_were():
    with Harness([Shop().graph]) as harness:
        harness.start("orders", {"total": 5})

        with pytest.raises(AssertionError) as told, harness.crash_at("journal:lost"):
            harness.run_until_idle()
        with pytest.raises(AssertionError, match="It wrote nothing"), harness.crash_at("commit:written"):
            pass

    assert "did not come to 'journal:lost'" in str(told.value)
    assert "journal:write_journal" in str(told.value)


def test_error_in_the_block_is_not_taken_for_a_crash():
    with Harness([Shop().graph]) as harness, pytest.raises(ZeroDivisionError), harness.crash_at("commit:written"):
        raise ZeroDivisionError


def test_dead_process_reaches_the_database_no_more():
    with Harness([Shop().graph]) as harness:
        before = harness.app

        harness.crash()

        with pytest.raises(Crashed):
            before.start("orders", {"total": 5})
        assert harness.app.list() == []


def test_newer_code_can_be_brought_along():
    def ship(state: Order) -> Order:
        return {"approved": interrupt("ship it?"), "total": 0}

    shop = Shop()
    newer = StateGraph(Order).add_sequence([("charge", shop.charge), ("approve", ship)]).add_edge(START, "charge")
    with Harness([shop.graph]) as harness:
        run = harness.start("orders", {"total": 5})
        harness.run_until_idle()

        harness.restart([newer.compile(name="orders")])
        harness.answer(run, True)
        harness.run_until_idle()

        harness.assert_done(run, total=0)


def test_fixture_for_postgresql_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    monkeypatch.delenv(VARIABLE, raising=False)

    with pytest.raises(StoreUnavailableError, match=VARIABLE):
        request.getfixturevalue("postgres_store")
