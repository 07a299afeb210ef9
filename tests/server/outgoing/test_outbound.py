"""Runs that finish, questions that are asked and answered: receivers outside are told, signed, at least once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from bide import Bide, Command, Store
from bide.clock import SystemClock
from bide.errors import SettingsError
from bide.server.hooks.outbound import Outbound
from bide.server.settings import OutgoingKind, Settings, WebhookSettings
from bide.store.feed import latest_cursor
from bide.store.outbox import HOLD, claim_messages, list_messages
from tests.runtime.world import StillClock, graph
from tests.server.outgoing.conftest import answering
from tests.server.outgoing.outside import Call, Names, Receiver, receiving, status, until
from tests.store.counted_messages import count_messages

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PROGRAM = Path(__file__).parent / "programs" / "mortal_sender.py"


def settings_for(receiver: Receiver, *events: OutgoingKind, **more: Any) -> Settings:
    chosen = {"events": events} if events else {}
    webhook = WebhookSettings(receiver.url, **chosen, secret=SECRET, **more)
    return Settings(webhooks=(webhook,), allow_private_targets=True)


def begun(app: Bide, settings: Settings) -> Outbound:
    outbound = Outbound(app, settings)
    outbound.begin()
    return outbound


def work_off(outbound: Outbound) -> int:
    """Make and send all that there is; return how many messages were sent."""
    outbound.collect()
    sent = 0
    while some := outbound.send_due():
        sent += some
    return sent


def told(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(call.body) for call in receiver.calls]


def ids(receiver: Receiver) -> list[str]:
    return [call.headers["webhook-id"] for call in receiver.calls]


# ── What is told ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_run_that_finishes_is_told_with_a_signature(app: Bide, receiver: Receiver, clock: StillClock) -> None:
    clock.instant = SystemClock().now()
    outbound = begun(app, settings_for(receiver, "run.finished"))
    run = app.start("answers", {"given": 4}, thread_id="t1", owner="ada")
    app.run_ready()

    assert work_off(outbound) == 1

    (call,) = receiver.calls
    assert Webhook(SECRET).verify(call.body, dict(call.headers)) == {
        "type": "run.finished",
        "timestamp": run.created_at.isoformat(),
        "data": {
            "thread_id": "t1",
            "run_id": run.run_id,
            "graph": "answers",
            "owner": "ada",
            "status": "done",
            "error": None,
            "created_at": run.created_at.isoformat(),
            "ended_at": run.created_at.isoformat(),
        },
    }


def test_run_that_fails_or_is_cancelled_is_told_so(app: Bide, receiver: Receiver) -> None:
    outbound = begun(app, settings_for(receiver, "run.finished"))
    app.start("answers", {"given": "fail"}, thread_id="fails")
    app.run_ready()
    app.start("answers", {"given": 1}, thread_id="cancelled")
    app.cancel("cancelled")

    work_off(outbound)

    found = {one["data"]["thread_id"]: one["data"] for one in told(receiver)}
    assert (found["fails"]["status"], found["cancelled"]["status"]) == ("failed", "cancelled")
    assert "it fails" in found["fails"]["error"]


def test_question_is_told_when_it_is_asked_and_when_it_is_answered(app: Bide, receiver: Receiver) -> None:
    outbound = begun(app, settings_for(receiver))
    app.start("asks", {}, thread_id="t1")
    app.run_ready()
    work_off(outbound)
    (wait,) = app.waits()
    app.wake(wait.id, 7, by="ada")
    app.run_ready()
    work_off(outbound)

    asked, answered, finished = told(receiver)
    assert [one["type"] for one in (asked, answered, finished)] == ["wait.created", "wait.answered", "run.finished"]
    assert asked["data"]["wait_id"] == answered["data"]["wait_id"] == wait.id
    assert (asked["data"]["question"], asked["data"]["title"]) == ("How many?", "A number")
    assert asked["data"]["schema"] == {"type": "integer"}
    assert (answered["data"]["answered_by"], answered["data"]["answered_via"]) == ("ada", "wake")
    assert "answer" not in answered["data"], "whoever may see the answer asks for it"


def test_question_that_a_script_answers_is_told_as_well(app: Bide, receiver: Receiver) -> None:
    outbound = begun(app, settings_for(receiver, "wait.answered"))
    asks = app.graphs.get("asks").graph
    asks.invoke({}, {"configurable": {"thread_id": "t1"}})

    asks.invoke(Command(resume=3), {"configurable": {"thread_id": "t1"}})
    work_off(outbound)

    assert [one["data"]["thread_id"] for one in told(receiver)] == ["t1"]


def test_receiver_is_told_only_of_what_and_whom_it_wants_to_hear(app: Bide, receiver: Receiver) -> None:
    outbound = begun(app, settings_for(receiver, "wait.created", owner="ada"))
    for owner in ("ada", "bob"):
        app.start("asks", {}, thread_id=f"asks-{owner}", owner=owner)
        app.start("answers", {"given": 1}, thread_id=f"answers-{owner}", owner=owner)
    app.run_ready(most=10)

    work_off(outbound)

    assert [(one["type"], one["data"]["thread_id"]) for one in told(receiver)] == [("wait.created", "asks-ada")]


def test_what_happened_before_a_receiver_was_set_up_is_not_told(app: Bide, receiver: Receiver) -> None:
    app.start("answers", {"given": 1}, thread_id="before")
    app.run_ready()

    outbound = begun(app, settings_for(receiver))
    app.start("answers", {"given": 1}, thread_id="after")
    app.run_ready()
    work_off(outbound)

    assert [one["data"]["thread_id"] for one in told(receiver)] == ["after"]


def test_what_happens_while_no_server_runs_is_told_later(app: Bide, receiver: Receiver) -> None:
    begun(app, settings_for(receiver))
    app.start("answers", {"given": 1}, thread_id="meanwhile")
    app.run_ready()

    work_off(begun(app, settings_for(receiver)))

    assert [one["data"]["thread_id"] for one in told(receiver)] == ["meanwhile"]


def test_receivers_do_not_wait_for_each_other(app: Bide, receiver: Receiver) -> None:
    with receiving(status(500)) as deaf:
        webhooks = tuple(WebhookSettings(url, secret=SECRET) for url in (deaf.url, receiver.url))
        outbound = begun(app, Settings(webhooks=webhooks, allow_private_targets=True))
        app.start("answers", {"given": 1}, thread_id="t1")
        app.run_ready()

        work_off(outbound)

    assert len(receiver.calls) == len(deaf.calls) == 1
    assert receiver.calls[0].headers["webhook-id"] != deaf.calls[0].headers["webhook-id"]
    assert count_messages(app.store) == {"open": 1, "sent": 1, "dead": 0}


def test_bookmark_moves_over_what_is_nobodys_business(
    app: Bide, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bide.server.hooks.outbound.MOVE_SECONDS", -1.0)
    outbound = begun(app, settings_for(receiver, "wait.created"))
    app.start("answers", {"given": 1}, thread_id="t1")
    app.run_ready()

    assert outbound.collect() == 0

    rows = app.store.database.read(lambda tx: tx.all("list_bookmarks", {}))
    assert {row[1] for row in rows} == {latest_cursor(app.store)}


# ── Those whom clients name ────────────────────────────────────────────────────────────────────────────────────────


def test_client_that_names_a_webhook_is_told_the_run_and_its_state(app: Bide, receiver: Receiver) -> None:
    outbound = begun(app, Settings(allow_private_targets=True))
    notes = {"webhook": receiver.url, "assistant_id": "answers", "metadata": {"for": "ada"}}
    run = app.start("answers", {"given": 4}, thread_id="t1", notes=notes)
    app.start("answers", {"given": 5}, thread_id="t2")
    app.run_ready(most=2)

    work_off(outbound)

    (body,) = told(receiver)
    assert (body["run_id"], body["thread_id"], body["assistant_id"]) == (run.run_id, "t1", "answers")
    assert (body["status"], body["metadata"]) == ("success", {"for": "ada"})
    assert body["values"] == {"given": 4, "answer": 8}
    assert body["error"] is None
    assert {"run_started_at", "run_ended_at", "webhook_sent_at", "created_at", "updated_at"} <= body.keys()


def test_client_is_told_at_a_pause_and_at_the_end_each_with_the_state_of_that_moment(
    app: Bide, receiver: Receiver
) -> None:
    outbound = begun(app, Settings(allow_private_targets=True))
    app.start("asks", {"given": 1}, thread_id="t1", notes={"webhook": receiver.url})
    app.run_ready()
    (wait,) = app.waits()
    app.wake(wait.id, 7)
    app.run_ready()

    work_off(outbound)

    paused, ended = told(receiver)
    assert paused["values"]["given"] == 1
    assert "answer" not in paused["values"]
    assert [ask["id"] for ask in paused["values"]["__interrupt__"]] == [wait.id]
    assert ended["values"] == {"given": 1, "answer": 7}
    assert (paused["status"], ended["status"]) == ("success", "success")


def test_client_is_told_why_a_run_failed(app: Bide, receiver: Receiver) -> None:
    outbound = begun(app, Settings(allow_private_targets=True))
    app.start("answers", {"given": "fail"}, thread_id="t1", notes={"webhook": receiver.url})
    app.run_ready()

    work_off(outbound)

    (body,) = told(receiver)
    assert body["status"] == "error"
    assert body["error"] == {"error": "ValueError", "message": "it fails"}


def test_webhook_that_a_client_named_is_checked_again_when_it_is_sent(
    app: Bide, trap: Receiver, connections: list[Any]
) -> None:
    outbound = Outbound(app, Settings(webhook_ports=None), resolve=Names(turncoat_example=["127.0.0.1"]))
    outbound.begin()
    url = f"https://turncoat.example:{trap.port}/"
    app.start("answers", {"given": 1}, thread_id="t1", notes={"webhook": url})
    app.run_ready()
    connections.clear()

    work_off(outbound)

    (dead,) = list_messages(app.store, "dead", "")
    assert "private" in str(dead.error)
    assert all(address[1] != trap.port for address in connections if isinstance(address, tuple))


def test_each_owner_has_a_secret_of_its_own_and_keeps_it(app: Bide, receiver: Receiver, clock: StillClock) -> None:
    clock.instant = SystemClock().now()
    settings = Settings(allow_private_targets=True)
    outbound = begun(app, settings)
    for owner in ("ada", "bob"):
        app.start("answers", {"given": 1}, thread_id=owner, owner=owner, notes={"webhook": receiver.url})
    app.run_ready(most=2)
    work_off(outbound)

    secrets = {owner: Outbound(app, settings).signing.shown_for("run-webhooks", owner) for owner in ("ada", "bob")}

    for call in receiver.calls:
        mine = json.loads(call.body)["thread_id"]
        other = "bob" if mine == "ada" else "ada"
        Webhook(secrets[mine]).verify(call.body, dict(call.headers))
        with pytest.raises(WebhookVerificationError):
            Webhook(secrets[other]).verify(call.body, dict(call.headers))


# ── Until it is heard ──────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_not_heard_is_sent_again_later_with_the_same_id_and_body(app: Bide, clock: StillClock) -> None:
    with receiving(status(500), status(503, "retry-after: 3600"), status(200)) as receiver:
        outbound = begun(app, settings_for(receiver, "run.finished"))
        app.start("answers", {"given": 1}, thread_id="t1")
        app.run_ready()

        at_once = work_off(outbound), work_off(outbound)
        clock.pass_by(seconds=7)
        second = work_off(outbound)
        clock.pass_by(minutes=59)
        too_early = work_off(outbound)
        clock.pass_by(minutes=2)
        third = work_off(outbound)

    assert (*at_once, second, too_early, third) == (1, 0, 1, 0, 1)
    assert len(set(ids(receiver))) == 1
    assert len({call.body for call in receiver.calls}) == 1
    assert len({call.headers["webhook-timestamp"] for call in receiver.calls}) == 3
    assert count_messages(app.store)["sent"] == 1


def test_receiver_that_is_gone_is_given_up_and_seen(app: Bide) -> None:
    with receiving(status(410)) as receiver:
        outbound = begun(app, settings_for(receiver, "run.finished"))
        app.start("answers", {"given": 1}, thread_id="t1", owner="ada")
        app.run_ready()

        work_off(outbound)

    (dead,) = list_messages(app.store, "dead", "ada")
    assert dead.error == "The receiver is gone for good: it answered 410."
    assert dead.thread_id == "t1"


def test_message_to_a_receiver_that_this_server_does_not_know_is_left_to_others(app: Bide, receiver: Receiver) -> None:
    settings = settings_for(receiver, "run.finished")
    outbound = begun(app, settings)
    app.start("answers", {"given": 1}, thread_id="t1")
    app.run_ready()
    outbound.collect()

    begun(app, replace(settings, webhooks=())).send_due()

    assert receiver.calls == []
    assert count_messages(app.store)["open"] == 1


def test_sender_that_is_killed_before_it_could_note_it_sends_again_with_the_same_id(
    tmp_path: Path, receiver: Receiver
) -> None:
    database = f"sqlite:///{tmp_path / 'bide.db'}"
    settings = Settings(webhooks=(WebhookSettings(receiver.url, events=("run.finished",)),), allow_private_targets=True)
    with Bide(database, [graph(answering, "answers")]) as app:
        begun(app, settings)
        app.start("answers", {"given": 1}, thread_id="t1")
        app.run_ready()

    killed = subprocess.run(
        [sys.executable, str(PROGRAM), database, receiver.url],
        env={**os.environ, "BIDE_FAILPOINT": "outbox:sent"},
        timeout=60,
        check=False,
    )
    later = StillClock(SystemClock().now() + HOLD)
    with Store.open(database, clock=later) as store, Bide(store) as app:
        before = count_messages(store)
        work_off(begun(app, settings))
        after = count_messages(store)

    assert killed.returncode == -9
    assert len(receiver.calls) == 2
    assert len(set(ids(receiver))) == 1
    assert receiver.calls[0].body == receiver.calls[1].body
    assert (before["open"], after["sent"]) == (1, 1)


# ── Several servers ────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_servers_tell_each_event_once(app: Bide, receiver: Receiver) -> None:
    servers = [begun(app, settings_for(receiver)) for _ in range(3)]
    for number in range(12):
        app.start("answers", {"given": 1}, thread_id=f"t{number}")

    def serve(server: Outbound) -> None:
        for _ in range(8):
            app.run_ready(most=1)
            server.collect()
            server.send_due()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(serve, servers))
    app.run_ready(most=12)
    work_off(servers[0])

    assert sorted(one["data"]["thread_id"] for one in told(receiver)) == sorted(f"t{number}" for number in range(12))
    assert len(set(ids(receiver))) == 12


def test_servers_that_are_set_up_differently_each_tell_their_own_receivers(app: Bide, receiver: Receiver) -> None:
    with receiving() as second:
        old, new = begun(app, settings_for(receiver)), begun(app, settings_for(second))
        app.start("answers", {"given": 1}, thread_id="t1")
        app.run_ready()

        old.collect()
        new.collect()
        for _ in range(2):
            old.send_due(1)
            new.send_due(1)
        until_known = [row.to for row in claim_messages(app.store, 5)]

        assert until_known == []
        assert len(receiver.calls) + len(second.calls) + count_messages(app.store)["open"] == 2


# ── Beside a server ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def real_time(clock: StillClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass by itself."""
    monkeypatch.setattr(clock, "now", SystemClock().now)


@pytest.mark.usefixtures("real_time")
def test_it_tells_by_itself_while_it_runs_and_stops_when_it_is_asked_to(app: Bide, receiver: Receiver) -> None:
    outbound = Outbound(app, settings_for(receiver, "run.finished"))
    outbound.start()
    for number in range(10):
        app.start("answers", {"given": 1}, thread_id=f"t{number}")
    app.run_ready(most=10)
    receiver.wait_for(10)
    until(lambda: count_messages(app.store)["sent"] == 10, "all are noted as sent")

    outbound.stop()
    app.start("answers", {"given": 1}, thread_id="late")
    app.run_ready()

    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("bide-outbox", "bide-webhook"))]
    assert len(receiver.calls) == 10


@pytest.mark.usefixtures("real_time")
def test_slow_receiver_does_not_hold_up_the_others(app: Bide, receiver: Receiver) -> None:
    may_end = threading.Event()

    def hang(connection: Any, call: Call) -> None:
        may_end.wait(30)

    with receiving(hang) as slow:
        webhooks = tuple(WebhookSettings(one.url, secret=SECRET) for one in (slow, receiver))
        outbound = Outbound(app, Settings(webhooks=webhooks, allow_private_targets=True))
        outbound.start()
        app.start("answers", {"given": 1}, thread_id="t1")
        app.run_ready()

        slow.wait_for(1)
        heard = receiver.wait_for(1)
        may_end.set()
        outbound.stop()

    assert len(heard) == 1
    assert count_messages(app.store)["sent"] == 1


# ── Set up ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_private_receiver_may_be_set_up_without_letting_clients_name_one(app: Bide, receiver: Receiver) -> None:
    settings = Settings(webhooks=(WebhookSettings(receiver.url, is_private=True),))
    outbound = begun(app, settings)
    app.start("answers", {"given": 1}, thread_id="t1", notes={"webhook": receiver.url})
    app.run_ready()

    work_off(outbound)

    assert [one["type"] for one in told(receiver)] == ["run.finished"]
    assert count_messages(app.store) == {"open": 0, "sent": 1, "dead": 1}


Change = Callable[[WebhookSettings], tuple[WebhookSettings, ...]]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda webhook: (replace(webhook, url="http://public.example/"),), "by https"),
        (lambda webhook: (replace(webhook, url="https://127.0.0.1:1/"),), "port 1"),
        (lambda webhook: (replace(webhook, secret="password"),), "whsec_"),
        (lambda webhook: (webhook, webhook), "Two webhooks go to"),
    ],
)
def test_receiver_that_could_never_be_told_is_refused_at_once(app: Bide, change: Change, problem: str) -> None:
    webhook = WebhookSettings("https://public.example/in")

    with pytest.raises(SettingsError, match=problem):
        Outbound(app, Settings(webhooks=change(webhook)))
