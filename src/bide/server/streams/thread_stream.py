"""All runs of a thread in one stream, which stays open while the thread waits or is at rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Set

from anyio.to_thread import run_sync

from bide.runtime.following import Cursor
from bide.server.context import Context
from bide.server.streams.log import Entry, Log, Place, begin_of_run
from bide.server.streams.sse import HEARTBEAT, Part, Pulse, frame, part
from bide.server.streams.story import ENDS, Story
from bide.store.notes import run_notes

OVER = frozenset({*ENDS, "run.waiting"} - {"run.continued"})
"""Lines with which a run is over for LangGraph's clients. One that another has continued was so when it paused."""

_SETTLED = {"wait.answered": "answered", "wait.expired": "expired", "wait.cancelled": "withdrawn"}


async def thread_frames(ctx: Context, thread_id: str, modes: Set[str], place: Place | None) -> AsyncIterator[bytes]:
    """Yield what goes over the wire: from now on, or from behind the last event that was seen."""
    told, pulse = _Told(ctx, thread_id, modes), Pulse(ctx.settings.heartbeat)
    cursor = await run_sync(told.now) if place is None else place.cursor
    skipped = 0 if place is None else place.parts
    async for entry in Log(ctx, thread_id, cursor).live():
        if entry is None:
            if pulse.beat():
                yield HEARTBEAT
            continue
        parts = await run_sync(told.parts, entry)
        for number, sent in enumerate(parts, 1):
            if number > skipped:
                yield frame(sent, entry.id_of(number, len(parts)))
        skipped = 0


class _Told:
    """What is told of each entry, whichever run it is of."""

    def __init__(self, ctx: Context, thread_id: str, modes: Set[str]) -> None:
        self.ctx = ctx
        self.thread_id = thread_id
        self.modes = modes
        self._stories: dict[str, Story] = {}

    def now(self) -> Cursor:
        """Return where the log ends."""
        log = Log(self.ctx, self.thread_id, Cursor())
        log.read()
        tail = log.tail
        return Cursor() if tail is None else Cursor(tail.head, tail.events)

    def parts(self, entry: Entry) -> list[Part]:
        """Return the events of an entry."""
        run_id = entry.row.run_id
        told: list[Part] = []
        if run_id and "run_modes" in self.modes:
            told += [one for one in self._story(run_id, entry).parts(entry) if one.event != "end"]
        if "state_update" in self.modes and entry.kind == "step":
            told += [one for one in self._state(run_id or "").parts(entry) if one.event == "values"]
        if "lifecycle" in self.modes:
            told += _lifecycle(entry)
        if run_id and entry.kind in OVER:
            told.append(part("metadata", {"status": "run_done", "run_id": run_id}))
        if run_id and entry.kind in ENDS:
            self._stories.pop(run_id, None)
        return told

    def _story(self, run_id: str, entry: Entry) -> Story:
        """Return the story of a run, in the modes that it was started with, as far as it was told before an entry."""
        if run_id not in self._stories:
            notes = run_notes(self.ctx.app.store, self.thread_id, run_id)
            asked = (notes.get("kwargs") or {}).get("stream_mode") or ("values",)
            modes = (asked,) if isinstance(asked, str) else tuple(asked)
            subgraphs = bool((notes.get("kwargs") or {}).get("stream_subgraphs"))
            goes_on = bool(notes.get("goes_on"))
            story = Story(self.ctx, self.thread_id, run_id, modes, subgraphs=subgraphs, goes_on=goes_on)
            if story.is_stateful:
                self._catch_up(story, entry)
            self._stories[run_id] = story
        return self._stories[run_id]

    def _catch_up(self, story: Story, entry: Entry) -> None:
        """Let a story hear what came before: a message that has begun goes on where it was."""
        log = Log(self.ctx, self.thread_id, begin_of_run(self.ctx, self.thread_id, story.run_id))
        while before := log.read():
            for one in before:
                if not one.is_up_to(entry.before):
                    return
                story.hear(one)

    def _state(self, run_id: str) -> Story:
        return Story(self.ctx, self.thread_id, run_id, ("values",), subgraphs=False, goes_on=False)


def _lifecycle(entry: Entry) -> list[Part]:
    """Tell how a run stands, and what lets one that waits go on."""
    about = {"run_id": entry.row.run_id}
    if entry.kind.startswith("run."):
        return [part("lifecycle", {"event": entry.kind.removeprefix("run."), **about})]
    if entry.kind in _SETTLED:
        return [part("lifecycle", {"event": _SETTLED[entry.kind], **about, "wait_id": entry.body.get("wait")})]
    return []
