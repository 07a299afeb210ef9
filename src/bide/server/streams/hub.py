"""Who follows what: one task looks for all followers which threads have news, and wakes those who follow them.

A thousand open streams cost one look at a time, and no thread. Nothing is queued here: whoever is woken reads for
itself, as fast as its client takes it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from bide.clock import elapsed
from bide.errors import BideError, StoreError
from bide.store import Store
from bide.store.database import Transaction
from bide.store.feed import latest_cursor

logger = logging.getLogger("bide.server")

BESIDE_A_RUN, AT_REST = 0.05, 0.5
"""Seconds between two looks, while one of the followed threads is driven, and while none is. A step rings no bell."""
AT_ONCE = 500
"""So many threads are looked at in one transaction."""

News = tuple[Any, ...] | None
"""What tells that something happened: the counters of a thread; None when it is not there."""


class Watch:
    """Somebody who follows a thread, or all of them."""

    def __init__(self, thread_id: str | None) -> None:
        self.thread_id = thread_id
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Tell that there is something to read."""
        self._news.set()

    async def news(self, seconds: float) -> bool:
        """Wait until there is something to read, or so many seconds; return whether there may be."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        self._news.clear()
        return True


class Hub:
    """The followers of one server."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._watches: dict[str | None, set[Watch]] = {}
        self._known: dict[str, News] = {}
        self.end = ""
        """Where the feed of all threads ended at the last look: those who follow it read only when that has moved."""
        self.stopping: asyncio.Event | None = None
        """Set when the server shuts down: whoever waits for news then hears of it at once."""
        self._somebody = asyncio.Event()
        # One for looking, one for standing at the doorbell, one for what clients have left behind: none of them may
        # wait for the requests of others.
        self._threads = ThreadPoolExecutor(3, thread_name_prefix="bide-hub")

    @property
    def followers(self) -> int:
        """How many follow something."""
        return sum(map(len, self._watches.values()))

    @contextmanager
    def watch(self, thread_id: str | None) -> Iterator[Watch]:
        """Follow a thread for a while; None follows all of them."""
        watch = Watch(thread_id)
        self._watches.setdefault(thread_id, set()).add(watch)
        self._somebody.set()
        try:
            yield watch
        finally:
            self._watches[thread_id].discard(watch)
            if not self._watches[thread_id]:
                del self._watches[thread_id]
                self._known.pop(thread_id or "", None)

    def later(self, work: Callable[[], object]) -> None:
        """Do something in a thread, though whoever asked for it is gone."""
        self._threads.submit(_tried, work)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look for news for as long as the server runs."""
        tasks = [asyncio.create_task(work, name="bide-hub") for work in (self._keep_looking(), self._tell_of_the_end())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._threads.shutdown(wait=False)

    async def _tell_of_the_end(self) -> None:
        if self.stopping is not None:
            await self.stopping.wait()
            for thread_id in self._watches:
                self._wake(thread_id)

    async def _keep_looking(self) -> None:
        heard = self.store.doorbell.rings
        while True:
            if not self._watches:
                self._somebody.clear()
                await self._somebody.wait()
            began = elapsed()
            try:
                heard = await self._look_and_nap(heard)
            except Exception:  # without it nobody would hear of anything again
                logger.exception("Nobody could look for news.")
                await asyncio.sleep(AT_REST)
            # Bells ring for all threads, perhaps many times: nobody needs more than a look in a while.
            await asyncio.sleep(max(0.0, BESIDE_A_RUN - (elapsed() - began)))

    async def _look_and_nap(self, heard: int) -> int:
        """Look once, and wait until the bell rings or it is time to look again; return how often it has rung."""
        loop = asyncio.get_running_loop()
        nap = BESIDE_A_RUN if await self._look(loop) else AT_REST
        await loop.run_in_executor(self._threads, partial(self.store.doorbell.wait, nap, heard))
        return self.store.doorbell.rings

    async def _look(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Wake those whose threads have news; return whether one of these is being driven."""
        wanted = [thread_id for thread_id in self._watches if thread_id is not None]
        try:
            found = await loop.run_in_executor(self._threads, self._peek, wanted)
            if None in self._watches:
                await loop.run_in_executor(self._threads, self._look_at_all)
        except StoreError as problem:
            logger.warning("Nobody could look for news: %s", problem)
            return False
        for thread_id, news in found.items():
            if thread_id in self._watches and self._known.get(thread_id, ()) != news:
                self._known[thread_id] = news
                self._wake(thread_id)
        self._wake(None)
        return any(news is not None and news[3] in ("ready", "running") for news in found.values())

    def _wake(self, thread_id: str | None) -> None:
        for watch in self._watches.get(thread_id, ()):
            watch.wake()

    def _look_at_all(self) -> None:
        self.end = latest_cursor(self.store)

    def _peek(self, wanted: list[str]) -> dict[str, News]:
        found: dict[str, News] = {}
        for begin in range(0, len(wanted), AT_ONCE):
            found |= self.store.database.read(partial(_counters, wanted[begin : begin + AT_ONCE]))
        return found


def _tried(work: Callable[[], object]) -> None:
    try:
        work()
    except BideError as problem:
        logger.warning("What was to be done after a client had left failed: %s", problem)


def _counters(wanted: list[str], tx: Transaction) -> dict[str, News]:
    asked = {thread_id: tx.ask("peek_thread", {"thread_id": thread_id}) for thread_id in wanted}
    return {thread_id: next(iter(answer()), None) for thread_id, answer in asked.items()}
