"""Webhooks that go out: lines of the feed become messages, and messages are sent until they are heard.

Any number of servers may do so over one database. What was made of a line is in the outbox, once; what was sent and not
noted, because a server died in between, is sent again under the same id.
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from queue import SimpleQueue
from threading import Event, Lock, Thread

from bide.clock import elapsed
from bide.errors import BideError, StoreError
from bide.failpoints import failpoint
from bide.runtime import Bide
from bide.server.hooks.receivers import OF_RUNS, Endpoint, Receiver, check_webhooks, receivers_of, settings_for
from bide.server.hooks.sending import Sent, send, signed
from bide.server.hooks.signing import Signing
from bide.server.hooks.targets import Resolve, resolve
from bide.server.settings import Settings
from bide.store.feed import FeedEvent, latest_cursor, read_feed
from bide.store.outbox import (
    Message,
    OutboxRow,
    bookmark,
    claim_messages,
    forget_messages,
    mark_failed,
    mark_sent,
    mend_feed,
    next_message_at,
    post,
)

logger = logging.getLogger("bide.server.webhooks")

PAGE = 200
SENDERS = 4
POLL_SECONDS = 0.5
"""How long it naps. A step rings no bell, so that this is how late a message may be made."""
MOVE_SECONDS = 60.0
"""After so long a bookmark is moved over lines of which nothing was made."""
TIDY_SECONDS = 3600.0
GRACE_SECONDS = 5.0
"""For messages that are on their way when the server stops; what takes longer is sent again by another."""


class Outbound:
    """The webhooks of one server."""

    def __init__(self, app: Bide, settings: Settings, *, resolve: Resolve = resolve) -> None:
        check_webhooks(settings)
        self.store = app.store
        self.settings = settings
        self.receivers = receivers_of(app, settings)
        self.endpoints = {one.name: one.webhook for one in self.receivers if isinstance(one, Endpoint)}
        self.signing = Signing(app.store, self.endpoints)
        self._resolve = resolve
        self._ahead: dict[str, tuple[str, str]] = {}
        """Of each receiver: its bookmark, and up to where there was nothing for it behind that."""
        self._seen = ""
        self._moved_at = self._tidied_at = elapsed()
        self._stopping = Event()
        self._waiting: SimpleQueue[OutboxRow | None] = SimpleQueue()
        self._busy = 0
        self._state = Lock()
        self._threads: list[Thread] = []

    # ── Running beside the server ──────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Make and send messages beside the event loop, in threads of its own, for as long as the block runs."""
        await to_thread(self.start)
        try:
            yield
        finally:
            await to_thread(self.stop)

    def start(self) -> None:
        """Begin to make and send messages."""
        self.begin()
        self._stopping.clear()
        works = {"bide-outbox": self._keep_looking}
        works |= {f"bide-webhook-{number}": self._keep_sending for number in range(SENDERS)}
        # As daemons: a receiver that answers nothing must not keep the process from ending.
        self._threads = [Thread(target=work, name=name, daemon=True) for name, work in works.items()]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Claim nothing more, and wait a moment for what is on its way."""
        self._stopping.set()
        self.store.ring()  # whoever naps looks up
        for _ in range(SENDERS):
            self._waiting.put(None)
        until = elapsed() + GRACE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, until - elapsed()))
        if any(thread.is_alive() for thread in self._threads):
            logger.warning("Some webhooks are still on their way; if they are not heard, they are sent again.")

    def begin(self) -> None:
        """Put the bookmarks of new receivers where the feed ends: they are told what happens from now on."""
        if mend_feed(self.store):
            logger.warning("This database was restored from another server's dump; its feed goes on in a new count.")
        for receiver in self.receivers:
            bookmark(self.store, receiver.name)

    def _keep_looking(self) -> None:
        """Make messages and hand out those that are due."""
        while not self._stopping.is_set():
            heard, nap = self.store.doorbell.rings, POLL_SECONDS
            try:
                self.collect()
                nap = self._hand_out()
                self._tidy()
            except StoreError as problem:
                logger.warning("Webhooks could not be looked after: %s", problem)
                self._stopping.wait(POLL_SECONDS)
            except Exception:  # whatever it was, the next round may go well, and nobody else would look
                logger.exception("Looking after webhooks was broken off; it is tried again.")
                self._stopping.wait(POLL_SECONDS)
            if nap > 0 and not self._stopping.is_set():
                self.store.doorbell.wait(nap, heard)

    def _hand_out(self) -> float:
        """Claim as many messages as there are free senders; return for how long there is nothing to do."""
        with self._state:
            free = SENDERS - self._busy
        claimed = claim_messages(self.store, free)
        with self._state:
            self._busy += len(claimed)
        for row in claimed:
            self._waiting.put(row)
        if len(claimed) == free:
            return 0.05  # others may be due as well, as soon as somebody is free
        due = next_message_at(self.store)
        left = POLL_SECONDS if due is None else (due - self.store.clock.now()) / 1000
        return min(POLL_SECONDS, max(0.01, left))

    def _keep_sending(self) -> None:
        """Send one message after the other."""
        while True:
            row = self._waiting.get()
            if row is None:
                return
            try:
                if not self._stopping.is_set():
                    self.deliver(row)
            except BideError as problem:
                logger.warning("What came of webhook %s could not be noted: %s", row.message_id, problem)
            except Exception:
                logger.exception("Webhook %s was broken off; it is sent again.", row.message_id)
            finally:
                with self._state:
                    self._busy -= 1

    # ── Lines to messages ──────────────────────────────────────────────────────────────────────────────────────────

    def collect(self) -> int:
        """Turn all lines that are new into messages; return how many messages were made."""
        latest = latest_cursor(self.store)
        if latest == self._seen:
            return 0
        is_to_move = elapsed() - self._moved_at > MOVE_SECONDS
        made = sum(self._collect_for(receiver, is_to_move) for receiver in self.receivers)
        self._moved_at = elapsed() if is_to_move else self._moved_at
        self._seen = latest
        return made

    def _collect_for(self, receiver: Receiver, is_to_move: bool) -> int:
        made = 0
        while not self._stopping.is_set():
            old = bookmark(self.store, receiver.name)
            known, ahead = self._ahead.get(receiver.name, (old, old))
            page = read_feed(self.store, ahead if known == old else old, PAGE, receiver.owner, kinds=receiver.lines)
            messages = [message for event in page.events for message in _made_of(receiver, event)]
            if messages or is_to_move:
                # If another server has moved it, that one has made them: look again from there.
                made += len(messages) if post(self.store, receiver.name, old, page.cursor, messages) else 0
            else:
                self._ahead[receiver.name] = (old, page.cursor)
            if not page.is_more:
                break
        return made

    # ── Messages to receivers ──────────────────────────────────────────────────────────────────────────────────────

    def send_due(self, most: int = SENDERS) -> int:
        """Send what is due here and now, one after the other; return how many messages that were."""
        claimed = claim_messages(self.store, most)
        for row in claimed:
            self.deliver(row)
        return len(claimed)

    def deliver(self, row: OutboxRow) -> None:
        """Send a claimed message, and note what came of it."""
        sent = self._send(row)
        failpoint("outbox:sent")
        if sent.is_heard:
            mark_sent(self.store, row)
            return
        status = mark_failed(self.store, row, sent.error, wait=sent.wait, is_hopeless=sent.is_hopeless)
        level = logging.ERROR if status == "dead" else logging.INFO
        logger.log(level, "Webhook %s was not heard (attempt %d): %s", row.message_id, row.attempts, sent.error)

    def _send(self, row: OutboxRow) -> Sent:
        endpoint = self.endpoints.get(row.to)
        if endpoint is None and row.to != OF_RUNS:
            return Sent(False, "No webhook to this address is set up in the server that had to send it.")
        now = self.store.clock.now()
        headers = signed(row.message_id, now, row.payload, self.signing.secrets_for(row.to, row.owner))
        settings = settings_for(self.settings, endpoint)
        return send(row.url, row.payload, headers, settings, now=now, resolve=self._resolve)

    def _tidy(self) -> None:
        if elapsed() - self._tidied_at > TIDY_SECONDS:
            self._tidied_at = elapsed()
            forget_messages(self.store)


def _made_of(receiver: Receiver, event: FeedEvent) -> list[Message]:
    """Make the messages of a line; one of which nothing can be made must not keep back those behind it."""
    try:
        return receiver.messages(event)
    except StoreError:
        raise  # it is the database, not the line
    except BideError:
        logger.exception("Nobody can be told of %s in thread %s.", event.kind, event.thread_id)
        return []
