"""The native API: threads, waits, deliveries, schedules and conversations as Bide knows them."""

from __future__ import annotations

from fastapi import APIRouter

from bide.server.native import conversations, deliveries, resume, schedules, threads, wait_changes, waits

PARTS = (threads, resume, waits, wait_changes, deliveries, schedules, conversations)
"""Each has a router of its own."""

router = APIRouter()
for _part in PARTS:
    router.include_router(_part.router)
