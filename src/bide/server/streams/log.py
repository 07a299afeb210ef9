"""A thread's log as a stream reads it: checkpoints and lines in one order, from any place in it, live.

An id names a place: "12.7.4be1a9" is behind checkpoint 12 and line 7 of this life of the thread, and "12.7.4be1a9~2"
behind the second part of what comes next. Whoever goes on from an id gets what was not told before it, and nothing
twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anyio.to_thread import run_sync

from bide.errors import ThreadDeletedError, UnknownCheckpointError
from bide.graph.telling import TOLD
from bide.runtime.following import LIFE, PAGE, Cursor, merged, read_cursor
from bide.runtime.reading import codec_of, decoded
from bide.server.context import Context
from bide.server.problems import Problem
from bide.store.database import Transaction
from bide.store.needed import PLAIN
from bide.store.tail import LineRow, StepRow, Tail, read_tail

FROM_THE_START = ("", "-1", "-", "0")
"""What clients send as the last id when they have seen nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody stands in a log."""

    cursor: Cursor
    parts: int = 0
    """How many parts of what comes next were told."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened."""

    before: Cursor
    after: Cursor
    row: StepRow | LineRow
    graph: str
    body: Mapping[str, Any] = field(default_factory=dict)
    """Of a line: what it says; nothing if that cannot be read."""

    @property
    def kind(self) -> str:
        """What it is: `step`, or the kind of the line."""
        return "step" if isinstance(self.row, StepRow) else self.row.kind

    @property
    def is_told(self) -> bool:
        """Whether it is part of what a run was asked to tell."""
        return self.kind.startswith(TOLD)

    def is_up_to(self, cursor: Cursor) -> bool:
        """Whether it was told to whoever stands there. Each counter speaks for itself."""
        if isinstance(self.row, StepRow):
            return self.row.seq <= cursor.seq
        return self.row.number <= cursor.number

    def id_of(self, part: int, parts: int) -> str:
        """Return the id of one of the parts that are made of it, counted from 1."""
        return str(self.after) if part == parts else f"{self.before}~{part}"


def read_place(last_id: str | None) -> Place | None:
    """Read the id that a client has seen last; None if it begins at the beginning."""
    if last_id is None or last_id.strip() in FROM_THE_START:
        return None
    text, _, parts = last_id.strip().partition("~")
    try:
        cursor = read_cursor(text)
    except UnknownCheckpointError:
        said = f"Last-Event-ID {last_id!r} is not the id of an event of this server."
        raise Problem(422, f"{said} Give one that it has sent, or none to begin at the beginning.") from None
    return Place(cursor, int(parts) if parts.isdecimal() else 0)


class Log:
    """One reader of a thread's log."""

    def __init__(self, ctx: Context, thread_id: str, cursor: Cursor = Cursor()) -> None:  # noqa: B008 - a tuple
        self.ctx = ctx
        self.thread_id = thread_id
        self.cursor = cursor
        self.tail: Tail | None = None
        """What was read last, for whoever wants to know how the thread stands."""

    async def page(self) -> list[Entry] | None:
        """Return what comes next, perhaps nothing; None if there is no such thread, or not this life of it."""
        return await run_sync(self.read)

    def read(self) -> list[Entry] | None:
        """Do what `page` does, in the thread that calls it."""
        store = self.ctx.app.store
        after = (self.cursor.seq, self.cursor.number)

        def look(tx: Transaction) -> Tail | None:
            return read_tail(tx, store.bodies, self.thread_id, after, PAGE)

        tail = self.tail = store.database.read(look)
        if tail is None or not _fits(self.cursor, tail):
            return None
        self.cursor = self.cursor._replace(life=tail.uid[-LIFE:])
        return [self._entry(tail, row) for row in merged(tail)]

    def _entry(self, tail: Tail, row: StepRow | LineRow) -> Entry:
        before = self.cursor
        if isinstance(row, StepRow):
            self.cursor = before._replace(seq=row.seq)
            return Entry(before, self.cursor, row, tail.graph)
        self.cursor = before._replace(number=row.number)
        codec = PLAIN if row.kind.startswith(TOLD) else codec_of(self.ctx.app.graphs, tail.graph)
        body = None if row.problem is not None else decoded(codec, row.body, "event")
        return Entry(before, self.cursor, row, tail.graph, body if isinstance(body, Mapping) else {})

    async def live(self) -> AsyncIterator[Entry | None]:
        """Yield what happens, for ever; None whenever everything so far was told, and after each quiet heartbeat.

        It ends when the server stops, or the thread is gone.
        """
        ctx = self.ctx
        with ctx.hub.watch(self.thread_id) as watch:
            while not ctx.stopping.is_set():
                entries = await self.page()
                if entries is None:
                    return
                for entry in entries:
                    yield entry
                if not entries:
                    yield None
                    await watch.news(ctx.settings.heartbeat)


def _fits(cursor: Cursor, tail: Tail) -> bool:
    return cursor.life in ("", tail.uid[-LIFE:]) and cursor.seq <= tail.head and cursor.number <= tail.events


def check_place(ctx: Context, thread_id: str, place: Place | None) -> None:
    """Refuse to go on from an event that is none of the thread's: silence would look as if nothing had happened."""
    if place is not None and Log(ctx, thread_id, place.cursor).read() is None:
        raise ThreadDeletedError(
            f"The event {str(place.cursor)!r} is none of thread {thread_id!r} as it is now: it is another thread's, or "
            f"this one was deleted and begun anew since. To see it from its beginning, leave out Last-Event-ID."
        )


def begin_of_run(ctx: Context, thread_id: str, run_id: str) -> Cursor:
    """Return where the story of a run begins."""
    key = {"thread_id": thread_id, "run_id": run_id}
    row = ctx.app.store.database.read(lambda tx: tx.one("first_event_of_run", key))
    if row is None or row[0] is None:
        return Cursor()
    return Cursor(row[1], row[0] - 1)
