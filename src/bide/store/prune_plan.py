"""What of one thread may go: found on a snapshot, without holding anybody up.

These always stay, whatever the rule says: where each graph of the thread stands; where a run is to begin, and where
one began that is not over and may be rolled back; both ends of a fork, the checkpoint that it began at and its first
one; what a checkpoint that stays needs to be read; graphs inside its tasks; and graphs that keep their state, as they
stood there. So a thread that runs or waits goes on as if nothing had gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from bide.store.bodies import Bodies
from bide.store.database import Row, Transaction
from bide.store.frames import Frame
from bide.store.links import LASTING, LinkedHistory, Links, outer_task, planned_in, tasks_around
from bide.store.retention import Point, Rule
from bide.store.unbegun import promised_points

T = TypeVar("T")

_ENDED = frozenset(["done", "failed", "cancelled"])


class LogKey(NamedTuple):
    """A row of the channel log without its body."""

    ns: str
    channel: str
    seq: int
    size: int


class Plan(NamedTuple):
    """What of a thread goes."""

    thread_id: str
    uid: str
    heads: dict[str, int]
    """Where each of its graphs stood when this was planned."""
    points: list[list[Point]]
    """Checkpoints that go: one list for each stretch without a gap, the newest first."""
    hidden: list[Point]
    """Checkpoints that go for readers, and stay because others need them."""
    logged: list[list[LogKey]]
    """Rows of the channel log that go, stretch by stretch."""
    waits: list[str]
    runs: list[str]
    events: tuple[int, int]
    """Events from the first number on go, up to the second, which stays."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        first, stays = self.events
        return not (self.points or self.hidden or self.logged or self.waits or self.runs or first < stays)


def plan_thread(tx: Transaction, bodies: Bodies, thread_id: str, rule: Rule) -> Plan | None:
    """Say what of a thread goes; None if there is no such thread."""
    thread = tx.one("read_thread", {"thread_id": thread_id})
    if thread is None:
        return None
    survey = _Survey(tx, bodies, thread_id, rule)
    survey.look()
    return survey.plan(str(thread[0]))


class _Survey:
    """One thread, as retention sees it."""

    def __init__(self, tx: Transaction, bodies: Bodies, thread_id: str, rule: Rule) -> None:
        self.tx = tx
        self.bodies = bodies
        self.thread_id = thread_id
        self.rule = rule
        self.points: dict[str, dict[int, Point]] = defaultdict(dict)
        for row in tx.all("list_points", {"thread_id": thread_id}):
            point = Point(*row)
            self.points[point.ns][point.seq] = point
        self.heads = {ns: max(points) for ns, points in self.points.items()}
        self.kept: dict[str, set[int]] = {}
        """The checkpoints of each graph that stay; a graph that is not here goes whole."""
        self._has_lasting = any(ns.startswith(LASTING) for ns in self.points)
        self._histories: dict[str, LinkedHistory] = {}
        self._frames: dict[tuple[str, int], Frame] = {}
        self._links: dict[tuple[str, int], Links] = {}
        self._tasks: set[str] = set()
        self._origins: set[str] = set()

    # ── What stays ─────────────────────────────────────────────────────────────────────────────────────────────────

    def look(self) -> None:
        """Find out which checkpoints stay: each that does may bring others along."""
        for ns in self.points:
            if not ns or ns.startswith(LASTING):
                self.kept[ns] = self._kept_of(ns)
        while self._bring_along():
            continue

    def _kept_of(self, ns: str) -> set[int]:
        """Return what stays of one graph for its own sake."""
        seen = {seq: point for seq, point in self.points[ns].items() if not point.pruned}
        kept = self.rule.kept(seen.values()) | {self.heads[ns]}
        if not ns:
            kept |= (promised_points(self.tx, self.bodies, self.thread_id) | self._beginnings()) & seen.keys()
        for seq, point in seen.items():
            # A run with durability="exit" skips numbers, too; only what was not computed from it is a branch.
            if point.parent is not None and point.parent != seq - 1 and self._frame(ns, seq).start > point.parent:
                kept |= {seq, point.parent} & seen.keys()
        return kept

    def _beginnings(self) -> set[int]:
        """Return the first checkpoint of the run that is not over, and the one that it was written on."""
        live = {run_id for run_id, status in self._all("list_run_ids") if status not in _ENDED}
        points = (point for _, point in sorted(self.points[""].items()))
        first = next((point for point in points if point.run_id in live), None)
        return set() if first is None else {first.seq, first.parent or 0}

    def _bring_along(self) -> bool:
        """Keep the graphs that those kept so far hold on to; return whether any came."""
        before = sum(len(kept) for kept in self.kept.values())
        self._read_links()
        for ns in sorted(self.points.keys() - self.kept.keys(), key=lambda ns: ns.count("|")):
            if self._is_planned(outer_task(ns)):
                self.kept[ns] = self._kept_of(ns)
        for links in self._links.values():
            for ns, seq in links.stands.items():
                point = self.points.get(ns, {}).get(seq)
                if point is not None and not point.pruned:
                    self.kept[ns].add(seq)
        return sum(len(kept) for kept in self.kept.values()) > before

    def _read_links(self) -> None:
        """Read those checkpoints that may hold on to more than their own number says.

        A task is named after the checkpoint that it was planned at, and after an edit it may come next at another one,
        too. So where the one before stays, all is known.
        """
        for ns, seq in list(self._stays()):
            if self._has_lasting or self._is_first(ns, seq):
                self._note_links(ns, seq)

    def _note_links(self, ns: str, seq: int) -> None:
        if (ns, seq) not in self._links:
            links = self._links[ns, seq] = self._history(ns).links(seq, self._frame(ns, seq))
            self._tasks |= links.tasks
            self._origins |= links.origins

    def _is_first(self, ns: str, seq: int) -> bool:
        """Whether the one before it goes: else it needs nothing older that the one before does not need, too."""
        parent = self.points[ns][seq].parent
        return parent != seq - 1 or parent not in self.kept[ns]

    def _is_planned(self, task_id: str) -> bool:
        """Whether a task is one of those that come next at a checkpoint that stays."""
        return task_id in self._tasks or self._is_numbered(task_id)

    def _is_numbered(self, task_id: str) -> bool:
        ns, lasting, seq = planned_in(task_id)
        return seq is not None and any(seq in self.kept.get(place, ()) for place in (ns, lasting))

    # ── What goes ──────────────────────────────────────────────────────────────────────────────────────────────────

    def plan(self, uid: str) -> Plan:
        """Write down what goes."""
        needed = {place: self._frame(*place) for place in self._stays() if self._is_first(*place)}
        bases = {(ns, frame.base) for (ns, _), frame in needed.items() if frame.base is not None}
        runs = [(str(run_id), status) for run_id, status in self._all("list_run_ids")]
        waits = list(self._waits())
        used = {self.points[ns][seq].run_id for ns, seq in (*self._stays(), *bases)}
        used |= {run_id for _, run_id, is_gone in waits if not is_gone}
        return Plan(
            self.thread_id,
            uid,
            self.heads,
            [stretch for ns in self.points for stretch in self._stretches(ns, bases)],
            [point for point in self._gone() if (point.ns, point.seq) in bases and not point.pruned],
            list(self._logged_stretches(needed)),
            [wait_id for wait_id, _, is_gone in waits if is_gone],
            self._runs(runs, used),
            self._events(self._newest_run(runs)),
        )

    def _stays(self) -> Iterator[tuple[str, int]]:
        return ((ns, seq) for ns, seqs in self.kept.items() for seq in seqs)

    def _gone(self) -> Iterator[Point]:
        for ns, points in self.points.items():
            kept = self.kept.get(ns, set())
            yield from (point for seq, point in points.items() if seq not in kept)

    def _stretches(self, ns: str, bases: set[tuple[str, int]]) -> Iterator[list[Point]]:
        """Give the checkpoints of a graph that go, newest first: a base must outlive those that need it."""
        kept = self.kept.get(ns, set())
        newest_first = sorted(self.points[ns].values(), key=lambda point: -point.seq)
        return _stretches(newest_first, lambda point: point.seq not in kept and (ns, point.seq) not in bases)

    def _logged_stretches(self, needed: dict[tuple[str, int], Frame]) -> Iterator[list[LogKey]]:
        spans: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for (ns, _), frame in needed.items():
            for channel, held in frame.logged.items():
                spans[ns, channel] += held

        def is_gone(key: LogKey) -> bool:
            # A group is named after its first row, which whoever needs any of its rows needs, too.
            is_needed = any(first <= key.seq <= last for first, last in spans[key.ns, key.channel])
            return not is_needed and key.seq not in self.kept.get(key.ns, ())

        rows: dict[tuple[str, str], list[LogKey]] = defaultdict(list)
        for row in self._all("list_logged"):
            key = LogKey(*row)
            rows[key.ns, key.channel].append(key)
        for keys in rows.values():
            yield from _stretches(keys, is_gone)

    def _waits(self) -> Iterator[tuple[str, str, bool]]:
        """Give each wait, the run that asked, and whether it goes: no checkpoint that stays can show it."""
        known = self._tasks | self._origins
        for wait_id, task_id, run_id, is_settled in self._all("list_waits"):
            is_shown = any(task in known or self._is_numbered(task) for task in tasks_around(task_id))
            yield str(wait_id), str(run_id), bool(is_settled) and not is_shown

    def _runs(self, runs: list[tuple[str, str]], used: set[str]) -> list[str]:
        """Return the ended runs that nothing which stays came from; the newest one tells how the thread stands."""
        used |= {str(run_id) for (run_id,) in self._all("list_runs_in_journal")}
        return [run_id for run_id, status in runs[:-1] if status in _ENDED and run_id not in used]

    def _newest_run(self, runs: list[tuple[str, str]]) -> str:
        """Name the run that is live, or that brought the thread where it stands; ids of one millisecond do not sort."""
        live = [run_id for run_id, status in runs if status not in _ENDED]
        head = self.points[""][self.heads[""]].run_id if self.heads.get("") else ""
        return live[0] if live else head or (runs[-1][0] if runs else "")

    def _events(self, newest_run: str) -> tuple[int, int]:
        own = [point for point in self.points.get("", {}).values() if not point.pruned]
        oldest = min(self.rule.kept(own) or {self.heads.get("", 0)})
        params = {"thread_id": self.thread_id, "seq": oldest, "run_id": newest_run}
        first, stays = self.tx.one("find_events_kept", params) or (None, None)
        return (0, 0) if first is None or stays is None else (first, stays)

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _all(self, query: str) -> Sequence[Row]:
        return self.tx.all(query, {"thread_id": self.thread_id})

    def _history(self, ns: str) -> LinkedHistory:
        if ns not in self._histories:
            self._histories[ns] = LinkedHistory(self.tx, self.bodies, self.thread_id, ns)
        return self._histories[ns]

    def _frame(self, ns: str, seq: int) -> Frame:
        if (ns, seq) not in self._frames:
            self._frames[ns, seq] = self._history(ns).frame(seq)
        return self._frames[ns, seq]


def _stretches(rows: Iterable[T], is_gone: Callable[[T], bool]) -> Iterator[list[T]]:
    """Give those rows that go, each list as long as nothing between them stays."""
    stretch: list[T] = []
    for row in rows:
        if is_gone(row):
            stretch.append(row)
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch
