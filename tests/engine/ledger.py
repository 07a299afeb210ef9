"""The world outside of a graph, as the tests of steps see it."""

from __future__ import annotations

import asyncio
from typing import Any


class Ledger:
    """The world outside: it remembers every call that reached it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.trouble: BaseException | None = None

    def charge(self, amount: int) -> str:
        self.calls.append(amount)
        if self.trouble is not None:
            raise self.trouble
        return f"receipt {len(self.calls)}"

    async def acharge(self, amount: int) -> str:
        await asyncio.sleep(0)
        return self.charge(amount)

    def charge_with_key(self, amount: int, idempotency_key: str) -> str:
        self.calls.append(idempotency_key)
        if self.trouble is not None:
            raise self.trouble
        return idempotency_key
