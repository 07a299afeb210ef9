"""Rows of the store turned into what is shown; decoded with the graph's own types where the graph is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bide.codec import Codec
from bide.errors import CodecError
from bide.runtime.registered import Graphs
from bide.runtime.views import Delivery, Run, Wait, moment
from bide.runtime.words import waiting_for
from bide.store.lanes import read_lane
from bide.store.needed import PLAIN
from bide.store.queue_rows import DeliveryRow, RunView, WaitView
from bide.types import WaitStatus
from bide.waits.asked import SEVERAL
from bide.waits.facts import Fact
from bide.waits.wake import Wake


class Unreadable(str):
    """Stands for a value whose type is not known here: the graph that it belongs to is."""

    __slots__ = ()


def decoded(codec: Codec, body: bytes | None, what: str) -> Any:
    """Read a value; if its types are not known here, say so in its place."""
    if body is None:
        return None
    try:
        return codec.decode(body, what)
    except CodecError as problem:
        return Unreadable(f"({what} cannot be shown here: {problem})")


def codec_of(graphs: Graphs, name: str) -> Codec:
    """Return the codec of a graph, or the plain one."""
    graph = graphs.find(name)
    return PLAIN if graph is None else graph.spec.codec


def run_of(thread_id: str, row: RunView) -> Run:
    """Show a run."""
    lane = read_lane(row.lane)
    return Run(
        row.run_id,
        thread_id,
        row.graph,
        row.status,
        moment(row.created_at),  # type: ignore[arg-type]
        moment(row.updated_at),  # type: ignore[arg-type]
        lane.queue,
        lane.version,
        -row.rank,
        moment(row.due_at),
        row.crashes,
        row.error,
        row.owner,
    )


def wait_of(graphs: Graphs, row: WaitView, satisfied: Mapping[int, Wake] | None = None) -> Wait:
    """Show a wait."""
    codec = codec_of(graphs, row.graph)
    shown = decoded(codec, row.question, "question")
    question, schema = (shown[0], shown[1]) if isinstance(shown, list) else (shown, None)
    needs = row.needs
    condition = None if needs.condition is None else dict(needs.condition)
    return Wait(
        id=row.wait_id,
        thread_id=row.thread_id,
        run_id=row.run_id,
        graph=row.graph,
        node=row.node,
        key=None if row.key[:1] in "#@" else row.key,
        kind=_kind(row, condition),
        status=row.status,
        question=question,
        title=needs.title or _title(condition),
        assignees=needs.assignees,
        tags=needs.tags,
        created_at=moment(row.created_at),  # type: ignore[arg-type]
        deadline=moment(row.deadline),
        waiting_for=waiting_for(row.kind, question, condition, row.created_at),
        condition=condition,
        schema=_shown_schema(schema or needs.schema),
        answer=decoded(codec, row.answer, "answer") if row.status is WaitStatus.ANSWERED else None,
        answered_at=moment(row.answered_at),
        answered_by=row.answered_by,
        answered_via=row.answered_via,
        owner=row.owner,
        snoozed_until=moment(row.snoozed_until),
        satisfied=dict(satisfied or {}),
    )


def _kind(row: WaitView, condition: Mapping[str, Any] | None) -> str:
    if row.kind in ("before", "after"):
        return "pause"
    if condition is None:
        return "question"
    kind = str(condition.get("kind"))
    return "time" if kind in ("after", "at") else kind


def _shown_schema(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if not schema or SEVERAL in schema else dict(schema)


def _title(condition: Mapping[str, Any] | None) -> str:
    return "" if condition is None else str(condition.get("title") or "")


def delivery_of(row: DeliveryRow, fact: Fact, *, is_new: bool = True, threads: tuple[str, ...] = ()) -> Delivery:
    """Show a fact."""
    status = "pending" if row.is_pending else "matched" if row.wakes else "unmatched"
    return Delivery(
        row.delivery_id,
        row.kind,
        row.name,
        row.source,
        row.external_id,
        moment(row.received_at),  # type: ignore[arg-type]
        fact.payload,
        row.wakes,
        status,
        is_new,
        threads,
    )
