"""What the model and the simulation have found so far, each as a small story, so that it stays mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bide.testing import Harness
from bide.testing.crashing import MortalDatabase
from tests.runtime.modelled.scripts import GRAPH, given


def start(harness: Harness, *script: list[Any], **options: Any) -> None:
    harness.start("scripts", given(list(script)), thread_id="t", on_paused="restart", **options)
    harness.run_until_idle()


def test_fact_that_was_heard_is_not_heard_again_after_old_history_was_let_go():
    with Harness([GRAPH]) as harness:
        start(harness, ["event", "news"], ["step"], ["step"])
        harness.deliver("news", 1)
        harness.run_until_idle()
        start(harness, ["step"], ["step"])

        harness.store.prune(keep_last=1)
        start(harness, ["event", "news"])

        harness.assert_waiting("t", "event")


def test_run_that_rolls_back_a_run_that_had_rolled_back_begins_where_that_one_began():
    with Harness([GRAPH]) as harness:
        start(harness, ["step"], ["ask", 0])
        start(harness, ["step"], ["step"], ["ask", 0], if_busy="rollback")

        start(harness, ["ask", 0], if_busy="rollback")

        assert harness.state("t")["done"] == []


def test_run_that_takes_the_place_of_one_that_was_to_roll_back_begins_where_that_one_would_have():
    with Harness([GRAPH]) as harness:
        start(harness, ["step"], ["ask", 0])
        harness.start("scripts", given([["step"]]), thread_id="t", if_busy="rollback")

        start(harness, ["ask", 0], if_busy="rollback")

        assert harness.state("t")["done"] == []


def test_run_that_is_due_behind_a_live_one_hides_no_later_moment():
    with Harness([GRAPH]) as harness:
        start(harness, ["ask", 0])
        start(harness, ["step"], delay="1s", if_busy="enqueue")
        harness.start("scripts", given([["sleep", 1]]), thread_id="other")
        harness.run_until_idle()
        harness.clock.advance("1m")

        due = harness.store.next_due()

        assert due is not None
        assert due > harness.clock.now()


def test_thread_that_was_cancelled_while_it_waited_asks_again_when_it_is_retried():
    with Harness([GRAPH]) as harness:
        start(harness, ["ask", 1])
        harness.advance("30m")
        harness.cancel("t")

        harness.app.retry("t")
        harness.advance("59m")
        harness.assert_waiting("t", "question")
        harness.advance("1m")

        harness.assert_done("t", done=[["ask", "late"]])


class Meanwhile(MortalDatabase):
    """Lets something happen between the plan to let history go and the first transaction that does."""

    def __init__(self, inner: Any, happens: Callable[[], None]) -> None:
        super().__init__(inner)
        self.happens: Callable[[], None] | None = happens

    def write(self, name: str, work: Any) -> Any:
        if name == "prune" and self.happens is not None:
            happens, self.happens = self.happens, None
            happens()
        return super().write(name, work)


@pytest.mark.parametrize("when", ["before", "meanwhile", "after"])
def test_run_that_rolls_back_begins_where_the_live_one_began_whenever_old_history_is_let_go(when: str):
    with Harness([GRAPH]) as harness:
        # given a run that has gone several steps since it began
        start(harness, ["step"], ["step"])
        start(harness, ["step"], ["step"], ["ask", 0])

        # when another takes its place, and all that need not stay is let go
        def roll_back() -> None:
            harness.start("scripts", given([["step"]]), thread_id="t", on_paused="restart", if_busy="rollback")

        if when == "after":
            roll_back()
        if when == "meanwhile":
            harness.store.database = Meanwhile(harness.store.database, roll_back)
        harness.store.prune(keep_last=1)
        if when == "before":
            roll_back()
        harness.run_until_idle()

        # then what it begins at was there
        harness.assert_done("t", done=["step", "step", "step"])


def test_run_that_was_cancelled_before_it_could_roll_back_does_so_when_it_is_retried():
    with Harness([GRAPH]) as harness:
        start(harness, ["step"], ["step"])
        start(harness, ["step"], ["step"], ["ask", 0])
        harness.start("scripts", given([["step"]]), thread_id="t", on_paused="restart", if_busy="rollback")
        harness.cancel("t")

        harness.store.prune(keep_last=1)
        harness.app.retry("t")
        harness.run_until_idle()

        harness.assert_done("t", done=["step", "step", "step"])
