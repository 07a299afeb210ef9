"""Whatever is sent, the server answers, and as its OpenAPI says: no failure, no status or shape that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bide import Store
from tests.server.fuzz.fuzzing import Fuzzed, fuzzed, labels
from tests.stores import SCHEMA

FEW, MANY = 5, 60

# The server's own threads throw dice while strategies are drawn from, which Hypothesis cannot tell from its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*random:hypothesis.errors.HypothesisDeprecationWarning")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    file: Path = tmp_path_factory.mktemp("fuzz") / "bide.db"
    with Store.open(f"sqlite:///{file}") as store, fuzzed(store) as opened:
        yield opened


@pytest.mark.parametrize("label", labels())
def test_every_operation_keeps_what_its_description_says(server: Fuzzed, label: str) -> None:
    server.try_out(label, FEW, derandomize=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("label", labels())
@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_every_operation_keeps_it_for_a_long_time(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, label: str
) -> None:
    if kind == "file":
        store = Store.open(f"sqlite:///{tmp_path / 'bide.db'}")
    else:
        store = Store.open(request.getfixturevalue("postgres_url"), schema=SCHEMA)
    with store, fuzzed(store) as server:
        server.try_out(label, MANY)
