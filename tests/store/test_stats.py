"""`store.stats()`: what there is, counted in one snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bide import Command, Store
from bide.store.cache import StoredCache
from bide.store.stored_rows import CHECKPOINTS
from tests.store.conftest import FakeClock
from tests.store.inspected import Counted, all_rows, execute, fill, paper_graph
from tests.store.waited import fill_waits, world_of
from tests.stores import KINDS, opened_store
from tests.threads import one_node, thread


@pytest.fixture(params=KINDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


@pytest.fixture
def store(empty: Store) -> Store:
    return fill(empty)


def test_empty_store_counts_nothing(empty):
    stats = empty.stats()

    assert (stats.threads, stats.runs, stats.checkpoints, stats.events, stats.open_waits) == (0, 0, 0, 0, 0)
    assert stats.threads_by_status == {}
    assert stats.oldest_open_wait is None
    assert stats.schema_version == empty.version


def test_everything_is_counted(store):
    StoredCache(store).put("graph", "key", b"result", None)

    stats = store.stats()

    assert stats.threads == 3
    assert stats.threads_by_status == {"done": 2, "waiting": 1}
    assert stats.runs == 3
    assert stats.checkpoints == 13
    assert stats.events == sum(len(store.events(name)) for name in ("done", "waiting", "counted"))
    assert stats.journal_lines == 1
    assert (stats.items, stats.cached_results, stats.deliveries) == (1, 1, 0)
    assert stats.langgraph_checkpoints == 0


def test_large_values_are_counted_once_for_all_who_hold_them(store):
    stats = store.stats()

    assert stats.blobs == 1
    assert stats.blob_bytes > 120_000


def test_oldest_open_wait_is_the_one_that_waits_longest(store, clock):
    first = clock.now()
    clock.advance(5000)
    paper_graph(store).invoke({"text": "", "log": []}, thread("later"))

    assert (store.stats().open_waits, store.stats().oldest_open_wait) == (2, first)

    paper_graph(store).invoke(Command(resume="Ada"), thread("waiting"))

    assert (store.stats().open_waits, store.stats().oldest_open_wait) == (1, first + 5000)


def test_thread_that_was_only_edited_is_new(empty):
    one_node(Counted, lambda state: None, checkpointer=empty).update_state(
        thread("edited"), {"count": 1}, as_node="node"
    )

    assert empty.stats().threads_by_status == {"new": 1}


def test_thread_that_ran_twice_counts_once_by_its_latest_run(empty, clock):
    graph = one_node(Counted, lambda state: {"count": 1 // state["count"]}, checkpointer=empty)
    graph.invoke({"count": 1}, thread("t"))
    clock.advance(1)
    with pytest.raises(ZeroDivisionError):
        graph.invoke({"count": 0}, thread("t"))

    assert empty.stats().threads_by_status == {"failed": 1}
    assert empty.stats().runs == 2


def test_worker_elsewhere_counts_as_alive_until_its_lease_is_over(store, clock):
    values = f"'elsewhere', 'another machine', 1, '', {clock.now() - 1}"
    alive = store.stats().workers_alive
    execute(store, f"INSERT INTO workers (worker_id, host, pid, started, lease_until) VALUES ({values})")

    assert store.stats().workers_alive == alive
    execute(store, f"UPDATE workers SET lease_until = {clock.now()} WHERE worker_id = 'elsewhere'")

    assert store.stats().workers_alive == alive + 1
    assert store.stats().workers == alive + 1


@pytest.mark.parametrize("kind", ["memory", "file", "postgres"])
def test_size_grows_with_what_is_stored(request, tmp_path, kind):
    urls = {"memory": ":memory:", "file": f"sqlite:///{tmp_path / 'bide.db'}"}
    with Store.open(urls.get(kind) or request.getfixturevalue("postgres_database")) as store:
        before = store.stats()
        fill(store)
        after = store.stats()

    assert before.bytes_total + before.bytes_log > 0
    assert after.bytes_total + after.bytes_log > before.bytes_total + before.bytes_log
    assert after.bytes_free >= 0


def test_room_that_a_deleted_thread_leaves_in_a_file_is_free(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        fill(store)
        before = store.stats().bytes_free
        store.delete_thread("done")
        store.delete_thread("waiting")

        assert store.stats().bytes_free > before + 100_000


def test_it_can_be_shown_and_given_to_programs(store):
    stats = store.stats()
    shown = {line.split("  ")[0]: line for line in str(stats).splitlines()}

    assert shown["threads"].endswith("3 (2 done, 1 waiting)")
    assert "the oldest since 2023-11-14T22:13:20+00:00" in shown["open waits"]
    assert json.loads(json.dumps(stats.as_dict()))["threads_by_status"] == {"done": 2, "waiting": 1}


def test_counting_changes_nothing_and_opens_no_body(store):
    before = all_rows(store, CHECKPOINTS, "done")
    execute(store, "UPDATE checkpoints SET body = ''")

    assert store.stats().checkpoints == 13
    assert len(before) == len(all_rows(store, CHECKPOINTS, "done"))


# ── Who waits for what, and what is to come ────────────────────────────────────────────────────────────────────────


def test_what_threads_wait_for_is_counted_by_its_kind(empty):
    fill_waits(empty)

    stats = empty.stats()

    assert stats.open_waits_by_kind == {"child": 1, "event": 4, "question": 2, "time": 2}
    assert stats.threads_by_status == {"done": 2, "failed": 1, "ready": 1, "waiting": 7}
    assert stats.queued_runs == 1


def test_thread_whose_only_run_is_not_due_is_queued_and_one_that_lost_its_workers_is_dead(empty):
    here = world_of(empty)
    here.app.start("asks", {"given": 1}, thread_id="later", delay="3h")
    here.app.start("asks", {"given": 1}, thread_id="dead")
    execute(empty, "UPDATE runs SET status = 'dead' WHERE thread_id = 'dead'")

    assert empty.stats().threads_by_status == {"dead": 1, "queued": 1}
    assert empty.stats().queued_runs == 1


def test_facts_that_are_pending_or_nobodys_are_counted(empty):
    fill_waits(empty)
    execute(empty, "UPDATE deliveries SET is_pending = 1 WHERE external_id = 'mail-1'")

    stats = empty.stats()

    assert (stats.deliveries, stats.deliveries_pending, stats.deliveries_unmatched) == (3, 1, 1)


def test_what_is_due_within_an_hour_is_counted_and_what_comes_later_is_not(empty, clock):
    here = world_of(empty)
    here.app.start("hears", {"given": 1}, thread_id="hears")
    here.settle()
    assert empty.stats().due_soon == 0

    clock.advance(3_600_000)
    assert empty.stats().due_soon == 1
    clock.advance(7 * 3_600_000)

    assert empty.stats().due_soon == 2


def test_schedules_are_counted_and_those_that_are_paused(empty):
    here = world_of(empty)
    for name in ("daily", "nightly"):
        here.app.schedule(name, "asks", "0 9 * * *", {"given": 1})
    here.app.pause_schedule("nightly")

    stats = empty.stats()

    assert (stats.schedules, stats.schedules_paused) == (2, 1)
    assert stats.due_soon == 0


def test_thread_that_was_told_to_stop_before_a_node_waits_at_a_breakpoint(empty):
    one_node(Counted, lambda state: None, checkpointer=empty, interrupt_before=["node"]).invoke(
        {"count": 1}, thread("t")
    )

    assert empty.stats().open_waits_by_kind == {"breakpoint": 1}
