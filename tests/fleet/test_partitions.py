"""A worker is cut off from the server for longer than its lease, and nobody tells either of them.

It stops by itself before anybody else believes it dead, and does nothing more in the world; another worker finishes its
work; and when the network is whole again, it works as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.fleet.network import Cable
from tests.fleet.scene import PEER, ZOMBIE, Scene, check_that_the_zombie_wrote_nothing_and_works_again
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


CUTS: dict[str, Callable[[Cable], None]] = {"both ways": Cable.cut, "on the way back": Cable.lose_replies}


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


def test_worker_whose_cable_is_whole_before_it_goes_on_writes_nothing_late(scene, cable):
    """The server still has the connections of its former life, half open, and hears of them again."""
    hold_a_worker_far_away(scene, cable, "in once")
    cable.cut()
    scene.let_the_peer_finish()
    cable.heal()

    check_that_the_zombie_wrote_nothing_and_works_again(scene, is_finished=True)
