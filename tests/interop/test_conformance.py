"""The suite that LangGraph has for its savers, base and extended, on every kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator

from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.conformance.initializer import RegisteredCheckpointer
from langgraph.checkpoint.conformance.validate import validate

from bide.interop.langgraph import BideSaver


async def test_passes_the_whole_suite(url: str) -> None:
    async def fresh_saver() -> AsyncIterator[BideSaver]:
        async with BideSaver.from_conn_string(url) as saver:
            yield saver

    report = await validate(RegisteredCheckpointer("BideSaver", fresh_saver))

    failures = {name: result.failures for name, result in report.results.items() if not result.passed}
    assert failures == {}
    assert report.results.keys() == {capability.value for capability in ALL_CAPABILITIES}
    assert report.passed_all()
