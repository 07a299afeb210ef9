"""Who is told of what: the receivers that are set up, and whoever was named when a run was started."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Protocol

from bide.clock import iso
from bide.errors import SettingsError
from bide.runtime import Bide
from bide.server.hooks.sending import read_secrets
from bide.server.hooks.stories import answered_waits, created_waits, finished_run, run_as_clients_know_it
from bide.server.hooks.targets import TargetError, read_target
from bide.server.settings import OutgoingKind, Settings, WebhookSettings
from bide.shape.shown import jsonable
from bide.store.feed import FeedEvent
from bide.store.needed import PLAIN
from bide.store.notes import run_notes
from bide.store.outbox import Message

ENDS = {"run.done": "done", "run.failed": "failed", "run.cancelled": "cancelled", "run.dead": "dead"}
"""Lines that end a run, and how. A dead one does not go on by itself either."""
PAUSE = "run.waiting"

_LINES: Mapping[OutgoingKind, frozenset[str]] = {
    "run.finished": frozenset(ENDS),
    "wait.created": frozenset([PAUSE]),
    # A script that answers and goes on with the run itself writes the second.
    "wait.answered": frozenset(["wait.answered", "run.resumed"]),
}
OF_RUNS = "run-webhooks"
"""The reader that sees to the webhooks which clients named when they started a run."""


class Receiver(Protocol):
    """Somebody who reads the feed, and what becomes of it for them."""

    @property
    def name(self) -> str:
        """Under which its bookmark is kept, and its messages are signed."""

    @property
    def owner(self) -> str | None:
        """Whose threads it is told of."""

    @property
    def lines(self) -> frozenset[str]:
        """The kinds of lines that it cares about."""

    def messages(self, event: FeedEvent) -> list[Message]:
        """Make of a line what is sent."""


@dataclass(frozen=True)
class Endpoint:
    """A receiver that is set up."""

    app: Bide
    webhook: WebhookSettings

    @property
    def name(self) -> str:
        """Its own address decides: the same one goes on where it was, in another order and with other events."""
        said = f"{self.webhook.url}\n{'' if self.webhook.owner is None else 'of ' + self.webhook.owner}"
        return f"webhook/{blake2b(said.encode(), digest_size=12).hexdigest()}"

    @property
    def owner(self) -> str | None:
        """Whose threads it is told of."""
        return self.webhook.owner

    @property
    def lines(self) -> frozenset[str]:
        """The kinds of lines that it cares about."""
        return frozenset(line for kind in self.webhook.events for line in _LINES[kind])

    def messages(self, event: FeedEvent) -> list[Message]:
        """Tell what has happened, in the envelope of Standard Webhooks."""
        return [
            self._message(event, kind, story)
            for kind in self.webhook.events
            if event.kind in _LINES[kind]
            for story in self._stories(kind, event)
        ]

    def _stories(self, kind: OutgoingKind, event: FeedEvent) -> Sequence[Mapping[str, Any]]:
        if kind == "run.finished":
            return [finished_run(self.app, event, ENDS[event.kind])]
        return created_waits(self.app, event) if kind == "wait.created" else answered_waits(self.app, event)

    def _message(self, event: FeedEvent, kind: OutgoingKind, story: Mapping[str, Any]) -> Message:
        payload = written({"type": kind, "timestamp": iso(event.at), "data": story})
        message_id = id_of(self.name, kind, event, story.get("wait_id", ""))
        return Message(message_id, event.owner, event.thread_id, kind, self.name, self.webhook.url, payload)


@dataclass(frozen=True)
class RunWebhooks:
    """Those who were named when a run was started, as clients of LangGraph do: told when that run is at its end, or
    pauses."""

    app: Bide
    name: str = OF_RUNS
    owner: str | None = None
    lines: frozenset[str] = frozenset([*ENDS, PAUSE])

    def messages(self, event: FeedEvent) -> list[Message]:
        """Tell how the run stands, as its client knows it."""
        if event.run_id is None:
            return []
        notes = run_notes(self.app.store, event.thread_id, event.run_id)
        url = notes.get("webhook")
        if not isinstance(url, str) or not url:
            return []
        story = run_as_clients_know_it(self.app, event, ENDS.get(event.kind, "waiting"), notes)
        if story is None:
            return []
        message_id = id_of(self.name, "run.finished", event, "")
        return [Message(message_id, event.owner, event.thread_id, "run.finished", self.name, url, written(story))]


def receivers_of(app: Bide, settings: Settings) -> tuple[Receiver, ...]:
    """Return all receivers of a server."""
    return (*(Endpoint(app, webhook) for webhook in settings.webhooks), RunWebhooks(app))


def settings_for(settings: Settings, endpoint: WebhookSettings | None) -> Settings:
    """Return by which rules a receiver is called: whoever sets a server up may name one in the own network."""
    return replace(settings, allow_private_targets=True) if endpoint is not None and endpoint.is_private else settings


def check_webhooks(settings: Settings) -> None:
    """Refuse receivers that could never be told, before the server starts."""
    seen: set[tuple[str, str | None]] = set()
    for webhook in settings.webhooks:
        key = webhook.url, webhook.owner
        try:
            read_target(webhook.url, settings_for(settings, webhook))
            if webhook.secret is not None:
                read_secrets(webhook.secret)
        except (TargetError, SettingsError) as problem:
            raise SettingsError(f"The webhook to {webhook.url!r} cannot be sent: {problem}") from None
        if key in seen:
            raise SettingsError(f"Two webhooks go to {webhook.url!r}. Make one of them, with the events of both.")
        seen.add(key)


def written(payload: Mapping[str, Any]) -> str:
    """Write a payload as it is sent and signed."""
    return json.dumps(jsonable(payload), ensure_ascii=False, separators=(",", ":"))


def id_of(name: str, kind: str, event: FeedEvent, part: str) -> str:
    """Name a message by what it tells to whom: made again, it is the same one."""
    return "msg_" + PLAIN.digest([name, kind, event.thread_id, event.number, event.at, part])[:32]
