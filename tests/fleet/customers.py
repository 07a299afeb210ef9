"""The world outside of a fleet: it starts parcels, pays for them, and answers what is asked."""

from __future__ import annotations

from random import Random

from bide import Bide
from bide.types import RunStatus

MOVING = (RunStatus.READY, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.DONE)


class Customers:
    """Sends parcels, so many at a time, and remembers them all."""

    def __init__(self, app: Bide, seed: int, at_once: int) -> None:
        self.app = app
        self.dice = Random(seed)
        self.at_once = at_once
        self.sent: list[str] = []
        self.under_way: list[str] = []
        self.released: list[str] = []
        self._unpaid: list[str] = []

    @property
    def arrived(self) -> int:
        return len(self.sent) - len(self.under_way)

    def go_round(self, *, is_enough: bool = False) -> None:
        """Do once whatever there is to do: start, pay, answer, and see who has arrived."""
        while not is_enough and len(self.under_way) < self.at_once:
            self.start(f"parcel-{len(self.sent)}")
        for parcel in self._unpaid:
            self.pay(parcel)
        self._unpaid.clear()
        for wait in self.app.waits(kind="approval", most=1000):
            self.app.wake(wait.id, "yes", by="clerk", key=f"answer to {wait.thread_id}")
        self.under_way = [parcel for parcel in self.under_way if not self.has_arrived(parcel)]

    def start(self, parcel: str) -> None:
        """Start a parcel; every third is paid before, so that its payment is there before anybody waits for it."""
        is_early = self.dice.random() < 1 / 3
        if is_early:
            self.pay(parcel)
        for _ in range(self.dice.choice((1, 1, 2))):
            self.app.start("parcel", {"parcel": parcel, "told": []}, thread_id=parcel, key=f"start {parcel}")
        self.sent.append(parcel)
        self.under_way.append(parcel)
        if not is_early:
            self._unpaid.append(parcel)

    def pay(self, parcel: str) -> None:
        """Pay, and perhaps tell it twice."""
        for _ in range(self.dice.choice((1, 1, 2))):
            self.app.deliver("paid", {"parcel": parcel, "amount": 7}, external_id=f"payment of {parcel}")

    def has_arrived(self, parcel: str) -> bool:
        (run,) = self.app.runs(parcel)
        if run.status is RunStatus.DEAD:
            # It was in the hands of five workers who died. Somebody looks, and finds that it is not its fault.
            self.app.release(parcel)
            self.released.append(parcel)
        else:
            assert run.status in MOVING, f"{parcel}: {self.why(parcel)}"
        return run.status is RunStatus.DONE

    def why(self, parcel: str) -> str:
        thread = self.app.get(parcel)
        kinds = [event.kind for event in self.app.store.events(parcel)]
        return f"{thread.status}, {thread.error}, waits {thread.waits}, {kinds}"
