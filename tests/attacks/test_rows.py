"""Hostile bodies with a valid checksum, in every table: nothing runs, and whoever reads gets a value or a typed error.

A checksum is no secret, so this is what somebody can do who may write to a database that is not encrypted.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.child import shared_report
from tests.attacks.world import COLUMNS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What came of every row."""
    return shared_report(tmp_path_factory, "read_rows.py")


def test_hostile_rows_run_nothing_and_give_a_value_or_a_typed_error(report):
    assert report["violations"] == []
    assert report["outcomes"]["CorruptDataError"] > 1_000
    assert report["outcomes"]["UnknownTypeError"] > 20


def test_every_table_that_holds_bodies_was_attacked(report):
    assert set(report["tried"]) == {f"{table}.{column}" for table, column in COLUMNS}


def test_the_watch_would_have_seen_an_import(report):
    assert any(alarm.startswith("import(") for alarm in report["control"])


def test_hostile_rows_of_a_saver_for_langgraph_run_nothing_either(tmp_path_factory):
    found = shared_report(tmp_path_factory, "read_saver_rows.py")

    assert found["violations"] == []
    assert found["outcomes"]["CorruptDataError"] > 1_000
    assert found["outcomes"]["UnknownTypeError"] > 20
    assert len(found["tried"]) == 4
