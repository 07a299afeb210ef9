"""Every table that holds bodies, described once: its columns, its key, and the place that each body is sealed with.

Whoever goes through all that is stored reads it page by page with this: what is in memory at once does not depend on
how much there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bide.store.assistants import version_place
from bide.store.bodies import blob_place
from bide.store.database import Row, Transaction
from bide.store.facts import delivery_place
from bide.store.needed import needs_place
from bide.store.places import (
    answer_place,
    audit_place,
    cache_place,
    checkpoint_place,
    event_place,
    item_place,
    journal_place,
    log_place,
    message_place,
    notes_place,
    question_place,
    schedule_place,
    wake_place,
)
from bide.store.rows import CheckpointRow, JournalRow, Lease, WaitRow
from bide.store.saver_places import (
    saver_blobs,
    saver_checkpoint_place,
    saver_metadata_place,
    saver_value_place,
    saver_write_place,
)
from bide.store.secret_keys import secret_place
from bide.store.starting import start_place
from bide.types import WaitStatus

PAGE = 64
"""So many rows are read at once: of at most 64 KiB each, since larger bodies are blobs."""
FEW = 4
"""The same of tables whose bodies stay in their rows, however large they are."""
BEFORE_ALL = -(2**62)
LANGGRAPH = saver_blobs("")
"""Before the name of a thread in `blob_uses` that is one of LangGraph's."""

Values = dict[str, Any]
"""A row, by the names of its columns."""

_TYPES: Mapping[str, tuple[type, ...]] = {"text": (str,), "int": (int,), "bytes": (bytes,)}


class Table(NamedTuple):
    """A table: what its rows look like, and where each of its bodies is."""

    name: str
    columns: Mapping[str, str]
    """Each column and its type; a question mark says that it may be empty."""
    key: tuple[str, ...]
    """What its pages are ordered by: its key, without the thread where it is read thread by thread."""
    places: Mapping[str, Callable[[Values], str]]
    """For each column of bodies, the place that it is sealed with."""
    is_of_threads: bool = True
    page: int = PAGE
    """How many rows are read at once."""
    in_row: frozenset[str] = frozenset()
    """Columns whose bodies never leave their row, however large they are."""

    def read(self, row: Row) -> Values:
        """Name the values of a row."""
        return dict(zip(self.columns, row, strict=True))

    def damage(self, values: Values) -> str | None:
        """Say what is wrong with the types of a row: SQLite keeps anything in any column."""
        for column, expected in self.columns.items():
            value = values[column]
            if value is None and expected.endswith("?"):
                continue
            if type(value) not in _TYPES[expected.removesuffix("?")]:
                return f"its {column} is {value!r:.40}, and no {expected.removesuffix('?')}"
        return None

    def shown(self, values: Values) -> str:
        """Name a row for people."""
        return f"{self.name}({', '.join(f'{name}={values[name]!r:.60}' for name in self.key)})"


def page_after(tx: Transaction, table: Table, after: Values | None, thread_id: str | None = None) -> list[Values]:
    """Read the page after a row, or the first one: of one thread, or of a table that is not read thread by thread."""
    if after is None:
        after = {name: _BEFORE[table.columns[name]] for name in table.key}
    params = {**{name: after[name] for name in table.key}, "most": table.page}
    if table.is_of_threads:
        params["thread_id"] = thread_id
    return [table.read(row) for row in tx.all(f"page_{table.name}", params)]


def rows(tx: Transaction, table: Table, thread_id: str | None = None) -> Iterator[Values]:
    """Read a table row by row."""
    after: Values | None = None
    while True:
        page = page_after(tx, table, after, thread_id)
        after = dict(page[-1]) if page else None
        yield from page
        if len(page) < table.page:
            return


_BEFORE: Mapping[str, Any] = {"text": "", "int": BEFORE_ALL, "bytes": b""}


def _columns(text: str) -> Mapping[str, str]:
    parts = (part.partition(":") for part in text.split())
    return {name: kind or "text" for name, _, kind in parts}


def _of_checkpoint(row: Values) -> str:
    checkpoint = CheckpointRow(row["seq"], row["parent"], row["step"], row["source"], b"", ns=row["ns"])
    return checkpoint_place(Lease(row["thread_id"], row["run_id"], row["epoch"]), checkpoint, row["created_at"])


def _of_log(row: Values) -> str:
    return log_place(row["thread_id"], row["ns"], row["channel"], row["seq"])


def _of_journal(row: Values) -> str:
    line = JournalRow(row["task_id"], row["key"], row["kind"], row["phase"], row["name"], row["digest"], b"")
    return journal_place(row["thread_id"], line)


def _of_question(row: Values) -> str:
    wait = WaitRow(row["wait_id"], row["task_id"], row["node"], row["key"], row["kind"], WaitStatus.OPEN, "", b"")
    return question_place(row["thread_id"], wait)


def _of_answer(row: Values) -> str:
    return answer_place(row["thread_id"], row["wait_id"])


def _of_needs(row: Values) -> str:
    return needs_place(row["wait_id"])


def _of_wake(row: Values) -> str:
    return wake_place(row["wait_id"], row["number"])


def _of_start(what: str) -> Callable[[Values], str]:
    return lambda row: start_place(row["thread_id"], row["run_id"], what)


def _of_event(row: Values) -> str:
    return event_place(row["thread_id"], row["kind"], row["seq"], row["at"])


def _of_blob(row: Values) -> str:
    return blob_place(row["owner"], row["hash"])


def _of_saver(place: Callable[[Sequence[Any]], str], *columns: str) -> Callable[[Values], str]:
    return lambda row: place([row[column] for column in columns])


RUNS = Table(
    "runs",
    _columns(
        "thread_id run_id status epoch:int worker_id:text? error:text? created_at:int updated_at:int lane owner "
        "rank:int due_at:int? crashes:int limit_key:text? limit_most:int? input:bytes? options:bytes?"
    ),
    ("run_id",),
    {"input": _of_start("input"), "options": _of_start("options")},
)
CHECKPOINTS = Table(
    "checkpoints",
    _columns("thread_id ns seq:int parent:int? step:int source run_id epoch:int created_at:int pruned:int body:bytes"),
    ("ns", "seq"),
    {"body": _of_checkpoint},
)
CHANNEL_LOG = Table(
    "channel_log", _columns("thread_id ns channel seq:int body:bytes"), ("ns", "channel", "seq"), {"body": _of_log}
)
JOURNAL = Table(
    "journal",
    _columns("thread_id task_id key kind phase name digest run_id epoch:int written_at:int body:bytes"),
    ("task_id", "kind", "key"),
    {"body": _of_journal},
)
WAITS = Table(
    "waits",
    _columns(
        "thread_id wait_id run_id task_id node key kind status consumed:int digest answered_at:int? answered_via:text? "
        "answered_by:text? answer_key:text? settled_in:int? deadline:int? remind_at:int? created_at:int question:bytes "
        "answer:bytes? needs:bytes? owner snoozed_until:int?"
    ),
    ("wait_id",),
    {"question": _of_question, "answer": _of_answer, "needs": _of_needs},
    in_row=frozenset(["needs"]),
)
CONDITIONS = Table(
    "conditions",
    _columns(
        "thread_id wait_id number:int kind correlation due_at:int? is_open:int exclusive:int created_at:int "
        "delivery_id:text? wake:bytes?"
    ),
    ("wait_id", "number"),
    {"wake": _of_wake},
    in_row=frozenset(["wake"]),
)
EVENTS = Table(
    "events",
    _columns("thread_id number:int seq:int run_id:text? kind at:int body:bytes"),
    ("number",),
    {"body": _of_event},
)
OF_A_THREAD = (RUNS, CHECKPOINTS, CHANNEL_LOG, JOURNAL, WAITS, CONDITIONS, EVENTS)
"""All that a thread is made of, beside its own row and the blobs."""

THREAD_NOTES = Table(
    "thread_notes",
    _columns("thread_id updated_at:int expires_at:int? body:bytes"),
    (),
    {"body": lambda row: notes_place(row["thread_id"])},
)
RUN_NOTES = Table("run_notes", _columns("thread_id run_id body:bytes"), ("run_id",), {"body": _of_start("notes")})
NOTES = (THREAD_NOTES, RUN_NOTES)
"""What clients have said about a thread: it goes with it, and does not travel with it."""

BLOB_USES = Table("blob_uses", _columns("thread_id owner hash:bytes"), ("owner", "hash"), {})
BLOBS = Table(
    "blobs",
    _columns("owner hash:bytes size:int used_at:int body:bytes"),
    ("owner", "hash"),
    {"body": _of_blob},
    is_of_threads=False,
    page=1,
)
ITEMS = Table(
    "items",
    _columns("namespace:bytes key:bytes ttl:int? expires_at:int? created_at:int updated_at:int body:bytes"),
    ("namespace", "key"),
    {"body": lambda row: item_place(row["namespace"], row["key"])},
    is_of_threads=False,
    page=FEW,
    in_row=frozenset(["body"]),
)
CACHE = Table(
    "cache",
    _columns("place key expires_at:int? body:bytes"),
    ("place", "key"),
    {"body": lambda row: cache_place(row["place"], row["key"])},
    is_of_threads=False,
    page=FEW,
    in_row=frozenset(["body"]),
)
DELIVERIES = Table(
    "deliveries",
    _columns(
        "delivery_id owner source external_id kind name digest is_pending:int wakes:int taken_by:text? received_at:int "
        "body:bytes"
    ),
    ("delivery_id",),
    {"body": lambda row: delivery_place(row["delivery_id"])},
    is_of_threads=False,
    page=FEW,
    in_row=frozenset(["body"]),
)
SCHEDULES = Table(
    "schedules",
    _columns(
        "schedule_id owner graph cron timezone is_paused:int next_at:int last_at:int? created_at:int error:text? "
        "body:bytes"
    ),
    ("schedule_id",),
    {"body": lambda row: schedule_place(row["schedule_id"])},
    is_of_threads=False,
    page=FEW,
    in_row=frozenset(["body"]),
)
AUDIT = Table(
    "audit",
    _columns("entry_id owner actor action subject thread_id:text? at:int body:bytes"),
    ("entry_id",),
    {"body": audit_place},
    is_of_threads=False,
    in_row=frozenset(["body"]),
)
SECRETS = Table(
    "secrets",
    _columns("name created_at:int body:bytes"),
    ("name",),
    {"body": lambda row: secret_place(row["name"])},
    is_of_threads=False,
    in_row=frozenset(["body"]),
)
ASSISTANT_VERSIONS = Table(
    "assistant_versions",
    _columns("assistant_id version:int created_at:int body:bytes"),
    ("assistant_id", "version"),
    {"body": lambda row: version_place(row["assistant_id"], row["version"])},
    is_of_threads=False,
    page=FEW,
    in_row=frozenset(["body"]),
)
OUTBOX = Table(
    "outbox",
    _columns(
        "message_id owner thread_id:text? kind status attempts:int next_at:int created_at:int sent_at:int? error:text? "
        "body:bytes"
    ),
    ("message_id",),
    {"body": lambda row: message_place(row["message_id"])},
    is_of_threads=False,
    page=FEW,
    in_row=frozenset(["body"]),
)
_SAVER_KEY = ("thread_id", "ns", "checkpoint_id", "parent_id", "run_id", "seq")
SAVER_CHECKPOINTS = Table(
    "saver_checkpoints",
    _columns(
        "thread_id ns checkpoint_id parent_id:text? run_id:text? seq:int created_at:int metadata:bytes body:bytes"
    ),
    ("thread_id", "ns", "checkpoint_id"),
    {"metadata": _of_saver(saver_metadata_place, *_SAVER_KEY), "body": _of_saver(saver_checkpoint_place, *_SAVER_KEY)},
    is_of_threads=False,
)
SAVER_VALUES = Table(
    "saver_values",
    _columns("thread_id ns channel seq:int body:bytes"),
    ("thread_id", "ns", "channel", "seq"),
    {"body": _of_saver(saver_value_place, "thread_id", "ns", "channel", "seq")},
    is_of_threads=False,
)
SAVER_WRITES = Table(
    "saver_writes",
    _columns("thread_id ns checkpoint_id task_id idx:int channel task_path body:bytes"),
    ("thread_id", "ns", "checkpoint_id", "task_id", "idx"),
    {
        "body": _of_saver(
            saver_write_place, "thread_id", "ns", "checkpoint_id", "task_id", "idx", "channel", "task_path"
        )
    },
    is_of_threads=False,
)
OF_SAVERS = (SAVER_CHECKPOINTS, SAVER_VALUES, SAVER_WRITES)
BESIDE_THREADS = (DELIVERIES, SCHEDULES, ASSISTANT_VERSIONS, AUDIT, SECRETS, OUTBOX, ITEMS, CACHE, *OF_SAVERS)
"""What is stored beside our threads."""
