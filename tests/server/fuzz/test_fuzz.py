"""Whatever is sent, the server answers, and as its OpenAPI says: no failure, no status or shape that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bide import Store
from tests.postgres import fresh_database
from tests.server.fuzz.fuzzing import Fuzzed, fuzzed, labels
from tests.stores import SCHEMA

FEW, MANY = 5, 25

# The server's own threads throw dice while strategies are drawn from, which Hypothesis cannot tell from its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*random:hypothesis.errors.HypothesisDeprecationWarning")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    file: Path = tmp_path_factory.mktemp("fuzz") / "bide.db"
    with Store.open(f"sqlite:///{file}") as store, fuzzed(store) as opened:
        yield opened


@pytest.mark.parametrize("label", labels())
def test_every_operation_keeps_what_its_description_says(server: Fuzzed, label: str) -> None:
    server.check(label, FEW, derandomize=True)


@pytest.fixture(scope="module", params=["file", "postgres"])
def hardened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with ExitStack() as stack:
        if request.param == "file":
            url, schema = f"sqlite:///{tmp_path_factory.mktemp('long') / 'bide.db'}", None
        else:
            url, schema = stack.enter_context(fresh_database(request.getfixturevalue("postgres_dsn"))), SCHEMA
        store = stack.enter_context(Store.open(url, schema=schema))
        yield stack.enter_context(fuzzed(store))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("label", labels())
def test_every_operation_keeps_it_for_a_long_time(hardened: Fuzzed, label: str) -> None:
    hardened.check(label, MANY)
