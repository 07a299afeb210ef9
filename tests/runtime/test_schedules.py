"""Runs that are started by the clock: each once, whoever looks, whatever happened meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bide import Bide, BideError, GraphError, Store
from bide.store.schedule_rows import ScheduleError
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import StillClock, World, graph

NINE = int(datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp() * 1000)
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def report(state: dict[str, Any]) -> dict[str, Any]:
    return {"answer": f"about {state.get('given', 'nothing')}"}


@pytest.fixture
def here(world: MakeWorld, clock: StillClock) -> World:
    """An application at a quarter to nine on a Monday."""
    clock.instant = NINE - 15 * MINUTE
    return world(graph(report, "report"))


def at(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)


def threads_of(here: World) -> list[Any]:
    return [here.app.get(thread.thread_id) for thread in here.app.list()]


# ── Being due ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_is_started_when_it_is_due_and_once(here: World) -> None:
    made = here.app.schedule("daily", "report", "0 9 * * *", {"given": "sales"})
    assert (made.name, made.graph, made.next_at, made.last_at) == ("daily", "report", at(NINE), None)
    assert made.explained == "At 09:00 every day"
    assert here.app.start_due() == 0

    here.clock.instant = NINE + 300
    assert (here.app.start_due(), here.app.start_due()) == (1, 0)

    assert here.settle() == ["done"]
    (thread,) = threads_of(here)
    assert thread.values == {"given": "sales", "answer": "about sales"}
    (now,) = here.app.schedules()
    assert (now.next_at, now.last_at, now.error) == (at(NINE + DAY), at(NINE), None)


def test_worker_that_looks_at_the_clock_starts_it_and_knows_when_to_look_again(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")

    assert here.app.tender.seconds_until_due(3600) == 15 * 60
    here.clock.instant = NINE
    assert here.settle() == ["done"]
    assert here.app.tender.seconds_until_due(3600) == 3600


def test_run_knows_which_schedule_started_it_and_for_which_instant(world: MakeWorld, clock: StillClock) -> None:
    clock.instant = NINE - 1
    heard: list[Any] = []

    def listening(state: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        heard.append(config["metadata"])
        return {}

    here = world(graph(listening, "report"))
    here.app.schedule("daily", "report", "0 9 * * *", config={"metadata": {"team": "sales"}})
    clock.instant = NINE + 900

    here.settle()

    assert heard == [{"team": "sales", "schedule": "daily", "scheduled_at": "2026-01-05T09:00:00+00:00"}]


def test_times_are_those_of_a_time_zone(here: World) -> None:
    made = here.app.schedule("daily", "report", "0 9 * * *", timezone="America/New_York")

    assert made.next_at == at(NINE + 5 * HOUR)
    here.clock.instant = NINE + 5 * HOUR
    assert here.app.start_due() == 1


def test_clock_that_was_set_back_starts_nothing_twice(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")
    here.clock.instant = NINE
    assert here.app.start_due() == 1

    here.clock.instant = NINE - 5 * MINUTE
    here.app.schedule("daily", "report", "0 9 * * * ", {"given": "said anew"})
    here.clock.instant = NINE

    assert here.app.start_due() == 0
    assert len(here.app.list()) == 1


def test_many_schedules_are_due_at_once(here: World) -> None:
    for number in range(250):
        here.app.schedule(f"every-{number}", "report", "0 9 * * *", {"given": number})
    here.clock.instant = NINE

    started = [here.app.start_due() for _ in range(4)]

    assert started == [100, 100, 50, 0]
    assert len(here.app.list(most=1000)) == 250


# ── Said again, paused, deleted ────────────────────────────────────────────────────────────────────────────────────


def test_program_that_begins_again_forgets_nothing_that_came_due_meanwhile(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *", {"given": "old"})
    here.clock.instant = NINE + HOUR

    again = here.app.schedule("daily", "report", "0 9 * * *", {"given": "new"})

    assert again.next_at == at(NINE)
    assert here.settle() == ["done"]
    assert [thread.values["given"] for thread in threads_of(here)] == ["new"]
    assert len(here.app.schedules()) == 1


def test_another_cron_makes_it_due_anew(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")
    here.clock.instant = NINE + HOUR

    changed = here.app.schedule("daily", "report", "30 11 * * *")

    assert changed.next_at == at(NINE + 2.5 * HOUR)
    assert here.app.start_due() == 0


def test_paused_schedule_starts_nothing_and_what_came_meanwhile_is_not_made_up_for(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")

    paused = here.app.pause_schedule("daily")
    assert (paused.is_paused, paused.next_at) == (True, None)
    here.clock.instant = NINE + HOUR
    assert here.app.start_due() == 0
    assert here.app.schedule("daily", "report", "0 9 * * *").is_paused

    resumed = here.app.resume_schedule("daily")
    assert (resumed.is_paused, resumed.next_at) == (False, at(NINE + DAY))
    assert here.app.start_due() == 0
    here.clock.instant = NINE + DAY
    assert here.app.start_due() == 1
    assert here.app.resume_schedule("daily") == here.app.schedules()[0]


def test_deleted_schedule_starts_nothing_and_what_it_has_started_goes_on(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")
    here.clock.instant = NINE
    here.app.start_due()

    assert (here.app.unschedule("daily"), here.app.unschedule("daily")) == (True, False)

    here.clock.instant = NINE + DAY
    assert here.app.start_due() == 0
    assert here.settle() == ["done"]
    assert here.app.schedules() == []


def test_schedules_are_listed_by_name_page_after_page(here: World) -> None:
    for name in ("c", "a", "b"):
        here.app.schedule(name, "report", "0 9 * * *")

    assert [one.id for one in here.app.schedules(most=2)] == ["a", "b"]
    assert [one.id for one in here.app.schedules(after="b")] == ["c"]


def test_owners_have_schedules_of_their_own(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *", {"given": 1}, owner="ada")
    here.app.schedule("daily", "report", "0 9 * * *", {"given": 2}, owner="bob")
    here.clock.instant = NINE

    assert here.app.start_due() == 2
    assert [one.owner for one in here.app.schedules(owner="ada")] == ["ada"]
    assert here.app.unschedule("daily") is False
    assert here.app.unschedule("daily", owner="ada")
    runs = [run for thread in here.app.list() for run in here.app.runs(thread.thread_id)]
    assert sorted(run.owner for run in runs) == ["ada", "bob"]


# ── After nobody was there ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("missed", "expected"),
    [("once", [NINE + 3 * DAY]), ("skip", []), ("all", [NINE + number * DAY for number in range(4)])],
)
def test_after_days_without_a_worker_as_many_runs_start_as_was_said(here: World, missed: Any, expected: Any) -> None:
    here.app.schedule("daily", "report", "0 9 * * *", missed=missed)
    here.clock.instant = NINE + 3 * DAY + HOUR

    assert here.app.start_due() == len(expected)

    assert len(here.app.list()) == len(expected)
    assert here.settle() == ["done"] * len(expected)
    assert here.app.schedules()[0].next_at == at(NINE + 4 * DAY)
    assert here.app.schedules()[0].last_at == (at(expected[-1]) if expected else None)


def test_of_very_many_that_were_missed_the_newest_hundred_are_made_up_for(here: World) -> None:
    here.app.schedule("often", "report", "* * * * *", missed="all")
    here.clock.instant = NINE + 30 * DAY

    assert (here.app.start_due(), here.app.start_due()) == (100, 0)

    assert here.app.schedules()[0].last_at == at(NINE + 30 * DAY)


# ── How runs are started ───────────────────────────────────────────────────────────────────────────────────────────


def test_runs_of_one_thread_wait_for_each_other(here: World) -> None:
    here.app.schedule("often", "report", "* * * * *", {"given": 1}, thread_id="the-report", missed="all")
    here.clock.instant += 3 * MINUTE

    assert here.app.start_due() == 3

    assert [run.status for run in here.app.runs("the-report")] == ["queued", "queued", "ready"]
    assert here.settle() == ["done"] * 3
    assert [thread.thread_id for thread in here.app.list()] == ["the-report"]


def test_time_at_which_the_thread_is_busy_is_passed_over_and_says_so(here: World) -> None:
    here.app.schedule("often", "report", "* * * * *", thread_id="the-report", if_busy="reject")
    here.clock.instant += MINUTE
    assert here.app.start_due() == 1
    here.clock.instant += MINUTE

    assert (here.app.start_due(), here.app.start_due()) == (0, 0)
    told = here.app.schedules()[0]
    assert told.error is not None
    assert told.error.startswith("ThreadBusyError: Thread 'the-report' has a live run")
    assert told.next_at == at(here.clock.instant + MINUTE)

    here.settle()
    here.clock.instant += MINUTE
    assert here.app.start_due() == 1
    assert here.app.schedules()[0].error is None


def test_run_may_take_the_place_of_the_one_before(here: World) -> None:
    here.app.schedule("often", "report", "* * * * *", thread_id="the-report", if_busy="interrupt")
    here.clock.instant += MINUTE
    here.app.start_due()
    here.clock.instant += MINUTE

    assert here.app.start_due() == 1

    assert [run.status for run in here.app.runs("the-report")] == ["ready", "cancelled"]


def test_jitter_spreads_runs_over_a_time(here: World) -> None:
    for number in range(20):
        here.app.schedule(f"daily-{number}", "report", "0 9 * * *", jitter="10m")
    here.clock.instant = NINE

    assert here.app.start_due() == 20

    due = [run.due_at for thread in here.app.list() for run in here.app.runs(thread.thread_id)]
    assert all(at(NINE) <= one <= at(NINE + 10 * MINUTE) for one in due if one is not None)
    assert len(set(due)) > 15
    here.clock.instant = NINE + 10 * MINUTE
    assert here.settle() == ["done"] * 20


def test_queue_priority_limit_and_options_are_those_of_a_start(here: World) -> None:
    said: dict[str, Any] = {"queue": "night", "priority": 7, "limit": ("reports", 1), "interrupt_before": ["report"]}
    here.app.schedule("daily", "report", "0 9 * * *", **said)
    here.clock.instant = NINE
    here.app.start_due()

    assert here.app.run_ready() == []
    (driven,) = here.app.run_ready(queues=["night"])

    assert driven.outcome == "waiting"
    (run,) = here.app.runs(driven.claim.lease.thread_id)
    assert (run.queue, run.priority) == ("night", 7)


def test_graph_that_nobody_here_knows_is_started_for_those_who_do(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")
    here.clock.instant = NINE
    elsewhere = Bide(here.store)

    assert elsewhere.start_due() == 1

    assert elsewhere.run_ready() == []
    assert here.settle() == ["done"]


def test_runs_are_pinned_to_the_version_of_whoever_starts_them(store: Store, clock: StillClock) -> None:
    clock.instant = NINE - 1
    old = Bide(store, [graph(report, "report")], versions={"report": "1"})
    new = Bide(store, [graph(report, "report")], versions={"report": "2"})
    old.schedule("daily", "report", "0 9 * * *")
    clock.instant = NINE

    new.start_due()

    assert old.run_ready() == []
    assert [driven.outcome for driven in new.run_ready()] == ["done"]


# ── What cannot be meant ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cron": "every day"}, ScheduleError),
        ({"timezone": "Mars/Olympus"}, ScheduleError),
        ({"graph": "reprot"}, GraphError),
        ({"name": ""}, ScheduleError),
        ({"name": "a\nb"}, ScheduleError),
        ({"missed": "never"}, ScheduleError),
        ({"key": "k"}, ScheduleError),
        ({"delay": "1h"}, ScheduleError),
        ({"if_busy": "wait"}, GraphError),
        ({"thread_id": "a\0b"}, GraphError),
        ({"queue": "half \ud800"}, GraphError),
        ({"jitter": "soon"}, BideError),
        ({"inptu": {}}, BideError),
        ({"input": {"given": object()}}, BideError),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value.__name__,
)
def test_what_cannot_be_meant_is_refused_at_once(here: World, change: dict[str, Any], error: type[Exception]) -> None:
    said = {"name": "daily", "graph": "report", "cron": "0 9 * * *", **change}

    with pytest.raises(error):
        here.app.schedule(**said)

    assert here.app.schedules() == []


def test_schedule_that_is_not_there_is_guessed(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")

    with pytest.raises(ScheduleError, match="Did you mean 'daily'"):
        here.app.pause_schedule("dialy")
    with pytest.raises(ScheduleError, match="There is no schedule"):
        here.app.resume_schedule("weekly")


# ── Damage ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_damaged_schedule_keeps_no_other_from_being_started(here: World) -> None:
    for name in ("a-damaged", "b-whole"):
        here.app.schedule(name, "report", "0 9 * * *")
    old = here.store.schedules("")[0].body
    params = {"schedule_id": "a-damaged", "old": old, "new": old[:-1] + b"?"}
    here.store.database.write("damage", lambda tx: tx.run("reseal_schedules_body", params))
    here.clock.instant = NINE

    assert (here.app.start_due(), here.app.start_due()) == (1, 0)

    damaged, whole = here.app.schedules()
    assert (whole.last_at, whole.error) == (at(NINE), None)
    assert damaged.error is not None
    assert damaged.error.startswith("CorruptDataError")
    assert (damaged.last_at, damaged.next_at) == (None, at(NINE + DAY))
    here.app.schedule("a-damaged", "report", "0 9 * * *")
    here.clock.instant = NINE + DAY
    assert here.app.start_due() == 2


def test_schedule_whose_cron_was_damaged_is_paused(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *")
    row = here.store.schedules("")[0]
    rule = {"schedule_id": "daily", "owner": "", "graph": "report", "cron": "nonsense", "timezone": "UTC"}
    made = {**rule, "is_paused": 0, "next_at": NINE, "now": NINE, "body": row.body}
    here.store.database.write("damage", lambda tx: tx.run("put_schedule", made))
    here.clock.instant = NINE

    assert (here.app.start_due(), here.app.start_due()) == (0, 0)

    (told,) = here.app.schedules()
    assert told.is_paused
    assert told.error is not None
    assert "nonsense" in told.error
    assert "cannot be read" in told.explained


# ── Ending, and what stays ─────────────────────────────────────────────────────────────────────────────────────────


def test_schedule_that_has_come_to_its_end_starts_nothing_and_is_not_due(here: World) -> None:
    made = here.app.schedule("daily", "report", "0 9 * * *", until=at(NINE + DAY))

    started = []
    for day in range(4):
        here.clock.instant = NINE + day * DAY
        started.append(here.app.start_due())

    assert started == [1, 1, 0, 0]
    (over,) = here.app.schedules()
    assert (made.next_at, over.next_at, over.is_paused) == (at(NINE), None, False)
    assert here.app.tender.seconds_until_due(3600) == 3600
    assert here.app.schedule("daily", "report", "0 9 * * *").next_at == at(NINE + 4 * DAY)


def test_schedule_whose_end_is_before_its_next_time_is_never_due(here: World) -> None:
    made = here.app.schedule("daily", "report", "0 9 * * *", until=at(NINE - MINUTE), paused=True)

    assert here.app.resume_schedule("daily").next_at is None
    assert made.is_paused
    with pytest.raises(ScheduleError, match="two dozen instants"):
        here.app.schedule("daily", "report", "0 9 * * *", until=datetime(2026, 1, 1))  # noqa: DTZ001


def test_schedule_begins_paused_and_goes_on_when_that_is_said(here: World) -> None:
    assert here.app.schedule("daily", "report", "0 9 * * *", paused=True).is_paused
    assert here.app.schedule("daily", "report", "0 9 * * *").is_paused
    here.clock.instant = NINE + HOUR

    goes_on = here.app.schedule("daily", "report", "0 9 * * *", paused=False)

    assert (goes_on.is_paused, goes_on.next_at) == (False, at(NINE + DAY))


def test_thread_that_was_made_for_one_run_goes_a_minute_after_that(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *", on_end="delete")
    here.clock.instant = NINE
    here.settle()
    (thread,) = threads_of(here)

    here.clock.instant = NINE + MINUTE - 1
    here.settle()
    assert [one.thread_id for one in threads_of(here)] == [thread.thread_id]
    here.clock.instant = NINE + MINUTE
    here.settle()

    assert threads_of(here) == []
    assert here.store.verify().is_sound


def test_thread_that_took_the_name_of_one_that_was_to_go_stays(here: World) -> None:
    here.app.schedule("daily", "report", "0 9 * * *", on_end="delete")
    here.clock.instant = NINE
    here.settle()
    (thread,) = threads_of(here)
    here.store.delete_thread(thread.thread_id)
    here.app.start("report", {"given": "mine"}, thread_id=thread.thread_id)
    here.settle()

    here.clock.instant = NINE + HOUR
    here.settle()

    assert here.app.get(thread.thread_id).values["given"] == "mine"


def test_schedule_of_a_thread_is_over_when_another_owner_has_that_name(here: World) -> None:
    here.app.start("report", {"given": "mine"}, thread_id="t")
    here.settle()
    here.app.schedule("daily", "report", "0 9 * * *", thread_id="t", is_of_thread=True)
    here.store.delete_thread("t")
    here.app.start("report", {"given": "theirs"}, thread_id="t", owner="ada")
    here.settle()
    here.clock.instant = NINE

    assert here.app.start_due() == 0

    assert list(here.app.schedules()) == []
    assert len(here.app.runs("t")) == 1


def test_on_end_must_be_one_of_two_words(here: World) -> None:
    with pytest.raises(ScheduleError, match="on_end='burn' is none of 'keep', 'delete'"):
        here.app.schedule("daily", "report", "0 9 * * *", on_end="burn")  # type: ignore[typeddict-item]
