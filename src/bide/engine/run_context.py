"""What all tasks of one graph share in one run, and what they find around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bide.codec import Codec
from bide.engine.opening import Request
from bide.engine.spec import GraphSpec
from bide.engine.values import Begun, Emit, JournalEntry, Task

if TYPE_CHECKING:
    from bide.clock import Clock
    from bide.engine.context import TaskContext


class Journal(Protocol):
    """Where the steps of a task are kept, durably, as soon as they are made; and what saves the tasks' graph."""

    codec: Codec
    store: Any
    blocking: bool

    def perform(self, effect: Any) -> Any:
        """Do one of Load, Begin, Prepare, Record, Commit, Edit."""
        ...

    def abandon(self, reason: BaseException) -> None:
        """Let go of a run that its caller has dropped; a no-op when it has ended."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether steps may have been made that are not saved yet."""
        ...

    def catch_up(self) -> None:
        """Make everything so far durable."""
        ...

    def check_held(self) -> None:
        """Raise LeaseLostError if the run is no longer ours: its steps must not go on."""
        ...

    def intend(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep that a step is about to be made."""
        ...

    def keep(self, task: Task, key: str, entry: JournalEntry) -> None:
        """Keep the result of a step."""
        ...

    def is_unchanged(self, key: str, value: Any) -> bool:
        """Say whether a state key is stored with just this value."""
        ...

    def transact(self, task: Task, key: str, entry: JournalEntry, work: Callable[[Any], Any]) -> Any:
        """Run `work` with a database connection and keep its result in the same transaction."""
        ...

    def spawn(self, task: Task, key: str, entry: JournalEntry, start: Any) -> None:
        """Start a child thread, and keep that it was, in one transaction."""
        ...

    def inside(self, spec: GraphSpec, ns: str, prefix: str) -> Any:
        """Return the journal of a graph inside a task of this one; it saves that graph's steps, too."""
        ...


class Cache(Protocol):
    """Where results of nodes with a `CachePolicy` are kept."""

    def get(self, place: str, key: str) -> bytes | None:
        """Return what is kept under a key, unless its time is over."""
        ...

    def put(self, place: str, key: str, body: bytes, ttl: float | None) -> None:
        """Keep a result, for so many seconds."""
        ...


class Surroundings(NamedTuple):
    """What a run finds around it: the same for the graphs inside its tasks."""

    config: Mapping[str, Any]
    clock: Clock
    context: Any = None
    items: Any = None
    """The long-term store."""
    cache: Cache | None = None
    scope: Callable[[TaskContext], AbstractContextManager[Any]] | None = None
    """What surrounds the code of each node: libraries may need to know of the run."""


class RunContext:
    """What all tasks of one graph share, in one run."""

    __slots__ = (
        "around",
        "config",
        "crew",
        "journal",
        "ns",
        "reader",
        "request",
        "run_id",
        "spec",
        "tell",
        "thread_id",
        "uid",
    )

    def __init__(
        self,
        spec: GraphSpec,
        request: Request,
        around: Surroundings,
        *,
        thread_id: str | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.spec = spec
        self.request = request
        self.around = around
        self.thread_id = thread_id
        self.config = around.config
        self.journal = journal
        self.tell: Callable[[Emit], None] | None = None
        """Sends an event to whoever reads the stream; None when nobody does."""
        self.crew: Any = None
        """Who runs the tasks; graphs inside tasks are run by their likes."""
        self.ns: tuple[str, ...] = ()
        """The path of tasks around this graph, as readers of streams see it."""
        self.reader = request.wants
        self.uid = ""
        self.run_id: str | None = None

    def belong(self, begun: Begun) -> None:
        """Learn which thread and which run this is, once it has begun."""
        self.uid, self.run_id, self.thread_id = begun.uid, begun.run_id, begun.thread_id
        self.config = {**self.config, "configurable": {**self.config["configurable"], "thread_id": begun.thread_id}}

    def outer_wants(self, kind: str) -> bool:
        """Whether the reader of the whole stream wants such an event, and not only the code that called this graph."""
        return kind in self.reader

    def spawn(self, task: Task, key: str, entry: JournalEntry, start: Any) -> None:
        """Start a child thread, and keep that it was, in one transaction."""
        ...

    def inside(self, spec: GraphSpec, request: Request, journal: Journal | None, ns: tuple[str, ...]) -> RunContext:
        """Return what the tasks of a graph inside one of these tasks share."""
        inner = RunContext(spec, request, self.around, thread_id=self.thread_id, journal=journal)
        inner.config = self.config
        inner.ns = ns
        inner.reader = self.reader
        inner.tell = self.tell if self.request.subgraphs else None
        inner.uid, inner.run_id = self.uid, self.run_id
        return inner


def merged_config(bound: Mapping[str, Any], given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Add what a call says to what `with_config` has said before; inner dicts are joined, lists are added."""
    if not bound or given is None or not isinstance(given, Mapping):
        return given if given is not None or not bound else bound
    merged = {**bound, **given}
    for key in ("configurable", "metadata"):
        if isinstance(bound.get(key), Mapping) and isinstance(given.get(key), Mapping):
            merged[key] = {**bound[key], **given[key]}
    for key in ("tags", "callbacks"):
        if isinstance(bound.get(key), list) and isinstance(given.get(key), list):
            merged[key] = [*bound[key], *given[key]]
    return merged
