"""The server is killed in the middle of its work, comes back from its log, and its clients go on by themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from threading import Semaphore, Thread

import pytest

from bide import Store
from bide.store.postgres import PostgresDatabase
from tests.faults import shop as program
from tests.faults.audit import check_nothing_lost_or_doubled
from tests.faults.server import Cluster, cluster
from tests.faults.shop import Shop, prepare
from tests.faults.size import TIMEOUT, TIMES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]

DEATHS = 5 * TIMES
WORKERS, THREADS = 2, 4
ORDERS_BETWEEN = 12
"""How many orders must be done before the server is killed again: so there is always load, and always progress."""
SECONDS = 120


class Workers:
    """Processes that drive orders until they are told that it is enough."""

    def __init__(self, ledger: Path, server: Cluster, schema: str) -> None:
        self.done: Queue[str] = Queue()
        self.ready = Semaphore(0)
        self.given: list[str] = []
        command = [sys.executable, program.__file__, ledger, server.dsn, schema]
        self.processes = [
            subprocess.Popen([*command, f"worker-{number}", str(THREADS)], stdin=-1, stdout=-1, stderr=-1, text=True)
            for number in range(WORKERS)
        ]
        self.listening = [Thread(target=self._listen, args=(process,)) for process in self.processes]
        for thread in self.listening:
            thread.start()
        for _ in self.processes:
            # A server that is not there when a store is opened is an error at once.
            assert self.ready.acquire(timeout=SECONDS)

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in map(json.loads, process.stdout):
            if line is None:
                self.ready.release()
            elif isinstance(line, str):
                self.done.put(line)
            else:
                self.given += line

    def wait_for(self, orders: int) -> None:
        for _ in range(orders):
            self.done.get(timeout=SECONDS)

    def finish(self) -> list[str]:
        """Let all end what they have begun; return what each of them has said besides."""
        said = []
        for process in self.processes:
            assert process.stdin is not None
            # The end of its input is a line, too, and a process that has died says why below.
            process.stdin.close()
        for process, thread in zip(self.processes, self.listening, strict=True):
            process.wait(SECONDS)
            thread.join(SECONDS)
            assert process.stderr is not None
            said.append(process.stderr.read())
        return said

    def close(self) -> None:
        for process, thread in zip(self.processes, self.listening, strict=True):
            process.kill()
            process.wait(SECONDS)
            thread.join(SECONDS)
            for stream in (process.stdin, process.stdout, process.stderr):
                assert stream is not None
                stream.close()


@pytest.fixture
def server() -> Iterator[Cluster]:
    with cluster() as server:
        yield server


def test_server_that_is_killed_under_load_has_kept_all_that_it_acknowledged(server, schema, ledger):
    with ExitStack() as stack:
        with Store.open(server.dsn, schema=schema) as store:
            prepare(store, schema)
        workers = Workers(ledger.path, server, schema)
        stack.callback(workers.close)

        for _ in range(DEATHS):
            workers.wait_for(ORDERS_BETWEEN)
            server.kill()
            server.start()
        workers.wait_for(ORDERS_BETWEEN)
        said = workers.finish()

        assert said == [""] * WORKERS
        assert [process.returncode for process in workers.processes] == [0] * WORKERS
        with Store.open(server.dsn, schema=schema) as store:
            check_nothing_lost_or_doubled(Shop(store, ledger, schema), server.dsn, workers.given)
    assert server.deaths == DEATHS
    assert len(workers.given) > DEATHS * ORDERS_BETWEEN
    print(f"the server was killed {server.deaths} times, {len(workers.given)} orders, nothing lost")


def test_server_that_stays_away_is_told_of_and_the_thread_goes_on_when_it_is_back(server, schema, ledger):
    with Store.open(server.dsn, schema=schema) as store:
        prepare(store, schema)
        Shop(store, ledger, schema).drive("before")
    with Store(PostgresDatabase(server.dsn, schema=schema, patience=2)) as store:
        shop = Shop(store, ledger, schema)
        store.threads()
        server.kill()

        was_done = shop.try_to_drive("order")
        server.start()
        is_done = shop.try_to_drive("order")

        check_nothing_lost_or_doubled(shop, server.dsn, ["before", "order"])
    assert (was_done, is_done) == (False, True)
    assert [kind for _, kind, _ in ledger.refusals] == ["StoreUnavailableError"]
