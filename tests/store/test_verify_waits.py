"""`store.verify()` on threads that wait for the world: what can never be woken, or was woken wrongly, is named.

As in test_verify.py, each damage is done straight in the database, and must be named by the invariant that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bide import Store
from bide.store.needed import PLAIN
from bide.store.queue_rows import Answering
from bide.store.stored_rows import CONDITIONS, DELIVERIES, EVENTS, RUNS, SCHEDULES, WAITS, Table
from bide.waits.wake import Wake
from tests.runtime.world import StillClock
from tests.store.inspected import all_rows, change_body, execute, forge
from tests.store.waited import fill_waits, world_of
from tests.stores import KINDS, opened_store


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock) as opened:
        fill_waits(opened, clock)
        yield opened


def test_store_in_which_threads_wait_and_were_woken_is_sound(store):
    found = store.verify()

    assert found.is_sound, str(found)
    assert set(found.checked) >= {"runs", "waits", "conditions", "deliveries", "schedules"}
    assert store.verify(deep=False).is_sound


# ── One damage, one invariant ──────────────────────────────────────────────────────────────────────────────────────

Damage = Callable[[Store], Any]
DAMAGES: dict[str, tuple[str, str | None, Damage]] = {}


def damage(invariant: str, thread_id: str | None) -> Callable[[Damage], Damage]:
    """Say which invariant a damage breaks, and in which thread."""

    def note(do: Damage) -> Damage:
        DAMAGES[do.__name__] = invariant, thread_id, do
        return do

    return note


def wait_of(store: Store, thread_id: str) -> str:
    return str(all_rows(store, WAITS, thread_id)[0]["wait_id"])


@damage("I4", "both")
def leaf_that_is_not_there(store):
    assert execute(store, f"DELETE FROM conditions WHERE wait_id = '{wait_of(store, 'both')}' AND number = 1") == 1


@damage("I4", "pays")
def wait_whose_leaves_are_all_gone(store):
    assert execute(store, f"DELETE FROM conditions WHERE wait_id = '{wait_of(store, 'pays')}'") == 1


@damage("I4", "line")
def leaf_of_a_wait_that_needs_none(store):
    forge(store, CONDITIONS, all_rows(store, CONDITIONS, "pays")[0], wait_id=wait_of(store, "line"))


@damage("I4", "pays")
def leaf_that_is_found_under_another_key(store):
    wait_id = wait_of(store, "pays")
    assert execute(store, f"UPDATE conditions SET correlation = 'event:other' WHERE wait_id = '{wait_id}'") == 1


@damage("I4", "pays")
def leaf_of_another_kind(store):
    assert execute(store, f"UPDATE conditions SET kind = 'webhook' WHERE wait_id = '{wait_of(store, 'pays')}'") == 1


@damage("I4", "pays")
def leaf_that_shares_what_it_should_have_alone(store):
    assert execute(store, f"UPDATE conditions SET exclusive = 0 WHERE wait_id = '{wait_of(store, 'pays')}'") == 1


@damage("I4", "parent")
def leaf_that_is_closed_though_nothing_satisfied_it(store):
    assert execute(store, f"UPDATE conditions SET is_open = 0 WHERE wait_id = '{wait_of(store, 'parent')}'") == 1


@damage("I4", "both")
def wait_that_has_all_it_needs_and_is_open(store):
    row = all_rows(store, CONDITIONS, "both")[1]
    wake = store.bodies.seal.close(CONDITIONS.places["wake"](row), PLAIN.encode(Wake(2, kind="event", at=1), "wake"))
    assert execute(store, f"DELETE FROM conditions WHERE wait_id = '{row['wait_id']}' AND number = 1") == 1
    forge(store, CONDITIONS, row, is_open=0, wake=wake)


@damage("I5", "both")
def leaf_that_is_open_though_it_is_satisfied(store):
    wait_id = wait_of(store, "both")
    assert execute(store, f"UPDATE conditions SET is_open = 1 WHERE wait_id = '{wait_id}' AND number = 0") == 1


@damage("I5", "asks")
def wait_that_was_answered_at_no_moment_by_nobody(store):
    assert execute(store, "UPDATE waits SET answered_via = NULL WHERE thread_id = 'asks'") == 1


@damage("I5", "withdrawn")
def withdrawn_wait_that_does_not_say_why(store):
    assert execute(store, "UPDATE waits SET answer = NULL WHERE thread_id = 'withdrawn'") == 1


@damage("I5", "asks")
def expired_wait_with_an_answer(store):
    """The log tells the same, so that it is no second fault."""
    kinds = "UPDATE events SET kind = 'wait.expired' WHERE thread_id = 'asks' AND kind = 'wait.answered'"
    line = next(row for row in all_rows(store, EVENTS, "asks") if row["kind"] == "wait.answered")
    assert execute(store, "UPDATE waits SET status = 'expired' WHERE thread_id = 'asks'", kinds) == 1
    told = store.bodies.seal.open(EVENTS.places["body"](line), line["body"])
    row = next(row for row in all_rows(store, EVENTS, "asks") if row["kind"] == "wait.expired")
    change_body(store, EVENTS, row, "body", store.bodies.seal.close(EVENTS.places["body"](row), told))


@damage("I5", "line")
def open_wait_that_somebody_has_answered(store):
    assert execute(store, "UPDATE waits SET answered_by = 'ada' WHERE thread_id = 'line'") == 1


@damage("I5", "line")
def wake_that_is_committed_without_its_run(store):
    store.wake(wait_of(store, "line"), Answering("Ada"))
    forge_open_wait(store, "line")
    assert execute(store, "UPDATE runs SET status = 'waiting' WHERE thread_id = 'line' AND status = 'ready'") == 1


@damage("I5", "line")
def answer_that_a_run_did_not_hear_of_when_it_paused(store):
    run = next(row for row in all_rows(store, RUNS, "line") if row["status"] == "waiting")
    wait = all_rows(store, WAITS, "line")[0]
    forge(
        store,
        WAITS,
        wait,
        wait_id="settled",
        task_id="1.other",
        status="cancelled",
        answered_at=1,
        answered_via="fork",
        settled_in=run["epoch"],
    )


def forge_open_wait(store: Store, thread_id: str) -> None:
    """Let another wait of the thread be open, so that waiting itself is no fault."""
    wait = all_rows(store, WAITS, thread_id)[0]
    empty = dict.fromkeys(["answer", "answered_at", "answered_via", "answered_by", "answer_key", "settled_in"])
    forge(store, WAITS, {**wait, **empty}, wait_id="another", task_id="1.other", status="open")


@damage("I6", "paid")
def fact_that_two_have_for_themselves_alone(store):
    assert execute(store, "UPDATE deliveries SET taken_by = 'another' WHERE external_id = 'mail-1'") == 1


@damage("I6", "paid")
def fact_that_was_never_taken(store):
    assert execute(store, "UPDATE deliveries SET taken_by = NULL WHERE external_id = 'mail-1'") == 1


@damage("I6", None)
def fact_that_woke_more_than_it_is_said_to(store):
    assert execute(store, "UPDATE deliveries SET wakes = 0 WHERE external_id = 'mail-2'") == 1


@damage("I6", "late")
def leaf_with_a_fact_and_nothing_of_what_it_brought(store):
    wait_id = wait_of(store, "late")
    assert execute(store, f"UPDATE conditions SET delivery_id = 'x' WHERE wait_id = '{wait_id}' AND number = 0") == 1


@damage("I6", "paid")
def leaf_whose_wake_is_of_another_fact(store):
    assert execute(store, f"UPDATE conditions SET delivery_id = 'x' WHERE wait_id = '{wait_of(store, 'paid')}'") == 1


@damage("I6", "both")
def fact_that_was_passed_over(store):
    """It came, nobody was woken, and it is said to be matched: as if it had come between two looks."""
    here = world_of(store, store.clock)
    execute(store, f"UPDATE conditions SET is_open = 0 WHERE wait_id = '{wait_of(store, 'both')}'")
    here.app.deliver("two", 2, external_id="mail-4")
    execute(store, f"UPDATE conditions SET is_open = 1 WHERE wait_id = '{wait_of(store, 'both')}' AND number = 1")


@damage("I8", "asks")
def wake_without_an_event(store):
    """The line of the wake is gone, and those behind it have moved up."""
    line = next(row for row in all_rows(store, EVENTS, "asks") if row["kind"] == "wait.answered")
    statements = [
        f"DELETE FROM events WHERE thread_id = 'asks' AND number = {line['number']}",
        f"UPDATE events SET number = number - 1 WHERE thread_id = 'asks' AND number > {line['number']}",
        "UPDATE threads SET events = events - 1 WHERE thread_id = 'asks'",
    ]
    assert execute(store, *statements) == 1


@damage("I8", "ready")
def run_that_was_accepted_without_an_event(store):
    statements = [
        "DELETE FROM events WHERE thread_id = 'ready'",
        "UPDATE threads SET events = 0 WHERE thread_id = 'ready'",
    ]
    assert execute(store, *statements) == 1


@damage("I13", "line")
def wait_in_the_inbox_of_somebody_else(store):
    assert execute(store, "UPDATE waits SET owner = 'mallory' WHERE thread_id = 'line'") == 1


@damage("I13", None)
def leaves_without_their_wait(store):
    wait_id = wait_of(store, "late")
    assert execute(store, f"UPDATE conditions SET wait_id = 'nothing' WHERE wait_id = '{wait_id}'") == 2


@damage("I13", None)
def keys_without_their_fact(store):
    assert execute(store, "DELETE FROM deliveries WHERE external_id = 'mail-3'") == 1


@damage("I14", "line")
def queued_run_behind_nobody(store):
    store.cancel_wait(wait_of(store, "line"))
    live = next(row for row in all_rows(store, RUNS, "line") if row["status"] == "ready")
    key = f"thread_id = 'line' AND run_id = '{live['run_id']}'"
    assert execute(store, f"UPDATE runs SET status = 'cancelled' WHERE {key}") == 1


@damage("I14", "paid")
def input_that_would_be_applied_again(store):
    """As if the first checkpoint had been written without its input being used up."""
    run, ready = all_rows(store, RUNS, "paid")[0], all_rows(store, RUNS, "ready")[0]
    body = store.bodies.seal.open(RUNS.places["input"](ready), ready["input"])
    execute(store, "DELETE FROM runs WHERE thread_id = 'paid'")
    forge(store, RUNS, run, input=store.bodies.seal.close(RUNS.places["input"](run), body))


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_by_the_invariant_that_it_breaks(store, name):
    invariant, thread_id, do = DAMAGES[name]
    do(store)

    found = store.verify()

    assert {problem.invariant for problem in found.problems} == {invariant}, str(found)
    assert {problem.thread_id for problem in found.problems} == {thread_id}, str(found)
    assert all(problem.what and problem.advice for problem in found.problems)


# ── What looks odd, and is not ─────────────────────────────────────────────────────────────────────────────────────


def test_fact_that_is_still_to_be_matched_is_no_fault(store):
    here = world_of(store, store.clock)
    execute(store, f"UPDATE conditions SET is_open = 0 WHERE wait_id = '{wait_of(store, 'both')}'")
    here.app.deliver("two", 2, external_id="mail-4")
    execute(
        store,
        f"UPDATE conditions SET is_open = 1 WHERE wait_id = '{wait_of(store, 'both')}' AND number = 1",
        "UPDATE deliveries SET is_pending = 1 WHERE external_id = 'mail-4'",
    )

    assert store.verify().is_sound, str(store.verify())
    here.settle()

    assert here.app.get("both").status == "done"
    assert store.verify().is_sound, str(store.verify())


def test_leaves_that_lag_behind_a_wait_which_is_settled_are_no_fault(store):
    assert execute(store, f"UPDATE conditions SET is_open = 1 WHERE wait_id = '{wait_of(store, 'late')}'") == 2
    assert execute(store, f"UPDATE conditions SET wake = NULL WHERE wait_id = '{wait_of(store, 'late')}'") == 2

    assert store.verify().is_sound, str(store.verify())


def test_queued_run_that_is_due_is_made_ready_by_whoever_looks_next_and_is_no_fault(store, clock):
    here = world_of(store, clock)
    here.app.start("asks", {"given": 1}, thread_id="delayed", delay="1h")
    assert store.verify("delayed").is_sound, str(store.verify("delayed"))
    clock.pass_by(hours=2)

    assert store.verify("delayed").is_sound, str(store.verify("delayed"))
    here.settle()

    assert here.app.get("delayed").status == "waiting"


def test_thread_that_fell_dead_and_was_released_is_sound_all_the_way(store):
    """Five workers are lost over a run, one after the other."""
    for crash in range(5):
        execute(store, "UPDATE runs SET status = 'running', worker_id = 'lost' WHERE thread_id = 'ready'")
        store.reap()
        assert store.verify("ready").is_sound, f"after {crash}: {store.verify('ready')}"
        store.clock.pass_by(hours=1)
    assert [row["status"] for row in all_rows(store, RUNS, "ready")] == ["dead"]

    store.release("ready")

    assert store.verify("ready").is_sound, str(store.verify("ready"))
    world_of(store, store.clock).settle()
    assert store.verify().is_sound, str(store.verify())


def test_cancelled_and_replaced_threads_are_sound(store):
    here = world_of(store, store.clock)
    here.app.cancel("both")
    here.app.start("pays", {"given": 2}, thread_id="pays", if_busy="interrupt")
    here.app.cancel("parent")
    here.settle()

    assert store.verify().is_sound, str(store.verify())


# ── Bytes that are not what was written ────────────────────────────────────────────────────────────────────────────

BODIES: list[tuple[Table, str, str | None]] = [
    (WAITS, "needs", "line"),
    (WAITS, "needs", "asks"),
    (CONDITIONS, "wake", "paid"),
    (RUNS, "input", "ready"),
    (RUNS, "options", "ready"),
    (DELIVERIES, "body", None),
    (SCHEDULES, "body", None),
]


@pytest.mark.parametrize(("table", "column", "thread_id"), BODIES, ids=lambda part: getattr(part, "name", part))
def test_changed_byte_is_named_with_its_row(store, table, column, thread_id):
    row = next(row for row in all_rows(store, table, thread_id) if row[column] is not None)
    change_body(store, table, row, column, row[column][:-1] + bytes([row[column][-1] ^ 1]))

    found = store.verify()

    assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I12", thread_id)], str(found)
    assert table.name in found.problems[0].what


@pytest.mark.parametrize("needs", [7, {"condition": {"kind": "event"}}, {"condition": {"kind": "unheard of"}}])
def test_needs_that_are_sealed_and_mean_nothing_are_named(store, needs):
    row = all_rows(store, WAITS, "pays")[0]
    sealed = store.bodies.seal.close(WAITS.places["needs"](row), PLAIN.encode(needs, "needs"))
    change_body(store, WAITS, row, "needs", sealed)

    found = store.verify()

    assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I12", "pays")], str(found)
