"""A place for a fleet, in a database of each kind that several processes can share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bide import Bide
from tests.fleet.gated import build
from tests.fleet.machines import Fleet
from tests.fleet.place import Place
from tests.fleet.scene import LEASE, Scene

MakePlace = Callable[..., Place]


@pytest.fixture(params=["sqlite", "postgres"])
def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> MakePlace:
    """Make an empty place; its lease lasts as long as it is told."""

    def make(lease: float = 30.0) -> Place:
        is_file = request.param == "sqlite"
        url = f"sqlite:///{tmp_path / 'bide.db'}" if is_file else request.getfixturevalue("postgres_url")
        return Place(url, str(tmp_path), lease).prepare()

    return make


@pytest.fixture
def scene(make_place: MakePlace, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A place in which a worker can be held in the middle of its work; a test may give it another lease."""
    place = make_place(lease=getattr(request, "param", LEASE))
    with Bide(place.open(), build(place)) as app, app.store, Fleet(place, "tests.fleet.gated:build") as fleet:
        yield Scene(app, place, fleet)
