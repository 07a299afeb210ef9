"""What retention does with facts from outside, with keys of starts, and with what threads wait for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bide import Retention, Store, spawn, wait_for
from bide.errors import RetentionError
from bide.store.stored_rows import CONDITIONS, DELIVERIES, WAITS
from bide.store.upkeep import prune
from bide.waits import child, event
from tests.runtime.world import StillClock, World, graph
from tests.store.inspected import LARGE, all_rows, execute
from tests.store.waited import fill_waits, world_of
from tests.stores import KINDS, opened_store

DAYS = 24


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock, retention=Retention(ttl="900d")) as opened:
        yield opened


def known_facts(store: Store) -> set[str]:
    return {row["external_id"] for row in all_rows(store, DELIVERIES)}


def keys_of_facts(store: Store) -> int:
    return execute(store, "UPDATE delivery_keys SET received_at = received_at")


def test_facts_are_kept_for_thirty_days_and_then_go_with_their_keys(store, clock):
    # Given facts that came today, one of which is what an open wait is half satisfied with,
    fill_waits(store, clock)

    # when a month is almost over, all are there,
    clock.pass_by(hours=30 * DAYS)
    store.prune()
    assert known_facts(store) == {"mail-1", "mail-2", "mail-3"}

    # and when it is over, only that one is, and nothing is left of the others.
    clock.pass_by(seconds=1)
    gone = store.prune()

    assert known_facts(store) == {"mail-2"}
    assert keys_of_facts(store) == 1
    assert gone.rows >= 2
    assert gone.bytes > 0
    assert store.verify().is_sound, str(store.verify())


def test_thread_that_waited_for_long_goes_on_though_the_facts_of_others_are_gone(store, clock):
    here = fill_waits(store, clock)
    clock.pass_by(hours=60 * DAYS)
    store.prune()

    here.app.deliver("two", 2, external_id="mail-4")
    here.settle()

    assert here.app.get("both").values["answer"] == ["one", "two"]
    clock.pass_by(hours=60 * DAYS)
    store.prune()
    assert known_facts(store) == set()
    assert store.verify().is_sound, str(store.verify())


def test_fact_that_is_still_to_be_matched_stays(store, clock):
    fill_waits(store, clock)
    execute(store, "UPDATE deliveries SET is_pending = 1 WHERE external_id = 'mail-3'")
    clock.pass_by(hours=60 * DAYS)

    store.prune()

    assert "mail-3" in known_facts(store)


def test_key_of_a_start_is_known_for_as_long_as_facts_are(store, clock):
    here = world_of(store, clock)
    first = here.app.start("asks", {"given": 1}, key="order-7")
    clock.pass_by(hours=29 * DAYS)
    store.prune()
    assert here.app.start("asks", {"given": 1}, key="order-7").run_id == first.run_id
    clock.pass_by(hours=2 * DAYS)

    store.prune()

    assert here.app.start("asks", {"given": 1}, key="order-7").run_id != first.run_id


def late_parent(store: Store, clock: StillClock) -> World:
    """A parent that spawns, waits long for something else, and then for its child."""

    def parent(state: Any) -> Any:
        made = spawn("short", {"given": 1}, key="one")
        wait_for(event("go", lookback=None))
        return {"answer": wait_for(child(made)).value.status}

    return World(store, clock, [graph(parent, "parent"), graph(lambda state: {"answer": 1}, "short")])


def test_parent_hears_how_its_child_has_ended_however_long_ago(store, clock):
    # Given a parent that has not asked yet how its child ended, long ago,
    here = late_parent(store, clock)
    here.app.start("parent", {"given": 1}, thread_id="p")
    here.settle()
    (name,) = here.app.children("p")
    assert here.app.get(name).status == "done"
    clock.pass_by(hours=90 * DAYS)
    store.prune()

    # when it asks, it hears of it,
    here.app.deliver("go", None, external_id="go")
    here.settle()

    # and then the fact may go.
    assert here.app.get("p").values["answer"] == "done"
    clock.pass_by(hours=90 * DAYS)
    store.prune()
    assert known_facts(store) == set()
    assert store.verify().is_sound, str(store.verify())


def test_fact_of_a_child_whose_parent_is_gone_goes(store, clock):
    here = late_parent(store, clock)
    here.app.start("parent", {"given": 1}, thread_id="p")
    here.settle()
    assert len(known_facts(store)) == 1
    store.delete_thread("p")
    clock.pass_by(hours=31 * DAYS)

    store.prune()

    assert known_facts(store) == set()


def test_facts_of_another_owner_stay(store, clock, tmp_path):
    world_of(store, clock).app.deliver("nobody", 1, external_id="mine")
    execute(store, "UPDATE deliveries SET owner = 'another'")
    clock.pass_by(hours=60 * DAYS)

    store.prune()

    assert known_facts(store) == {"mine"}


def test_policy_may_say_how_long_and_that_none_goes(store, clock):
    world_of(store, clock).app.deliver("nobody", 1, external_id="mine")
    clock.pass_by(hours=2)
    store.retention = Retention(ttl="900d", deliveries=None)
    store.prune()
    assert known_facts(store) == {"mine"}

    store.retention = Retention(deliveries="1h")
    store.prune()

    assert known_facts(store) == set()


def test_who_says_what_may_go_lets_no_facts_go_unless_they_are_named(store, clock):
    world_of(store, clock).app.deliver("nobody", 1, external_id="mine")
    clock.pass_by(hours=60 * DAYS)

    prune(store, keep_last=5)
    assert known_facts(store) == {"mine"}
    store.prune(deliveries="30d")

    assert known_facts(store) == set()


@pytest.mark.parametrize("said", [{"deliveries": None}, {"deliveries": 0}, {"deliveries": "soon"}])
def test_policy_that_cannot_be_meant_is_refused(said):
    with pytest.raises(RetentionError):
        Retention(**said)


# ── What waits are made of ─────────────────────────────────────────────────────────────────────────────────────────


def test_waits_that_are_let_go_take_their_conditions_along(store, clock):
    here = world_of(store, clock)
    for round_ in range(3):
        here.app.start("both", {"given": round_}, thread_id="rounds")
        here.settle()
        here.app.deliver("one", 1, external_id=f"one-{round_}")
        here.app.deliver("two", 1, external_id=f"two-{round_}")
        here.settle()
        clock.pass_by(hours=1)
    assert len(all_rows(store, WAITS, "rounds")) == 3

    prune(store, deliveries="90m")  # as long as a fact is there, so is that it was heard
    prune(store, keep_last=1)

    assert len(all_rows(store, WAITS, "rounds")) == 1
    assert len(all_rows(store, CONDITIONS, "rounds")) == 2
    assert store.verify().is_sound, str(store.verify())


def test_threads_that_wait_or_stand_in_line_are_not_at_rest(store, clock):
    fill_waits(store, clock)
    clock.pass_by(hours=1000 * DAYS)

    store.prune()

    left = {thread.thread_id for thread in store.threads()}
    assert left == {"both", "pays", "line", "parent", "ready"} | {name for name in left if name.startswith("parent:")}
    assert store.verify().is_sound, str(store.verify())


def test_input_of_a_queued_run_outlives_pruning_though_it_is_large(store, clock):
    here = fill_waits(store, clock)
    prune(store, "line", keep_last=1)

    here.app.cancel("line", run_id=here.app.runs("line")[-1].run_id)
    here.settle()

    assert store.verify().is_sound, str(store.verify())
    assert here.app.get("line").values["given"] == LARGE


def test_deleted_thread_leaves_no_condition_behind(store, clock):
    fill_waits(store, clock)

    for name in ("both", "paid", "line", "parent"):
        store.delete_thread(name)

    assert store.verify().is_sound, str(store.verify())
    assert world_of(store, clock).settle() is not None
    assert store.verify().is_sound, str(store.verify())


def test_child_outlives_its_deleted_parent_and_ends_well(store, clock):
    here = fill_waits(store, clock)
    (name,) = here.app.children("parent")
    store.delete_thread("parent")

    if here.app.get(name).status == "waiting":
        here.app.wake(here.app.waits(thread_id=name)[0].id, "Ada")
    here.settle()

    assert store.verify().is_sound, str(store.verify())


def test_parent_hears_that_its_child_was_deleted_while_it_lived(store, clock):
    here = fill_waits(store, clock)
    (name,) = here.app.children("parent")

    store.delete_thread(name)
    here.settle()

    assert here.app.get("parent").values["answer"] == "cancelled"
    assert store.verify().is_sound, str(store.verify())


def test_children_of_a_thread_that_is_deleted_while_it_lives_are_cancelled_with_it(store, clock):
    here = fill_waits(store, clock)
    (name,) = here.app.children("parent")

    store.delete_thread("parent")
    here.settle()

    assert here.app.get(name).status == "cancelled"
    assert store.verify().is_sound, str(store.verify())
