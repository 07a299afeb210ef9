"""All pages in one router."""

from __future__ import annotations

from fastapi import APIRouter

from bide.server.pages import agents, assets, deliveries, inbox, live, login, schedules, threads, waits

router = APIRouter()
for part in (assets, login, inbox, live, waits, threads, agents, schedules, deliveries):
    router.include_router(part.router)
