"""Paused threads as the runtime sees them (Zerg): listed, found when due, resumed once, cancelled, scheduled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any, TypedDict

import pytest

from bide import (
    AlreadyAnsweredError,
    Bide,
    NotWaitingError,
    Store,
    StoreUnavailableError,
    WaitCancelled,
    ask,
    interrupt,
    sleep,
    step,
    wait_for,
)
from bide.clock import elapsed
from bide.store.postgres_sql import our_tables
from bide.waits import event, webhook
from tests.requirements.conftest import MakeWorld
from tests.requirements.graphs import in_line, thread
from tests.runtime.world import StillClock, World
from tests.stores import SCHEMA


class Job(TypedDict, total=False):
    hours: float
    seen: list[str]
    result: Any


def naps(state: Job) -> Job:
    sleep(timedelta(hours=state["hours"]))
    return {"result": "rested"}


def napping() -> Any:
    """A graph that sleeps for as long as it is told."""
    return in_line(Job, naps).compile(name="naps")


def asking() -> Any:
    """A graph that asks a person."""

    def asks(state: Job) -> Job:
        return {"result": ask("May I?")}

    return in_line(Job, asks).compile(name="asks")


# ── What is known of a paused thread ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-19", "Z0-38")
def test_thread_says_whether_it_waits_since_when_for_what_and_from_which_checkpoint(world: MakeWorld) -> None:
    here = world(asking(), napping())
    waiting = here.app.start("asks", {}, thread_id=7)
    done = here.app.start("naps", {"hours": 0})
    fresh = here.app.start("asks", {}, delay="1h")
    here.clock.pass_by(minutes=5)
    here.settle()

    paused = here.app.get(7)

    assert (paused.status, paused.next) == ("waiting", ("asks",))
    assert paused.waits[0].created_at == datetime(2027, 1, 15, 8, 5, tzinfo=UTC)
    assert paused.waits[0].waiting_for == "an answer: May I?"
    assert (here.app.get(done.thread_id).status, here.app.get(done.thread_id).waits) == ("done", ())
    assert (here.app.get(fresh.thread_id).status, here.app.get(fresh.thread_id).waits) == ("queued", ())
    assert [each.thread_id for each in here.app.list(status="waiting")] == [waiting.thread_id]


@pytest.mark.requirement("Z0-19", "Z0-35")
def test_thread_that_a_script_has_paused_is_in_the_inbox_and_goes_on_from_there(world: MakeWorld) -> None:
    graph = asking()
    here = world(graph)
    graph.invoke({}, thread("by-hand"))

    (wait,) = here.app.waits()
    here.app.wake(wait.id, "yes", by="maya")
    here.settle()

    assert graph.get_state(thread("by-hand")).values == {"result": "yes"}


@pytest.mark.requirement("Z0-20")
def test_deadline_is_kept_once_in_the_database_and_moving_it_moves_what_counts(world: MakeWorld) -> None:
    """Zerg keeps a wake time in the thread's state and in its wake condition, and looks at one of them."""

    def asks(state: Job) -> Job:
        return {"result": ask("May I?", timeout="1h", default="nobody")}

    here = world(in_line(Job, asks).compile(name="asks"))
    run = here.app.start("asks", {})
    here.settle()
    (wait,) = here.app.waits()

    assert here.app.extend(wait.id, "3h")
    here.clock.pass_by(hours=2, minutes=59)
    assert here.settle() == []
    assert here.app.wait(wait.id).deadline == datetime(2027, 1, 15, 11, 0, tzinfo=UTC)
    here.clock.pass_by(minutes=1)
    assert here.settle() == ["done"]

    assert here.app.get(run.thread_id).values == {"result": "nobody"}
    assert not here.app.extend(wait.id, "1h")


# ── Due threads ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-21")
def test_due_threads_are_found_and_resumed_and_the_others_are_left_asleep(world: MakeWorld) -> None:
    here = world(napping())
    runs = [here.app.start("naps", {"hours": hours}) for hours in (1, 1, 2, 3)]
    here.settle()
    here.clock.pass_by(hours=2)

    tended = here.app.tend()
    assert here.settle() == ["done"] * 3

    assert tended.woken == 3
    ended = [here.app.get(run.thread_id) for run in runs]
    assert [each.status for each in ended] == ["done", "done", "done", "waiting"]
    assert [each.values.get("result") for each in ended] == ["rested", "rested", "rested", None]
    assert [len(each.waits) for each in ended] == [0, 0, 0, 1]


@pytest.mark.requirement("Z0-22")
def test_many_who_look_at_the_clock_at_once_resume_a_thread_once(world: MakeWorld) -> None:
    made: list[str] = []

    def naps_and_works(state: Job) -> Job:
        sleep("1h")
        made.append("worked")
        return {"result": "rested"}

    here = world(in_line(Job, naps_and_works).compile(name="naps"))
    for _ in range(5):
        here.app.start("naps", {})
    here.settle()
    here.clock.pass_by(hours=1)
    together = Barrier(4)

    def look(_: int) -> list[str]:
        together.wait(60)
        here.app.tend()
        return [driven.outcome for driven in here.app.run_ready(most=5)]

    with ThreadPoolExecutor(4) as pool:
        outcomes = [outcome for found in pool.map(look, range(4)) for outcome in found]
    outcomes += here.settle()

    assert outcomes == ["done"] * 5
    assert made == ["worked"] * 5


@pytest.mark.requirement("Z0-22", "Z1-32")
def test_thread_that_pauses_again_after_its_resume_stays_paused(world: MakeWorld) -> None:
    """Zerg's sketch clears the flags after every resume, and so forgets the second pause."""

    def twice(state: Job) -> Job:
        sleep("1h")
        sleep("1h")
        return {"result": "rested"}

    here = world(in_line(Job, twice).compile(name="naps"))
    run = here.app.start("naps", {})
    here.settle()

    here.clock.pass_by(hours=1)
    assert here.settle() == ["waiting"]
    assert here.app.get(run.thread_id).status == "waiting"
    here.clock.pass_by(hours=1)
    assert here.settle() == ["done"]


@pytest.mark.requirement("Z0-22")
def test_thread_that_fails_after_its_time_came_is_not_tried_again_for_ever(world: MakeWorld) -> None:
    tries: list[int] = []

    def fails(state: Job) -> Job:
        sleep("1h")
        tries.append(1)
        raise RuntimeError("no such luck")

    here = world(in_line(Job, fails).compile(name="naps"))
    run = here.app.start("naps", {})
    here.settle()

    for _ in range(5):
        here.clock.pass_by(hours=1)
        here.settle()

    failed = here.app.get(run.thread_id)
    assert (failed.status, len(tries)) == ("failed", 1)
    assert "no such luck" in (failed.error or "")
    assert here.app.retry(failed.thread_id).status == "ready"
    assert here.settle() == ["failed"]
    assert len(tries) == 2


@pytest.mark.requirement("Z0-24", "Z1-07")
def test_worker_hears_of_a_fact_at_once_and_does_not_wait_for_its_next_look(any_store: Store) -> None:
    """Zerg looks once a minute at clocks, and every ten at mails. This worker would look once a minute, too."""

    def waits(state: Job) -> Job:
        return {"result": wait_for(event("paid")).value}

    app = Bide(any_store, [in_line(Job, waits).compile(name="waits")])
    began = elapsed()
    with app.worker(poll=60):
        run = app.start("waits", {})
        resting = [each.kind for each in app.follow(run.thread_id, until="rest")]
        app.deliver("paid", {"sum": 3})
        ended = [each.kind for each in app.follow(run.thread_id)]

    assert resting[-1] == "run.waiting"
    assert ended[-1] == "run.done"
    assert app.get(run.thread_id).values == {"result": {"sum": 3}}
    assert elapsed() - began < 30


# ── Wrong resumes, and cancelling ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-26", "Z1-08")
@pytest.mark.parametrize("status", ["done", "failed", "cancelled"])
def test_thread_that_is_not_paused_is_not_resumed_and_stays_what_it_is(world: MakeWorld, status: str) -> None:
    def asks(state: Job) -> Job:
        if ask("May I?") == "fail":
            raise RuntimeError("as you wish")
        return {"result": "fine"}

    here = world(in_line(Job, asks).compile(name="asks"))
    run = here.app.start("asks", {})
    here.settle()
    if status == "cancelled":
        here.app.cancel(run.thread_id)
    else:
        here.app.resume(run.thread_id, "fail" if status == "failed" else "yes")
    here.settle()
    before = list(here.app.follow(run.thread_id))

    with pytest.raises(NotWaitingError):
        here.app.resume(run.thread_id, "yes")

    assert here.app.get(run.thread_id).status == status
    assert list(here.app.follow(run.thread_id)) == before


@pytest.mark.requirement("Z0-30")
def test_cancelled_thread_waits_no_more_and_its_answer_comes_too_late(world: MakeWorld) -> None:
    here = world(asking())
    run = here.app.start("asks", {})
    here.settle()
    (wait,) = here.app.waits()

    assert here.app.cancel(run.thread_id, reason="not wanted any more", by="maya")
    with pytest.raises(AlreadyAnsweredError, match="withdrawn") as late:
        here.app.wake(wait.id, "yes")
    assert here.settle() == []

    assert late.value.outcome.status == "cancelled"
    assert here.app.waits() == []
    assert not here.app.cancel(run.thread_id)
    (line,) = [each for each in here.app.follow(run.thread_id) if each.kind == "run.cancelled"]
    assert (line.data["reason"], line.data["by"]) == ("not wanted any more", "maya")


@pytest.mark.requirement("Z0-30")
def test_question_may_be_withdrawn_and_its_node_decides_what_then(world: MakeWorld) -> None:
    def asks(state: Job) -> Job:
        try:
            return {"result": ask("May I?")}
        except WaitCancelled:
            return {"result": "then not"}

    here = world(in_line(Job, asks).compile(name="asks"))
    run = here.app.start("asks", {})
    here.settle()

    assert here.app.cancel(wait_id=here.app.waits()[0].id, by="maya")
    here.settle()

    assert here.app.get(run.thread_id).values == {"result": "then not"}


# ── What starts threads ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-39")
def test_schedule_starts_a_new_thread_each_time_and_webhooks_and_events_go_to_who_waits(world: MakeWorld) -> None:
    def reports(state: Job) -> Job:
        both = [wait_for(webhook("numbers")).value, wait_for(event("approved")).value]
        return {"result": both}

    here = world(in_line(Job, reports).compile(name="reports"))
    here.app.schedule("morning", "reports", "0 9 * * *", {})

    for _ in range(2):
        here.clock.pass_by(hours=24)
        here.settle()
    here.app.deliver("numbers", [1, 2], kind="webhook")
    here.settle()
    here.app.deliver("approved", "yes")
    here.settle()

    threads = here.app.list()
    assert len(threads) == 2
    assert [here.app.get(each.thread_id).values for each in threads] == [{"result": [[1, 2], "yes"]}] * 2
    times = [each.at for each in here.app.follow(threads[-1].thread_id)]
    assert times == sorted(times)
    assert (times[-1] - times[0]) == timedelta(hours=24)


# ── PostgreSQL ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_checkpointer.py::test_postgresql_returns_postgres_saver")
@pytest.mark.requirement("Z0-06", "Z0-07", "Z0-10", "Z0-42")
def test_thread_in_postgresql_outlives_its_process_and_goes_on_days_later(postgres_url: str, noon: StillClock) -> None:
    made: list[str] = []

    def asks(state: Job) -> Job:
        step(made.append, "sent")
        return {"result": interrupt("May I?")}

    graph = in_line(Job, asks)
    with Store.open(postgres_url, schema=SCHEMA, clock=noon) as first:
        before = World(first, noon, [graph.compile(name="asks")])
        before.app.start("asks", {}, thread_id="t")
        before.settle()
    noon.pass_by(hours=24 * 3)

    with Store.open(postgres_url, schema=SCHEMA, clock=noon) as second:
        after = World(second, noon, [graph.compile(name="asks")])
        after.app.resume("t", "yes")
        after.settle()
        values = after.app.get("t").values

    assert values == {"result": "yes"}
    assert made == ["sent"]


@pytest.mark.seed("test_checkpointer.py::test_postgresql_caches_instance")
@pytest.mark.seed("test_checkpointer.py::test_clear_cache_resets_postgres_instances")
@pytest.mark.requirement("Z0-06", "Z0-07", "Z0-10", "Z0-42")
def test_two_stores_on_one_database_see_one_truth_and_closing_one_leaves_the_other(postgres_url: str) -> None:
    """There, stores are cached by their URL. Here each opening is its own; what is shared is the database."""
    graph = asking()
    with Store.open(postgres_url, schema=SCHEMA) as first:
        one, other = Bide(first, [graph]), Bide(Store.open(postgres_url, schema=SCHEMA), [asking()])
        one.start("asks", {}, thread_id="t")

        assert [driven.outcome for driven in other.run_ready()] == ["waiting"]
        assert one.run_ready() == []
        other.store.close()
        one.resume("t", "yes")
        assert [driven.outcome for driven in one.run_ready()] == ["done"]

    assert one.store is not other.store


@pytest.mark.requirement("Z0-08")
def test_tables_are_made_on_first_use_and_each_is_read_by_its_thread_from_an_index(postgres_database: str) -> None:
    import psycopg

    Store.open(postgres_database, schema="agents").close()
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        found = connection.execute("SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'agents'").fetchall()

    by_thread = {table for table, index in found if "(thread_id" in index}
    assert set(our_tables()) == {table for table, _ in found}
    assert {"checkpoints", "channel_log", "journal", "waits", "runs", "events"} <= by_thread


@pytest.mark.requirement("Z0-10")
def test_file_is_durable_and_a_store_that_cannot_be_had_is_never_replaced_by_another(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bide.db'}"
    with Bide(url, [asking()]) as app:
        app.start("asks", {}, thread_id="t")
        app.run_ready()

    with Bide(url, [asking()]) as again:
        assert again.get("t").status == "waiting"
    with pytest.raises(StoreUnavailableError):
        Bide("postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2", [asking()])
