"""docs/rivals-failures.md tells the truth: one test for each row, and no test without its row."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fleet import test_rivals_failures

PAGE = Path(__file__).parents[2] / "docs" / "rivals-failures.md"


def test_every_failure_of_a_rival_has_its_test_and_every_test_its_row():
    rows = re.findall(r"^\| .* \| `(test_\w+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    tests = [name for name in vars(test_rivals_failures) if name.startswith("test_")]

    assert rows == tests
    assert len(rows) == 10
