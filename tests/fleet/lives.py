"""What the processes of a fleet do: each takes a place, and what else it is told, and returns when it is over."""

from __future__ import annotations

from typing import Any

from bide import Bide
from bide.store import postgres_transaction
from tests.fleet.place import Place
from tests.fleet.programs.nursery import call


def work(place: list[Any], graphs: str, options: dict[str, Any]) -> None:
    """Be a worker until a signal comes."""
    where = Place(*place)
    with where.open() as store, Bide(store, call(graphs)(where)) as app:
        app.worker(**options).run()


def work_in_a_hurry(place: list[Any], graphs: str, options: dict[str, Any]) -> None:
    """Be a worker whose transactions the server ends soon, if it hears nothing of them: nobody waits half a minute."""
    postgres_transaction.IDLE_MILLISECONDS = 500
    work(place, graphs, options)
