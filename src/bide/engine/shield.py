"""Waiting for what must not be left half done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def to_its_end(saving: Coroutine[Any, Any, Any]) -> Any:
    """Wait for a save even when cancelled: its thread cannot be stopped, and what it wrote must be known after."""
    task = asyncio.ensure_future(saving)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
