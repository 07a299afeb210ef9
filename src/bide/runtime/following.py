"""A thread's log, live, from any process: its events and its steps as one story.

A finished step has no line in the log; its checkpoint is that line. So two counters run side by side, and an event's id
holds both: "12.7.4be1a9" means that checkpoints up to 12 and lines up to 7 were told, of this life of the thread.
Whoever goes on from an id that was ever told gets all that was not told before it, and nothing twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from threading import Event as Signal
from typing import Any, Literal, NamedTuple

from bide.clock import elapsed
from bide.errors import GraphError, ThreadDeletedError, UnknownCheckpointError, UnknownThreadError
from bide.graph.telling import TOLD
from bide.runtime.reading import Unreadable, codec_of, decoded
from bide.runtime.registered import Graphs
from bide.runtime.views import Event, moment
from bide.store import Store
from bide.store.rows import checkpoint_id
from bide.store.tail import LineRow, StepRow, Tail, read_tail

Until = Literal["end", "rest"] | None

PAGE = 100
"""How many checkpoints, and how many lines, are read at once."""
SHORTEST_NAP, NAP_BESIDE_A_RUN, LONGEST_NAP = 0.05, 0.2, 0.5
"""Seconds between two looks. A step rings no bell, since that would cost every step: right after one the next is
looked for soon, and then less and less often. A look takes 0.1 ms on a file and 0.4 ms on PostgreSQL, so that beside a
run that takes no step for long it costs 0.2 % of a core at most."""
LIFE = 6
"""How many characters of a thread's life stand in an id."""


class Cursor(NamedTuple):
    """Up to where a thread was told."""

    seq: int = 0
    number: int = 0
    life: str = ""

    def __str__(self) -> str:
        return f"{self.seq}.{self.number}.{self.life}"


def follow(
    store: Store, graphs: Graphs, thread_id: str, *, after: str | None = None, until: Until = "end"
) -> Iterator[Event]:
    """Yield what happens in a thread; a thread that is not there is an error at once."""
    return _told(Following(store, graphs, thread_id, after, until))


def _told(following: Following) -> Iterator[Event]:
    while not following.is_over:
        yield from following.page()


async def afollow(
    store: Store, graphs: Graphs, thread_id: str, *, after: str | None = None, until: Until = "end"
) -> AsyncIterator[Event]:
    """Do what `follow` does, on an event loop."""
    from asyncio import to_thread  # sync callers need not load it

    following = await to_thread(Following, store, graphs, thread_id, after, until)
    while not following.is_over:
        for event in await to_thread(following.page):
            yield event


class Following:
    """Somebody who follows a thread, page by page."""

    def __init__(self, store: Store, graphs: Graphs, thread_id: str, after: str | None, until: Until) -> None:
        if until not in ("end", "rest", None):
            raise GraphError(f"until={until!r} is not known. There are 'end', 'rest' and None.")
        self.store = store
        self.graphs = graphs
        self.thread_id = thread_id
        self.until = until
        self.is_over = False
        self.cursor = read_cursor(after)
        self._uid = ""
        self._nap = SHORTEST_NAP
        self._heard = store.doorbell.rings
        self._ahead: Tail | None = self._begin()

    def _begin(self) -> Tail:
        """Read the first page, and see whether the cursor fits the thread."""
        tail = self._look()
        if tail is None:
            raise UnknownThreadError(
                f"There is no thread {self.thread_id!r} in {self.store.database.path!r}. Check the id, and which "
                f"database is open."
            )
        life = tail.uid[-LIFE:]
        is_other = self.cursor.life not in ("", life)
        if is_other or self.cursor.seq > tail.head or self.cursor.number > tail.events:
            raise ThreadDeletedError(
                f"The event {str(self.cursor)!r} is none of thread {self.thread_id!r} as it is now: it is another "
                f"thread's, or this one was deleted and begun anew since. To see it from its beginning, follow it "
                f"without after=…."
            )
        self._uid = tail.uid
        self.cursor = self.cursor._replace(life=life)
        return tail

    def page(self) -> list[Event]:
        """Return what comes next, in order; nothing after a nap in which nothing came."""
        tail, self._ahead = self._ahead or self._look(), None
        if tail is None or tail.uid != self._uid:
            raise ThreadDeletedError(
                f"Thread {self.thread_id!r} was deleted while it was followed, after its event {str(self.cursor)!r}."
            )
        events = [self._event(tail, told) for told in merged(tail)]
        if not events and is_at(tail, self.until):
            self.is_over = True
        elif not events:
            self._wait(NAP_BESIDE_A_RUN if tail.live in ("ready", "running") else LONGEST_NAP)
        else:
            self._nap = SHORTEST_NAP
        return [event for event in events if not event.kind.startswith(TOLD)]

    def so_far(self) -> list[Event]:
        """Return what has happened behind the last event, a page at most, without waiting for more."""
        tail, self._ahead = self._ahead or self._look(), None
        return [] if tail is None or tail.uid != self._uid else [self._event(tail, told) for told in merged(tail)]

    def _look(self) -> Tail | None:
        after = (self.cursor.seq, self.cursor.number)
        return self.store.database.read(lambda tx: read_tail(tx, self.store.bodies, self.thread_id, after, PAGE))

    def _wait(self, longest: float) -> None:
        """Nap until somebody rings, or it is time to look again."""
        began = elapsed()
        self._nap = min(self._nap, longest)
        is_rung = self.store.doorbell.wait(self._nap, self._heard)
        self._heard = self.store.doorbell.rings
        # Bells ring for all threads: who follows one does not look more often than it would after a step.
        if is_rung and (left := SHORTEST_NAP - (elapsed() - began)) > 0:
            Signal().wait(left)
        self._nap *= 2

    def _event(self, tail: Tail, told: StepRow | LineRow) -> Event:
        if isinstance(told, StepRow):
            self.cursor = self.cursor._replace(seq=told.seq)
            kind, data = "step", step_data(tail.uid, told)
        else:
            self.cursor = self.cursor._replace(number=told.number)
            kind, data = told.kind, self._data(tail.graph, told)
        at: Any = moment(told.at)
        return Event(str(self.cursor), kind, at, self.thread_id, told.run_id or None, data)

    def _data(self, graph: str, line: LineRow) -> Any:
        if line.problem is not None:
            return Unreadable(f"(event cannot be shown: {line.problem})")
        return decoded(codec_of(self.graphs, graph), line.body, "event")


def merged(tail: Tail) -> Iterator[StepRow | LineRow]:
    """Tell checkpoints and lines in one order: a line comes after the checkpoint that it names.

    Each kind keeps its own order, whatever a line says. When a full page of one kind is told, the rest of the other
    must wait: what belongs in between may be on the next page.
    """
    steps, lines = list(reversed(tail.steps)), list(reversed(tail.lines))
    ends = [rows for rows, is_cut in ((steps, False), (lines, tail.is_cut)) if is_cut or len(rows) == PAGE]
    while steps or lines:
        if lines and (not steps or lines[-1].seq < steps[-1].seq):
            yield lines.pop()
        else:
            yield steps.pop()
        if any(not rows for rows in ends):
            return


def is_at(tail: Tail, until: Until) -> bool:
    """Whether a thread of which everything was told has come to where the follower leaves."""
    if until is None:
        return False
    if until == "rest" and tail.live in ("waiting", "blocked", "dead"):
        return True
    return tail.live in (None, "dead") and not tail.queued


def step_data(uid: str, step: StepRow) -> dict[str, Any]:
    """Tell a step: what ran, what comes next, and which keys of the state it changed; not their values."""
    said: dict[str, Any] = {
        "step": step.step,
        "source": step.source,
        "nodes": list(step.nodes),
        "next": list(step.next),
        "changed": None if step.changed is None else list(step.changed),
        "checkpoint_id": checkpoint_id(uid, step.seq),
    }
    return said if step.problem is None else {**said, "problem": step.problem}


def read_cursor(after: str | None) -> Cursor:
    """Read the id of an event; `"12.7"` alone will do."""
    if after is None:
        return Cursor()
    seq, _, rest = str(after).partition(".")
    number, _, life = rest.partition(".")
    if not (seq.isdecimal() and number.isdecimal() and len(seq) < 19 and len(number) < 19):
        raise UnknownCheckpointError(
            f'after={after!r} is not the id of an event. Give one that follow() has told, as "12.7.4be1a9", or None to '
            f"begin at the beginning."
        )
    return Cursor(int(seq), int(number), life)
