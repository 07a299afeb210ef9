"""A run as server-sent events: from its beginning or from the last event that was seen, and live until it rests."""

from __future__ import annotations

from collections.abc import AsyncIterator

from anyio.to_thread import run_sync

from bide.server.context import Context
from bide.server.streams.log import Entry, Log, Place, begin_of_run
from bide.server.streams.sse import HEARTBEAT, Part, Pulse, frame
from bide.server.streams.story import Story
from bide.types import RunStatus


class RunStream:
    """Somebody who streams a run."""

    def __init__(self, ctx: Context, story: Story, place: Place | None) -> None:
        self.ctx = ctx
        self.story = story
        self.place = place
        self.is_over = False
        """Whether the run was told to its end; else its reader has left, or the server stops."""

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield what goes over the wire. It ends with the run; when the server stops, it ends without an `end`."""
        story, pulse = self.story, Pulse(self.ctx.settings.heartbeat)
        log = await run_sync(self._open)
        async for entry in log.live():
            late = [entry] if entry is not None else await run_sync(self._left, log)
            if late is None:
                if pulse.beat():
                    yield HEARTBEAT
                continue
            for one in late:
                for sent in await self._frames_of(one):
                    yield sent
            if not late and story.status is None:
                yield frame(story.end(await run_sync(self._status)), str(log.cursor))
            if not late or story.status is not None:
                self.is_over = True
                return

    def _open(self) -> Log:
        story = self.story
        begin = begin_of_run(self.ctx, story.thread_id, story.run_id)
        is_there = self.place is not None and not story.is_stateful
        return Log(self.ctx, story.thread_id, self.place.cursor if is_there and self.place is not None else begin)

    async def _frames_of(self, entry: Entry) -> list[bytes]:
        if self.place is not None and entry.is_up_to(self.place.cursor):
            await run_sync(self.story.hear, entry)
            return []
        parts = await self._parts(entry)
        return [
            frame(sent, entry.id_of(number, len(parts)))
            for number, sent in enumerate(parts, 1)
            if not self._was_told(entry, number)
        ]

    async def _parts(self, entry: Entry) -> list[Part]:
        if self.story.needs_the_store(entry):
            return await run_sync(self.story.parts, entry)
        return self.story.parts(entry)

    def _was_told(self, entry: Entry, number: int) -> bool:
        """Whether a part of what comes next behind the place was seen before."""
        place = self.place
        return place is not None and entry.before[:2] == place.cursor[:2] and number <= place.parts

    def _left(self, log: Log) -> list[Entry] | None:
        """Return what is left to be told of a run that rests, perhaps nothing; None while it does not rest.

        How it stands is read first: whatever it told before it came to rest is in the log by then.
        """
        return (log.read() or []) if self._status().is_at_rest else None

    def _status(self) -> RunStatus:
        row = self.ctx.app.store.run(self.story.thread_id, self.story.run_id)
        return RunStatus.DONE if row is None else row.status
