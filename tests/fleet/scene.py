"""A worker that is held in the middle of its work, its peer, and the test that looks at both from outside."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bide import Bide
from bide.types import RunStatus
from tests.fleet.gated import TOLD, Gate
from tests.fleet.machines import Fleet, Lot
from tests.fleet.place import Place
from tests.store.waiting import holds_at_last

ZOMBIE, PEER = 0, 1
LEASE = 0.6
WORKS = {"concurrency": 2, "poll": 0.05}


class Scene:
    """A zombie-to-be, its peer, and the test that looks at both from outside."""

    def __init__(self, app: Bide, place: Place, fleet: Fleet) -> None:
        self.app = app
        self.place = place
        self.fleet = fleet
        self.gate = Gate(place)

    def hold_a_worker(self, hold_at: str, *, place: Place | None = None, network: str = "") -> None:
        """Start a run, and a worker that is held in it."""
        lot: Lot = {"machine": "zombie", "network": network} if network else {"machine": "zombie"}
        self.fleet.start(ZOMBIE, place=place, options=WORKS, **lot)
        self.start("p", hold_at)
        assert holds_at_last(lambda: self.answer("p") or self.gate.arrived.exists()), self.fleet.said(ZOMBIE)

    def start(self, parcel: str, hold_at: str = "") -> None:
        self.app.start("gated", {"parcel": parcel, "hold_at": hold_at}, thread_id=parcel)

    def freeze_the_worker(self) -> None:
        """Stop it, though not while it writes to a file: that would stay locked, and nobody could do anything."""
        assert holds_at_last(self._is_frozen_outside_of_a_write)

    def _is_frozen_outside_of_a_write(self) -> bool:
        self.fleet.freeze(ZOMBIE)
        if not self.place.is_free():
            self.fleet.thaw(ZOMBIE)
            return False
        return True

    def let_the_peer_finish(self) -> None:
        """Start another worker, and wait until it has finished all there is."""
        self.fleet.start(PEER, options=WORKS, machine="peer")
        assert self.is_done("p"), (self.app.get("p"), self.fleet.said_by_all())

    def is_done(self, thread_id: str) -> bool:
        """Answer what it asks, and wait for its end."""
        return holds_at_last(lambda: self.answer(thread_id) or self.app.get(thread_id).status is RunStatus.DONE)

    def answer(self, thread_id: str) -> None:
        for wait in self.app.waits(thread_id=thread_id):
            if wait.kind != "child":
                self.app.wake(wait.id, "yes", key=wait.id)

    def wake_the_zombie(self) -> None:
        """Let it go on, and wait until it has understood that it was not there."""
        self.fleet.thaw(ZOMBIE)
        self.gate.open()
        assert holds_at_last(lambda: "another worker's now" in self.fleet.said(ZOMBIE)), self.fleet.said(ZOMBIE)

    def everything(self) -> list[Any]:
        """Every row that a late write could have changed."""
        tables = {
            "runs": "thread_id, run_id, status, epoch, crashes",
            "checkpoints": "thread_id, ns, seq, epoch",
            "events": "thread_id, number, kind",
            "waits": "wait_id, status, consumed",
            "journal": "thread_id, task_id",
            "threads": "thread_id, events",
            "deliveries": "delivery_id, wakes",
            "bookings": "parcel, what",
        }
        with self.place.looking() as query:
            return [sorted(query(f"SELECT {columns} FROM {table}")) for table, columns in tables.items()]

    def once(self) -> Counter[str]:
        return Counter(f"{one.order} {one.what}" for one in self.place.ledger.effects if one.how == "once")


def check_that_the_zombie_wrote_nothing_and_works_again(scene: Scene, *, is_finished: bool = False) -> None:
    """Let a peer finish, unless it has, wake the zombie, and look what it does."""
    if not is_finished:
        scene.let_the_peer_finish()
    before = scene.everything()

    scene.wake_the_zombie()

    assert scene.everything() == before
    assert scene.app.get("p").values["told"] == TOLD
    assert scene.once() == {"p charge": 1, "p/help help": 1}
    # … and now the peer is gone, and it is the only one.
    scene.fleet.kill(PEER)
    scene.start("q")
    assert scene.is_done("q"), scene.fleet.said(ZOMBIE)
    assert scene.app.store.verify().is_sound
    assert "Traceback" not in scene.fleet.said_by_all()
