"""What clients say about crons, and how they are shown. A cron is a schedule, in LangGraph's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import uuid5

from pydantic import field_validator

from bide.server.langgraph.assistant_shapes import Fields
from bide.server.langgraph.choosing import Asked, Page, SortOrder
from bide.server.langgraph.resolving import NAMESPACE, system_id
from bide.server.langgraph.wire import iso, jsonable
from bide.store.schedule_rows import NEVER, Plan, ScheduleRow

OnCompleted = Literal["delete", "keep"]
Pauses = list[str] | Literal["*"]
CronField = Literal[
    "cron_id",
    "assistant_id",
    "thread_id",
    "end_time",
    "schedule",
    "timezone",
    "created_at",
    "updated_at",
    "user_id",
    "payload",
    "next_run_date",
    "metadata",
    "now",
    "on_run_completed",
    "enabled",
]
OF_THE_RUN = (
    "input",
    "config",
    "context",
    "webhook",
    "interrupt_before",
    "interrupt_after",
    "multitask_strategy",
    "stream_mode",
    "stream_subgraphs",
    "stream_resumable",
    "durability",
    "checkpoint_during",
)
"""What of a cron is said about each run that it starts."""


class CronPatch(Asked):
    """What of a cron is to be another; what is left out stays, and `end_time: null` takes the end away."""

    schedule: str | None = None
    timezone: str | None = None
    end_time: datetime | None = None
    enabled: bool | None = None
    on_run_completed: OnCompleted | None = None
    metadata: Fields | None = None
    input: Any = None
    config: Fields | None = None
    context: Any = None
    webhook: str | None = None
    interrupt_before: Pauses | None = None
    interrupt_after: Pauses | None = None
    multitask_strategy: Literal["reject", "interrupt", "rollback", "enqueue"] | None = None
    stream_mode: str | list[str] | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    durability: Literal["sync", "async", "exit"] | None = None
    checkpoint_during: bool | None = None

    @field_validator("end_time")
    @classmethod
    def _in_utc(cls, given: datetime | None) -> datetime | None:
        """Read a time without an offset as UTC, as its schedule is."""
        if given is None:
            return None
        try:
            moment = given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)
        except OverflowError as problem:
            raise ValueError("it lies beyond the calendar") from problem
        if moment.year < 1970:
            raise ValueError("it lies before 1970")
        return moment

    def of_the_run(self) -> Fields:
        """Return what is said about each run."""
        said = {name: getattr(self, name) for name in OF_THE_RUN}
        return {name: value for name, value in said.items() if value is not None}


class CronCreate(CronPatch):
    """A cron to be made."""

    assistant_id: str
    schedule: str


class CronCount(Asked):
    """Which crons are meant."""

    assistant_id: str | None = None
    thread_id: str | None = None
    enabled: bool | None = None
    metadata: Fields | None = None


class CronSearch(CronCount, Page):
    """Which crons are to be listed."""

    sort_by: (
        Literal["cron_id", "assistant_id", "thread_id", "created_at", "updated_at", "next_run_date", "end_time"] | None
    ) = None
    sort_order: SortOrder | None = None
    select: list[CronField] | None = None


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule as clients know it: one that they made, or one of the application's own."""

    row: ScheduleRow
    plan: Plan

    @property
    def said(self) -> Mapping[str, Any]:
        """What the client has said that made it; nothing, if it is the application's own."""
        return self.plan.about or {}

    @property
    def is_clients(self) -> bool:
        """Whether a client has made it."""
        return "cron_id" in self.said

    @property
    def cron_id(self) -> str:
        """Its id: of one of the application's own, always the same for its name."""
        return str(self.said.get("cron_id") or uuid5(NAMESPACE, f"schedule:{self.plan.name}"))

    @property
    def assistant_id(self) -> str:
        """Which assistant its runs are of."""
        return str(self.said.get("assistant_id") or system_id(self.row.graph))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the client has said about it, for finding it again."""
        return self.said.get("metadata") or {}

    def shown(self) -> Fields:
        """Return it as clients know it."""
        row, plan, is_waiting = self.row, self.plan, not self.row.is_paused and self.row.next_at < NEVER
        return {
            "cron_id": self.cron_id,
            "assistant_id": self.assistant_id,
            "thread_id": plan.thread_id,
            "on_run_completed": plan.on_end if plan.thread_id is None else None,
            "end_time": None if plan.end_at is None else iso(plan.end_at),
            "schedule": row.cron,
            "timezone": self.said.get("timezone") if self.is_clients else row.timezone,
            "created_at": iso(row.created_at),
            "updated_at": iso(max(row.created_at, self.said.get("updated_at") or 0)),
            "payload": {**jsonable(self.said.get("payload") or {}), "assistant_id": self.assistant_id},
            "user_id": self.said.get("user_id"),
            "next_run_date": iso(row.next_at) if is_waiting else None,
            "metadata": jsonable(self.metadata),
            "enabled": not row.is_paused,
        }
