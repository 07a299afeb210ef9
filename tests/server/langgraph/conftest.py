"""Clients of LangGraph against our server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.conftest import Running
from tests.server.langgraph.clients import KINDS, opened_client


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, server: Running) -> Iterator[Any]:
    """The SDK's client, sync or async, called in the same way."""
    with opened_client(request.param, server.url) as opened:
        yield opened
