"""Administrators see what receivers outside were told, send it again, and learn the secrets that sign it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from standardwebhooks import Webhook

from bide import Bide
from bide.clock import SystemClock
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.caller import ADMIN, READ, RESOLVE, RUN
from bide.server.settings import AuthSettings, WebhookSettings
from tests.runtime.world import StillClock
from tests.server.outgoing.outside import Receiver, receiving, status, until


@pytest.fixture(autouse=True)
def real_time(clock: StillClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass by itself."""
    monkeypatch.setattr(clock, "now", SystemClock().now)


@pytest.fixture
def gone() -> Iterator[Receiver]:
    """A receiver that gives up at first, and then listens again."""
    with receiving(status(410), status(200)) as opened:
        yield opened


def key(app: Bide, owner: str, *scopes: str) -> dict[str, str]:
    return {"x-api-key": create_key(app.store, owner or "root", owner, scopes or [ADMIN])[0]}


@pytest.fixture
def client(app: Bide, gone: Receiver) -> Iterator[TestClient]:
    settings = Settings(
        auth=AuthSettings("keys"),
        webhooks=(WebhookSettings(gone.url, events=("run.finished",)),),
        allow_private_targets=True,
    )
    with TestClient(create_app(app, settings)) as opened:
        yield opened


def finish(app: Bide, owner: str) -> None:
    app.start("answers", {"given": 1}, thread_id=f"of-{owner}", owner=owner)
    app.run_ready()


def test_dead_letter_is_seen_and_sent_again(app: Bide, client: TestClient, gone: Receiver) -> None:
    ada = key(app, "ada")
    finish(app, "ada")
    until(lambda: len(client.get("/outbox", headers=ada).json()) == 1, "it was given up")

    (dead,) = client.get("/outbox", params={"status": "dead"}, headers=ada).json()
    revived = client.post(f"/outbox/{dead['id']}/retry", headers=ada)
    gone.wait_for(2)
    until(lambda: client.get(f"/outbox/{dead['id']}", headers=ada).json()["status"] == "sent", "it was heard")
    again = client.post(f"/outbox/{dead['id']}/retry", headers=ada)

    assert (dead["kind"], dead["thread_id"], dead["attempts"]) == ("run.finished", "of-ada", 1)
    assert dead["error"] == "The receiver is gone for good: it answered 410."
    assert revived.status_code == 200
    assert [call.headers["webhook-id"] for call in gone.calls] == [dead["id"]] * 2
    assert again.status_code == 409
    assert client.get("/outbox", params={"status": "sent"}, headers=ada).json()[0]["id"] == dead["id"]


def test_messages_of_others_do_not_exist(app: Bide, client: TestClient) -> None:
    ada, bob = key(app, "ada"), key(app, "bob")
    finish(app, "ada")
    until(lambda: len(client.get("/outbox", headers=ada).json()) == 1, "it was given up")
    (dead,) = client.get("/outbox", headers=ada).json()

    assert client.get("/outbox", headers=bob).json() == []
    assert client.get(f"/outbox/{dead['id']}", headers=bob).status_code == 404
    assert client.get("/outbox", params={"after": dead["id"]}, headers=bob).status_code == 404
    assert client.post(f"/outbox/{dead['id']}/retry", headers=bob).status_code == 404
    assert client.get(f"/outbox/{dead['id']}", headers=ada).json()["status"] == "dead"


@pytest.mark.parametrize("path", ["/outbox", "/outbox/x", "/webhooks"])
def test_whoever_is_no_administrator_sees_nothing(app: Bide, client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 401
    assert client.get(path, headers=key(app, "ada", READ, RUN, RESOLVE)).status_code == 403


def test_receivers_are_shown_with_the_secrets_that_sign(app: Bide, client: TestClient, gone: Receiver) -> None:
    root, ada = key(app, ""), key(app, "ada")
    finish(app, "ada")
    gone.wait_for(1)

    everybodys, of_runs = client.get("/webhooks", headers=root).json()

    Webhook(everybodys["secret"]).verify(gone.calls[0].body, dict(gone.calls[0].headers))
    assert (everybodys["url"], everybodys["events"]) == (gone.url, ["run.finished"])
    assert of_runs["url"] is None
    (hers,) = client.get("/webhooks", headers=ada).json()
    assert hers["url"] is None, "who is told of everybody's threads is not hers to see"
    assert hers["secret"] not in (everybodys["secret"], of_runs["secret"])
