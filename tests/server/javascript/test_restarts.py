"""The server goes away in the middle of a stream, and comes back: clients in JavaScript miss nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.javascript.conftest import Site, Start

# Servers and Node are started, on machines that may have much else to do.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("what", "last"), [("run", "end"), ("thread", "metadata")])
@pytest.mark.parametrize("end", [Site.kill, Site.stop], ids=["killed", "restarted"])
def test_client_reconnects_and_gets_exactly_the_missed_events(
    start: Start, door: Site, tmp_path: Path, end: Callable[[Site], None], what: str, last: str
) -> None:
    process = start("restarting", url=door.url, what=what)
    assert json.loads(process.stdout.readline()) == {"isThere": True}

    end(door)
    (tmp_path / "gate").touch()
    door.start()

    seen = json.loads(process.stdout.readline())
    assert seen["events"] == ["metadata", "values", "custom", "values", "custom", "values", "values", last]
    assert len(set(seen["ids"])) == len(seen["ids"])
    assert seen["status"] == "success"


def test_page_goes_on_after_a_restart(start: Start, door: Site, tmp_path: Path) -> None:
    process = start("react_restarting", url=door.url)
    assert json.loads(process.stdout.readline()) == {"isThere": True}

    door.kill()
    (tmp_path / "gate").touch()
    door.start()

    assert json.loads(process.stdout.readline()) == {"said": ["ai: Once upon a time"], "error": []}
