"""A real disk that is full, at every page: the caller is told, nothing acknowledged is lost, nothing is done twice."""

from __future__ import annotations

import pytest

from tests.store.small_disk import run_on_small_disk


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tmpfs", "limit"])
@pytest.mark.parametrize("what", ["run", "open", "migrate", "backup"])
def test_disk_that_is_full_at_any_page_costs_nothing_but_a_clear_error(what, kind, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()

    told = run_on_small_disk(kind, disk, what, tmp_path / "ledger")

    assert told["complaints"] == []
    assert told["full"] >= 10, "how often the disk was full"
    assert told["enough"] < 390, "with how many pages it was not full any more"
