"""A worker is cut off from the server for longer than its lease, and nobody tells either of them.

It stops by itself before anybody else believes it dead, and does nothing more in the world; another worker finishes its
work; and when the network is whole again, it works as before. One whose network is only slow is not robbed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.fleet.network import Cable
from tests.fleet.scene import PEER, WORKS, ZOMBIE, Scene, check_that_the_zombie_wrote_nothing_and_works_again
from tests.store.waiting import holds_at_last

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("make_place", ["postgres"], indirect=True),
]


@pytest.fixture
def cable(scene: Scene) -> Iterator[Cable]:
    with Cable(scene.place.url) as cable:
        yield cable


def hold_a_worker_far_away(scene: Scene, cable: Cable, where: str) -> None:
    scene.hold_a_worker(where, place=scene.place._replace(url=cable.dsn), network=cable.network)


CUTS: dict[str, Callable[[Cable], None]] = {
    "both ways": Cable.cut,
    "on the way there": Cable.lose_requests,
    "on the way back": Cable.lose_replies,
}
LATE = 0.1
"""Many times what a statement takes otherwise."""


@pytest.mark.parametrize("way", CUTS)
def test_worker_that_is_cut_off_does_nothing_more_in_the_world_and_works_again_when_it_is_back(way, scene, cable):
    hold_a_worker_far_away(scene, cable, "after once")
    CUTS[way](cable)
    scene.let_the_peer_finish()
    before = scene.everything()

    # It is cut off still, and its node goes on: there is a call to the outside before it.
    scene.gate.open()
    assert holds_at_last(lambda: "another worker's now" in scene.fleet.said(ZOMBIE)), scene.fleet.said(ZOMBIE)
    noted = Counter(effect.what for effect in scene.place.ledger.effects)
    cable.heal()

    assert noted == {"charge": 1, "note": 1, "help": 1}
    assert scene.everything() == before
    scene.fleet.kill(PEER)
    scene.start("q")
    assert scene.is_done("q"), scene.fleet.said(ZOMBIE)
    assert scene.app.store.verify().is_sound


@pytest.mark.parametrize("way", CUTS)
def test_result_that_comes_about_while_its_worker_is_cut_off_is_not_kept(way, scene, cable):
    hold_a_worker_far_away(scene, cable, "in once")
    CUTS[way](cable)
    scene.let_the_peer_finish()
    before = scene.everything()

    # It has its result, and nowhere to keep it.
    scene.gate.open()
    cable.heal()
    assert holds_at_last(lambda: "another worker's now" in scene.fleet.said(ZOMBIE)), scene.fleet.said(ZOMBIE)

    assert scene.everything() == before
    assert scene.once() == {"p charge": 1, "p/help help": 1}
    assert scene.app.store.verify().is_sound


@pytest.mark.parametrize("where", ["in once", "after spawn", "before the end"])
def test_worker_whose_cable_is_whole_before_it_goes_on_writes_nothing_late(where, scene, cable):
    """The server still has the connections of its former life, half open, and hears of them again."""
    hold_a_worker_far_away(scene, cable, where)
    cable.cut()
    scene.let_the_peer_finish()
    cable.heal()

    check_that_the_zombie_wrote_nothing_and_works_again(scene, is_finished=True)


@pytest.mark.parametrize("scene", [5.0], indirect=True)
def test_worker_whose_network_is_slow_keeps_its_runs_and_finishes_them(scene, cable):
    cable.slow_down(LATE)
    hold_a_worker_far_away(scene, cable, "in once")
    scene.fleet.start(PEER, options=WORKS, machine="peer")

    scene.gate.open()

    assert scene.is_done("p"), scene.fleet.said_by_all()
    assert scene.once() == {"p charge": 1, "p/help help": 1}
    with scene.place.looking() as query:
        assert query("SELECT kind FROM events WHERE kind IN ('run.reaped', 'run.taken_over')") == []
    assert scene.app.store.verify().is_sound
