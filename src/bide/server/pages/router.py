"""All pages in one router."""

from __future__ import annotations

from fastapi import APIRouter

from bide.server.pages import (
    agents,
    assets,
    deliveries,
    inbox,
    links,
    live,
    login,
    reference,
    schedules,
    threads,
    waits,
)

router = APIRouter()
for part in (assets, login, inbox, live, waits, links, threads, agents, schedules, deliveries, reference):
    router.include_router(part.router)
