"""Plain values in and out of rows: what the store itself must understand, without any graph."""

from __future__ import annotations

from typing import Any, cast

from bide.errors import CodecError
from bide.store.bodies import Bodies
from bide.store.database import Row, Transaction
from bide.store.needed import PLAIN, open_needs
from bide.store.places import answer_place, question_place, wake_place
from bide.store.queue_rows import DeliveryRow, RunView, WaitView
from bide.store.rows import EventRow
from bide.store.seal import place_of
from bide.store.trace import named
from bide.types import RunStatus, WaitStatus
from bide.waits.facts import Fact
from bide.waits.needs import Needs
from bide.waits.wake import Wake


def event_of(kind: str, **body: Any) -> EventRow:
    """Write down a line of the log."""
    return EventRow(kind, PLAIN.encode(named(body), "event"))


def head_of(tx: Transaction, thread_id: str) -> int:
    """Return the newest checkpoint of a thread: an event from outside comes after it."""
    row = tx.one("read_head", {"thread_id": thread_id, "ns": ""})
    return int((row and row[0]) or 0)


def close_wake(bodies: Bodies, wait_id: str, number: int, wake: Wake) -> bytes:
    """Return what is stored of what satisfied a condition."""
    return bodies.close_small(wake_place(wait_id, number), PLAIN.encode(wake, "wake"))


def open_wake(bodies: Bodies, tx: Transaction, wait_id: str, number: int, stored: bytes) -> Wake:
    """Read what satisfied a condition."""
    return cast(Wake, PLAIN.decode(bodies.open(tx, wake_place(wait_id, number), stored), "wake"))


def delivery_place(delivery_id: str) -> str:
    """Return the place of a fact."""
    return place_of("deliveries", delivery_id)


def fact_of(bodies: Bodies, tx: Transaction, row: DeliveryRow) -> Fact:
    """Read a fact."""
    payload = PLAIN.decode(bodies.open(tx, delivery_place(row.delivery_id), row.body), "delivery")
    return Fact(row.kind, row.name, payload, row.source, row.external_id, row.received_at)


def read_delivery_row(row: Row) -> DeliveryRow:
    """Read the row of a fact."""
    return DeliveryRow(*row)._replace(is_pending=bool(row[7]))


def read_run_row(row: Row) -> RunView:
    """Read a run as whoever looks from outside sees it."""
    return RunView(row[0], RunStatus(row[1]), *row[2:])


def read_wait_row(bodies: Bodies, tx: Transaction, row: Row, *, is_lenient: bool = False) -> WaitView:
    """Read a wait as whoever looks from outside sees it; question and answer are opened.

    One that is damaged must not hide the others in a list: there it says so itself (`is_lenient`).
    """
    view = WaitView(*row)._replace(status=WaitStatus(row[7]), is_consumed=bool(row[8]), needs=Needs())
    answer = row[10]
    try:
        return view._replace(
            question=bodies.open(tx, question_place(view.thread_id, view), view.question),
            answer=None if answer is None else bodies.open(tx, answer_place(view.thread_id, view.wait_id), answer),
            needs=open_needs(bodies, tx, view.wait_id, row[18]),
        )
    except CodecError as problem:
        if not is_lenient:
            raise
        told = f"(cannot be read: {problem})"
        return view._replace(question=PLAIN.encode([told, None], "question"), answer=None, needs=Needs(title=told))
