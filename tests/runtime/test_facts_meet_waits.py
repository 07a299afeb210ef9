"""A fact and a wait for it meet, whichever comes first, and nothing is lost, and nothing comes twice.

Trees of conditions (any, all, quorum, nested), facts that many may have and facts for one alone, one thread and two.
Most trials are made transaction by transaction; some with real graphs and workers, in orders that Hypothesis chooses;
and on PostgreSQL, where transactions overlap, with a lock held and with real threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide import Bide, Store
from bide.testing import FakeClock
from tests.faults.size import TIMES
from tests.runtime.overlapping import PATIENCE, StoppingDatabase, race
from tests.runtime.simulated.meetings import GRAPH, NAMES, Choose, Trial, a_trial, check_meeting, meet
from tests.runtime.simulated.process import _bound
from tests.runtime.simulated.quick_meetings import Table, named
from tests.runtime.simulated.simulation import empty_database
from tests.stores import SCHEMA

QUICK_TRIALS = 400
CHUNK = 1_000
"""Trials of one test of the slow suite; all in all there are ten thousand, and with BIDE_FAULTS=100 a million."""
REAL_RACES = 400


# ── At every transaction ─────────────────────────────────────────────────────────────────────────────────────────────


def check_trials(seeds: range) -> None:
    table = Table(empty_database())
    for seed in seeds:
        dice = Random(seed)
        table.meet(a_trial(dice.randrange), dice.randrange)
    table.store.close()


def test_facts_and_waits_meet_in_every_order_of_their_transactions():
    check_trials(range(QUICK_TRIALS))


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("chunk", range(10 * TIMES))
def test_facts_and_waits_meet_ten_thousand_times(chunk: int):
    first = QUICK_TRIALS + chunk * CHUNK
    check_trials(range(first, first + CHUNK))


@given(numbers=st.lists(st.integers(0, 11), max_size=120))
@settings(max_examples=40, deadline=None)
def test_facts_meet_waits_of_real_graphs_in_every_order(numbers: list[int]):
    left = iter(numbers)

    def choose(count: int) -> int:
        return next(left, 0) % count

    check_meets(choose)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_facts_meet_waits_of_real_graphs_in_many_orders():
    for seed in range(400 * TIMES):
        check_meets(Random(seed).randrange)


def check_meets(choose: Choose) -> None:
    meet(a_trial(choose), choose)


# ── On PostgreSQL, where transactions overlap ────────────────────────────────────────────────────────────────────────


def application(url: str) -> Bide:
    store = Store.open(url, schema=SCHEMA, clock=FakeClock())
    return Bide(store, [_bound(GRAPH, store)])


@contextmanager
def two_applications(url: str) -> Iterator[tuple[Bide, Bide]]:
    """Two processes, as far as the database can tell."""
    one, other = application(url), application(url)
    try:
        yield one, other
    finally:
        one.store.close()
        other.store.close()


TREES = {
    "one": ["event", "a", False],
    "alone": ["event", "a", True],
    "any": ["any", [["event", "b", False], ["event", "a", True]]],
    "all": ["all", [["event", "a", False]]],
    "quorum": ["quorum", 1, [["event", "c", True], ["event", "a", False]]],
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_fact_that_comes_while_a_wait_is_being_registered_is_not_lost(tree: Any, postgres_url: str):
    # given a worker that has looked back, found nothing, and not committed its pause yet
    with two_applications(postgres_url) as (worker, source):
        worker.start("hears", {"tree": tree}, thread_id="t0")

        # when the fact is delivered just then
        race(
            postgres_url,
            worker,
            "commit:written",
            lambda: worker.run_ready(),
            lambda: source.deliver("a", "1", source="world", external_id="1"),
        )
        source.run_ready()

        # then the thread has heard it
        check_meeting(source.store, Trial([tree], [("a", "1")]))
        assert source.get("t0").status == "done"


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_wait_that_is_registered_while_its_fact_is_being_matched_finds_it(tree: Any, postgres_url: str):
    # given a fact that has looked for those who wait, found none, and is not marked as matched yet
    with two_applications(postgres_url) as (worker, source):
        worker.start("hears", {"tree": tree}, thread_id="t0")

        # when the wait is registered just then
        race(
            postgres_url,
            source,
            "match:written",
            lambda: source.deliver("a", "1", source="world", external_id="1"),
            lambda: worker.run_ready(),
        )
        worker.run_ready()

        # then it looks back and finds it
        check_meeting(worker.store, Trial([tree], [("a", "1")]))
        assert worker.get("t0").status == "done"


def test_fact_for_one_alone_goes_to_one_of_two_who_register_and_deliver_at_once(postgres_url: str):
    tree = ["event", "a", True]
    with two_applications(postgres_url) as (worker, source):
        for number in range(2):
            worker.start("hears", {"tree": tree}, thread_id=f"t{number}")
        source.run_ready()

        race(
            postgres_url,
            worker,
            "commit:written",
            lambda: worker.run_ready(),
            lambda: source.deliver("a", "1", source="world", external_id="1"),
        )
        while source.run_ready():
            pass

        check_meeting(source.store, Trial([tree, tree], [("a", "1")]))
        assert sorted(source.get(f"t{number}").status.value for number in range(2)) == ["done", "waiting"]


def test_fact_that_was_taken_while_its_matching_had_begun_is_given_to_nobody_else(postgres_url: str):
    tree = ["event", "a", True]
    with two_applications(postgres_url) as (worker, source), ThreadPoolExecutor(1) as threads:
        # given somebody who waits, and a fact whose matching has just begun
        worker.start("hears", {"tree": tree}, thread_id="t0")
        worker.run_ready()
        source.store.database = database = StoppingDatabase(source.store.database, "match:read_delivery")
        delivering = threads.submit(source.deliver, "a", "1", source="world", external_id="1")
        assert database.is_there.wait(PATIENCE)

        # when another one begins to wait, looks back and takes it
        worker.start("hears", {"tree": tree}, thread_id="t1")
        try:
            worker.run_ready()
        finally:
            database.may_go_on.set()
        delivering.result(PATIENCE)
        source.store.database = database.inner
        drive_all(worker)

        # then the first one has not got it, too
        check_meeting(worker.store, Trial([tree, tree], [("a", "1")]))
        assert sorted(worker.get(f"t{number}").status.value for number in range(2)) == ["done", "waiting"]


def test_mail_for_one_alone_goes_to_one_of_two_who_look_back_for_it_under_different_keys(postgres_url: str):
    with two_applications(postgres_url) as (worker, other):
        # given a mail that nobody waited for, and two who begin to: one knows its sender, one what it replies to
        mail = {"from": "ada@example.org", "to": ["us@example.org"], "subject": "Re: offer", "in_reply_to": "<1@us>"}
        worker.deliver("inbox", {**mail, "message_id": "<2@ada>", "body": "yes"}, kind="email")
        worker.start("hears", {"tree": ["mail", {"from_": "ada@example.org"}]}, thread_id="t0")
        worker.start("hears", {"tree": ["mail", {"in_reply_to": "<1@us>"}]}, thread_id="t1")

        # when the second one looks back while the first has taken it and not committed yet
        race(postgres_url, worker, "commit:written", lambda: worker.run_ready(), lambda: other.run_ready())
        drive_all(other)

        # then one of them has it
        assert sorted(other.get(f"t{number}").status.value for number in range(2)) == ["done", "waiting"]


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_facts_and_waits_race_for_real(postgres_url: str):
    with two_applications(postgres_url) as (worker, source), ThreadPoolExecutor(2) as threads:
        for seed in range(REAL_RACES * TIMES):
            dice = Random(seed)
            trial = a_trial(dice.randrange)
            prefix = f"{seed}."
            start_all(worker, trial, prefix)
            at_once = Barrier(2)

            driving = threads.submit(drive_all, worker, at_once)
            delivering = threads.submit(deliver_all, source, trial, prefix, at_once)
            delivering.result(PATIENCE)
            driving.result(PATIENCE)
            drive_all(worker)

            check_meeting(source.store, trial, prefix)


def start_all(app: Bide, trial: Trial, prefix: str) -> None:
    for number, tree in enumerate(trial.trees):
        app.start("hears", {"tree": named(tree, prefix)}, thread_id=f"{prefix}t{number}")


def drive_all(app: Bide, at_once: Barrier | None = None) -> None:
    if at_once is not None:
        at_once.wait(PATIENCE)
    while app.run_ready(most=10):
        pass


def deliver_all(app: Bide, trial: Trial, prefix: str, at_once: Barrier) -> None:
    at_once.wait(PATIENCE)
    assert all(name in NAMES for name, _ in trial.facts)
    for name, id_ in trial.facts:
        app.deliver(prefix + name, id_, source="world", external_id=prefix + id_)
