"""Crons as LangGraph's SDK knows them: schedules that clients make, and that start runs through workers, once each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from bide import Bide, Store
from bide.server import Settings, create_app
from bide.store.notes import make_thread, noted_thread, run_notes
from tests.runtime.world import StillClock
from tests.server.conftest import SERVED, Running
from tests.server.graphs import all_graphs
from tests.server.langgraph.clients import KINDS, opened_client
from tests.server.running import running_server, until
from tests.stores import opened_store

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)
FIELDS = {
    "cron_id",
    "assistant_id",
    "thread_id",
    "on_run_completed",
    "end_time",
    "schedule",
    "timezone",
    "created_at",
    "updated_at",
    "payload",
    "user_id",
    "next_run_date",
    "metadata",
    "enabled",
}


class Moved(Running):
    """A server whose clock is in our hands, and whose worker is this test."""

    clock: StillClock

    def at(self, moment: datetime) -> list[Any]:
        """Let it be a moment, do what a worker does then, and return the threads that there are."""
        self.clock.instant = int(moment.timestamp() * 1000)
        self.app.tend()
        while self.app.run_ready(most=10):
            pass
        return [self.app.get(thread.thread_id) for thread in self.app.list()]


@pytest.fixture(params=SERVED)
def moved(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Moved]:
    clock = StillClock()
    clock.instant = int((NINE - timedelta(minutes=15)).timestamp() * 1000)
    with opened_store(request, tmp_path, clock=clock) as store:
        app, settings = Bide(store, all_graphs()), Settings()
        with running_server(create_app(app, settings)) as url:
            running = Moved(url, app, settings)
            running.clock = clock
            yield running


@pytest.fixture(params=KINDS)
def crons(request: pytest.FixtureRequest, moved: Moved) -> Iterator[Any]:
    with opened_client(request.param, moved.url) as opened:
        yield opened.crons


def thread(store: Store) -> str:
    return make_thread(store, "", None, {}, None)


# ── Starting runs ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_cron_starts_a_run_on_a_new_thread_each_time_and_once(moved: Moved, crons: Any) -> None:
    made = crons.create(
        "counting", schedule="0 9 * * *", input={"count": 5}, on_run_completed="keep", metadata={"team": "sales"}
    )
    assert set(made) == FIELDS
    assert (made["next_run_date"], made["enabled"], made["thread_id"]) == (NINE.isoformat(), True, None)
    assert made["payload"] == {"input": {"count": 5}, "assistant_id": made["assistant_id"]}
    assert moved.at(NINE - timedelta(seconds=1)) == []

    (first,) = moved.at(NINE)
    assert moved.at(NINE + timedelta(hours=1)) == [first]
    assert len(moved.at(NINE + timedelta(days=1))) == 2

    assert first.values == {"count": 6, "told": ""}
    noted = noted_thread(moved.app.store, "", first.thread_id)
    assert noted is not None
    assert noted.metadata == {
        "team": "sales",
        "cron_id": made["cron_id"],
        "graph_id": "counting",
        "assistant_id": made["assistant_id"],
    }
    (run,) = moved.app.runs(first.thread_id)
    notes = run_notes(moved.app.store, first.thread_id, run.run_id)
    assert (notes["assistant_id"], notes["metadata"]["cron_id"]) == (made["assistant_id"], made["cron_id"])
    (now,) = crons.search()
    assert now["next_run_date"] == (NINE + timedelta(days=2)).isoformat()


def test_thread_of_a_run_goes_when_it_is_over_unless_it_is_kept(moved: Moved, crons: Any) -> None:
    assert crons.create("counting", schedule="0 9 * * *")["on_run_completed"] == "delete"

    assert len(moved.at(NINE)) == 1
    assert len(moved.at(NINE + timedelta(seconds=59))) == 1  # whoever follows it can still read how it ended
    assert moved.at(NINE + timedelta(seconds=61)) == []


def test_thread_that_waits_is_not_over(moved: Moved, crons: Any) -> None:
    crons.create("asking", schedule="0 9 * * *")
    moved.at(NINE)
    (waiting,) = moved.at(NINE + timedelta(hours=5))
    (wait,) = moved.app.waits()

    moved.app.wake(wait.id, "yes")
    (done,) = moved.at(NINE + timedelta(hours=5))

    assert (waiting.status, done.status, done.values["outcome"]) == ("waiting", "done", "yes")
    assert moved.at(NINE + timedelta(hours=6)) == []


def test_cron_of_a_thread_goes_on_with_it_and_is_over_when_that_is_deleted(moved: Moved, crons: Any) -> None:
    thread_id = thread(moved.app.store)
    made = crons.create_for_thread(thread_id, "counting", schedule="0 9 * * *")
    assert (made["thread_id"], made["on_run_completed"]) == (thread_id, None)

    for day in range(3):
        (found,) = moved.at(NINE + timedelta(days=day))
    assert (found.thread_id, found.values["count"]) == (thread_id, 3)

    moved.app.store.delete_thread(thread_id)
    assert moved.at(NINE + timedelta(days=3)) == []
    assert crons.count() == 0


def test_assistant_says_with_what_the_runs_begin(moved: Moved, crons: Any) -> None:
    from bide.store.assistants import Assistants, Wording

    Assistants(moved.app.store).make("", "green", Wording("counting", context={"colour": "green"}))
    crons.create("green", schedule="0 9 * * *", on_run_completed="keep")
    crons.create("green", schedule="0 9 * * *", on_run_completed="keep", context={"colour": "red"})

    assert sorted(found.values["told"] for found in moved.at(NINE)) == ["green", "red"]


def test_real_worker_starts_it_when_it_is_due(client: Any, server: Running) -> None:
    made = client.crons.create("counting", schedule="* * * * * *", on_run_completed="keep")

    until(lambda: bool(server.app.list(status="done")), "a run that the cron has started is done")
    client.crons.delete(made["cron_id"])

    (first, *_) = server.app.list(status="done")
    assert server.app.get(first.thread_id).values == {"count": 1, "told": ""}


# ── When ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_cron_starts_nothing_after_its_end(moved: Moved, crons: Any) -> None:
    made = crons.create(
        "counting", schedule="0 9 * * *", on_run_completed="keep", end_time=NINE + timedelta(days=1, hours=1)
    )
    assert made["end_time"] == (NINE + timedelta(days=1, hours=1)).isoformat()

    counts = [len(moved.at(NINE + timedelta(days=day))) for day in range(4)]
    assert counts == [1, 2, 2, 2]
    (over,) = crons.search()
    assert (over["next_run_date"], over["enabled"]) == (None, True)

    longer = crons.update(made["cron_id"], end_time=None)
    assert (longer["end_time"], longer["next_run_date"]) == (None, (NINE + timedelta(days=4)).isoformat())
    assert len(moved.at(NINE + timedelta(days=4))) == 3


def test_cron_that_is_not_enabled_starts_nothing_until_it_is(moved: Moved, crons: Any) -> None:
    made = crons.create("counting", schedule="0 9 * * *", enabled=False, on_run_completed="keep")
    assert (made["enabled"], made["next_run_date"]) == (False, None)
    assert moved.at(NINE) == []

    on = crons.update(made["cron_id"], enabled=True)
    assert (on["enabled"], on["next_run_date"]) == (True, (NINE + timedelta(days=1)).isoformat())
    assert len(moved.at(NINE + timedelta(days=1))) == 1

    assert crons.update(made["cron_id"], enabled=False)["enabled"] is False
    assert len(moved.at(NINE + timedelta(days=2))) == 1


def test_schedule_is_read_in_its_time_zone(moved: Moved, crons: Any) -> None:
    made = crons.create("counting", schedule="0 11 * * *", timezone=ZoneInfo("Europe/Berlin"))

    assert (made["timezone"], made["next_run_date"]) == ("Europe/Berlin", (NINE + timedelta(hours=1)).isoformat())
    assert crons.update(made["cron_id"], timezone="UTC")["next_run_date"] == (NINE + timedelta(hours=2)).isoformat()


def test_change_of_something_else_leaves_what_is_due_alone(moved: Moved, crons: Any) -> None:
    made = crons.create("counting", schedule="0 9 * * *", input={"count": 1}, on_run_completed="keep")
    moved.clock.instant = int((NINE + timedelta(minutes=1)).timestamp() * 1000)  # due, and nobody has looked yet

    changed = crons.update(made["cron_id"], input={"count": 10}, metadata={"why": "more"})

    assert changed["payload"]["input"] == {"count": 10}
    assert (changed["metadata"], changed["next_run_date"]) == ({"why": "more"}, NINE.isoformat())
    (found,) = moved.at(NINE + timedelta(minutes=1))
    assert found.values["count"] == 11


# ── Finding, deleting, refusing ────────────────────────────────────────────────────────────────────────────────────


def test_crons_are_found_sorted_and_counted(moved: Moved, crons: Any) -> None:
    thread_id = thread(moved.app.store)
    one = crons.create("counting", schedule="0 12 * * *", metadata={"team": "a"})
    two = crons.create("chat", schedule="0 10 * * *", metadata={"team": "b"}, enabled=False)
    three = crons.create_for_thread(thread_id, "counting", schedule="0 11 * * *")

    def found(**how: Any) -> list[str]:
        return [cron["cron_id"] for cron in crons.search(**how)]

    assert sorted(found()) == sorted([one["cron_id"], two["cron_id"], three["cron_id"]])
    assert found(assistant_id="chat") == [two["cron_id"]]
    assert found(assistant_id=two["assistant_id"]) == [two["cron_id"]]
    assert found(thread_id=thread_id) == [three["cron_id"]]
    assert found(enabled=False) == [two["cron_id"]]
    assert found(metadata={"team": "a"}) == [one["cron_id"]]
    by_date = found(sort_by="next_run_date", sort_order="asc")
    assert by_date == [three["cron_id"], one["cron_id"], two["cron_id"]]
    assert len(found(limit=2)) == 2
    assert crons.search(thread_id=thread_id, select=["schedule", "enabled"]) == [
        {"schedule": "0 11 * * *", "enabled": True}
    ]
    assert (crons.count(), crons.count(assistant_id="counting"), crons.count(metadata={"team": "b"})) == (3, 2, 1)
    assert crons.count(assistant_id="nobody") == 0


def test_cron_that_is_deleted_starts_nothing_more(moved: Moved, crons: Any) -> None:
    made = crons.create("counting", schedule="0 9 * * *", on_run_completed="keep")
    moved.at(NINE)

    assert crons.delete(made["cron_id"]) is None

    assert len(moved.at(NINE + timedelta(days=1))) == 1
    with pytest.raises(NotFoundError):
        crons.delete(made["cron_id"])
    with pytest.raises(NotFoundError):
        crons.update(made["cron_id"], enabled=False)


def test_what_cannot_be_meant_is_refused_and_nothing_is_kept(moved: Moved, crons: Any) -> None:
    with pytest.raises(UnprocessableEntityError, match="cannot be read"):
        crons.create("counting", schedule="every now and then")
    with pytest.raises(UnprocessableEntityError, match="no time zone"):
        crons.create("counting", schedule="0 9 * * *", timezone="Atlantis")
    with pytest.raises(NotFoundError, match="Invalid assistant ID"):
        crons.create("nobody", schedule="0 9 * * *")
    with pytest.raises(NotFoundError):
        crons.create_for_thread("no-such-thread", "counting", schedule="0 9 * * *")
    with pytest.raises(UnprocessableEntityError, match="stream mode"):
        crons.create("counting", schedule="0 9 * * *", stream_mode="nonsense")
    with pytest.raises(UnprocessableEntityError):
        crons.create("counting", schedule="0 9 * * *", webhook="http://127.0.0.1:1/")

    assert crons.search() == []


def test_schedule_of_the_application_is_seen_and_can_be_paused_but_not_rewritten(moved: Moved, crons: Any) -> None:
    moved.app.schedule("daily", "counting", "0 9 * * *", timezone="Europe/Berlin")

    (found,) = crons.search()
    assert (found["schedule"], found["timezone"], found["on_run_completed"]) == ("0 9 * * *", "Europe/Berlin", "keep")
    assert crons.update(found["cron_id"], enabled=False)["enabled"] is False
    assert moved.app.schedules()[0].is_paused
    with pytest.raises(ConflictError, match="made by the application"):
        crons.update(found["cron_id"], schedule="* * * * *")
    crons.delete(found["cron_id"])
    assert list(moved.app.schedules()) == []


def test_cron_of_another_owner_is_not_there(moved: Moved, crons: Any) -> None:
    moved.app.schedule("theirs", "counting", "0 9 * * *", owner="ada", about={"cron_id": "theirs"})

    assert (crons.search(), crons.count()) == ([], 0)
    with pytest.raises(NotFoundError):
        crons.delete("theirs")
    with pytest.raises(NotFoundError):
        crons.update("theirs", enabled=False)
