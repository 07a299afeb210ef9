"""Schedules over HTTP: made, changed, paused, resumed and deleted by their names."""

from __future__ import annotations

import pytest

from tests.server.native.world import Office, World

DAILY = {"graph": "question", "cron": "0 9 * * *", "timezone": "Europe/Berlin", "input": {"given": 1}}


def test_schedule_starts_runs_for_its_owner_when_it_is_due(office: Office):
    told = office.ada.put("/schedules/daily", json=DAILY)

    assert told.status_code == 200
    assert told.json()["explained"]
    office.clock.advance("25h")
    office.settle()
    (thread,) = office.ada.get("/threads").json()["threads"]
    assert (thread["graph"], thread["status"]) == ("question", "waiting")
    assert office.mallory.get("/threads").json()["threads"] == []


def test_paused_schedule_starts_nothing_until_it_is_resumed(world: World):
    world.client.put("/schedules/daily", json=DAILY)

    paused = world.client.post("/schedules/daily/pause").json()
    world.clock.advance("3d")
    world.settle()
    resumed = world.client.post("/schedules/daily/resume").json()

    assert (paused["is_paused"], paused["next_at"]) == (True, None)
    assert world.client.get("/threads").json()["threads"] == []
    assert resumed["is_paused"] is False
    assert resumed["next_at"] is not None


def test_schedules_are_listed_by_name_changed_and_deleted(world: World):
    for name in ("b", "a", "c d"):
        world.client.put(f"/schedules/{name}", json=DAILY)
    world.client.put("/schedules/a", json={**DAILY, "cron": "0 10 * * *"})

    first = world.client.get("/schedules", params={"limit": 2}).json()
    second = world.client.get("/schedules", params={"limit": 2, "after": first["after"]}).json()

    assert [one["name"] for one in first["schedules"] + second["schedules"]] == ["a", "b", "c d"]
    assert world.client.get("/schedules/a").json()["cron"] == "0 10 * * *"
    assert world.client.delete("/schedules/a").status_code == 204
    assert world.client.delete("/schedules/a").status_code == 404
    assert world.client.get("/schedules/a").status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "every day"},
        {"graph": "no such graph"},
        {"timezone": "Moon/Sea"},
        {"jitter": "soon"},
        {"corn": "x"},
        {"until": "2026-12-31T00:00:00"},
    ],
)
def test_schedule_that_cannot_be_meant_is_refused(world: World, wrong):
    told = world.client.put("/schedules/daily", json={**DAILY, **wrong})

    assert told.status_code == 422
    assert world.client.get("/schedules/daily").status_code == 404


def test_schedules_of_another_owner_do_not_exist(office: Office):
    office.ada.put("/schedules/daily", json=DAILY)
    office.ask("question", "ours", owner="acme")

    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume")):
        assert office.mallory.request(method, f"/schedules/daily{path}").status_code == 404
    assert office.mallory.get("/schedules").json()["schedules"] == []
    on_ours = office.mallory.put("/schedules/mine", json={**DAILY, "thread_id": "ours"})
    assert on_ours.status_code == 404
