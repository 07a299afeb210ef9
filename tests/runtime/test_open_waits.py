"""Who waits is read from an index, whoever asks and in whichever order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bide import GraphError, Store, interrupt
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import graph

PARAMS: dict[str, Any] = {
    "owner": "",
    "since": -1,
    "after": "",
    "most": 9,
    "awake_at": 0,
    "due_before": 0,
    "only_timeless": 0,
    "before": "~",
    "only_unmatched": 0,
}


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("list_inbox", "waits_by_age"),
        ("list_inbox_of_owner", "waits_of_owner"),
        ("list_due_inbox", "waits_due"),
        ("list_due_inbox_of_owner", "waits_due_of_owner"),
        ("list_deliveries_of_owner", "deliveries_of_owner"),
    ],
)
def test_database_reads_the_index_in_its_order_and_not_every_wait(tmp_path: Path, query: str, index: str) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:

        def explain(tx: Any) -> list[str]:
            return [row[-1] for row in tx.connection.execute("EXPLAIN QUERY PLAN " + tx.sql[query], PARAMS)]

        plan = store.database.read(explain)

    assert f"USING INDEX {index} " in f"{plan[0]} ", plan
    assert not [line for line in plan if "TEMP B-TREE" in line or line.startswith("SCAN")]


def test_inbox_of_one_owner_is_what_is_theirs_page_after_page(world: MakeWorld) -> None:

    here = world(graph(lambda state: {"answer": interrupt("?")}))
    for number in range(6):
        here.app.start("asks", {}, thread_id=f"t{number}", owner="acme" if number % 2 else "other")
        here.settle()
        here.clock.pass_by(seconds=1)

    first = here.app.inbox(owner="acme", most=2)
    second = here.app.inbox(owner="acme", most=2, after=first.after)

    assert [wait.thread_id for wait in (*first.waits, *second.waits)] == ["t1", "t3", "t5"]
    assert second.after is None
    assert len(here.app.waits()) == 6
    assert [wait.owner for wait in here.app.waits(owner="other")] == ["other"] * 3


@pytest.mark.parametrize("wanted", [{"knid": "approval"}, {"sort": "name"}])
def test_filter_that_is_not_known_is_an_error_and_not_nothing(world: MakeWorld, wanted: Any) -> None:
    with pytest.raises(GraphError):
        world().app.waits(**wanted)
