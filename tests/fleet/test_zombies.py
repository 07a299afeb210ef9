"""A worker that seems dead and is not: it is stopped, or all its threads are, for longer than its lease.

Another worker finishes what it had in its hands. When it comes back, it writes nothing late and repeats nothing; and
then it is a worker again.
"""

from __future__ import annotations

import pytest

from tests.fleet.gated import PLACES
from tests.fleet.scene import check_that_the_zombie_wrote_nothing_and_works_again

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WHERE = [*(("postgres", where) for where in PLACES), *(("sqlite", where) for where in PLACES[::3])]


@pytest.mark.parametrize(("make_place", "where"), WHERE, indirect=["make_place"])
def test_worker_that_was_stopped_past_its_lease_writes_nothing_late(where, scene):
    scene.hold_a_worker(where)

    scene.freeze_the_worker()

    check_that_the_zombie_wrote_nothing_and_works_again(scene)


@pytest.mark.parametrize("where", ["first", "before the end"])
def test_node_that_blocks_all_threads_of_its_process_past_its_lease_is_fenced(where, scene):
    scene.hold_a_worker(f"{where}, all threads")

    # Nothing beats: whoever holds the interpreter's lock does not give it back.

    check_that_the_zombie_wrote_nothing_and_works_again(scene)


@pytest.mark.parametrize("make_place", ["postgres"], indirect=True)
def test_worker_that_was_stopped_in_the_middle_of_a_transaction_holds_up_nobody(scene):
    """What it has locked must be free again some time after its lease, though its connection stands."""
    scene.hold_a_worker("in a transaction")

    scene.freeze_the_worker()

    check_that_the_zombie_wrote_nothing_and_works_again(scene)
