"""What every test may ask for."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.drivers import DRIVERS, Driver

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell tells what it starts in the background to ignore Ctrl-C, and so would every program that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_messages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own messages, unless a test is about LangChain: whether it is loaded decides what `add_messages` makes."""
    if request.path.parent.name != "langchain":
        monkeypatch.delitem(sys.modules, "langchain_core.messages", raising=False)


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    """Both ways to call a graph: what a test says holds for each."""
    return request.param


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """A real PostgreSQL; a machine without one fails the test, since a skipped test proves nothing."""
    # Imported here, so that a test which needs no PostgreSQL does not load its driver.
    from tests.postgres import running_postgres

    with running_postgres() as dsn:
        yield dsn


@pytest.fixture
def postgres_database(postgres_dsn: str) -> Iterator[str]:
    """An empty database on that PostgreSQL, for one test."""
    from tests.postgres import fresh_database

    with fresh_database(postgres_dsn) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def shared_postgres(postgres_dsn: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """A database that the tests of this session use one after another, and what empties it: that is fast."""
    from tests.postgres import fresh_database
    from tests.stores import wiping

    with fresh_database(postgres_dsn) as dsn, wiping(dsn) as wipe:
        yield dsn, wipe


@pytest.fixture
def postgres_url(shared_postgres: tuple[str, Callable[[], None]]) -> str:
    """The shared database, without a row in it."""
    dsn, wipe = shared_postgres
    wipe()
    return dsn
