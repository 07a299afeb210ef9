"""A PostgreSQL that may be killed: it keeps its promises (fsync), and comes back from what it has on its disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tools.needs import SYSTEM_NEEDS, find_postgres
from tools.postgres import WHILE_WE_LIVE, stop, unprivileged_account, wait_until_ready

DURABLE = {
    "listen_addresses": "",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "timezone": "UTC",
}
PATIENCE_SECONDS = 60


class Cluster:
    """A data directory, and the server that serves it from time to time."""

    def __init__(
        self, programs: Path, home: Path, data: Path, settings: Mapping[str, str], inside: Sequence[str] = ()
    ) -> None:
        self.programs = programs
        self.inside = inside
        """A command that runs another one where the data is, as whoever may run the server."""
        self.home = home
        self.data = data
        self.settings = settings
        self.dsn = f"host={home} user=bide dbname=postgres"
        self.account = {} if inside else unprivileged_account(home)
        self.deaths = 0
        self._server: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        made = self.run(
            "initdb", "--wal-segsize=1", "-U", "bide", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
        )
        assert made.returncode == 0, made.stdout + made.stderr

    def start(self) -> None:
        """Start the server, and return when it takes connections."""
        server = [self.programs / "postgres", "-D", self.data, "-k", self.home]
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        self._server = subprocess.Popen(
            [*self.inside, "/bin/sh", "-c", WHILE_WE_LIVE, "sh", *server, *options],
            cwd=self.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **self.account,
        )
        try:
            wait_until_ready(self._server)
        except RuntimeError:
            self.stop()
            raise

    def kill(self) -> None:
        """Stop the server at once, without a checkpoint and without a word to its clients."""
        killed = self.run("pg_ctl", "stop", "-m", "immediate", "-w")
        assert killed.returncode == 0, killed.stdout + killed.stderr
        self.deaths += 1
        self.stop()

    def stop(self) -> None:
        if self._server is not None:
            stop(self._server)
            self._server = None

    def is_running(self) -> bool:
        return self.run("pg_ctl", "status").returncode == 0

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.inside, self.programs / program, "-D", self.data, *arguments],
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
            **self.account,
        )


def programs() -> Path:
    """Return where the server's programs are: one that the caller has running is not ours to kill."""
    found = find_postgres({name: value for name, value in os.environ.items() if name != "BIDE_TEST_PG_DSN"})
    if found is None:
        raise RuntimeError(f"The tests need a PostgreSQL server and there is none. {SYSTEM_NEEDS[0].advice}")
    return Path(found)


@contextmanager
def cluster(**settings: str) -> Iterator[Cluster]:
    """Make a cluster with a running server, and take both away in the end."""
    home = Path(tempfile.mkdtemp(prefix="bide-pg-", dir="/tmp"))
    try:
        made = Cluster(programs(), home, home / "data", {**DURABLE, **settings})
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def terminate_all(connection: psycopg.Connection) -> int:
    """Terminate every backend but the one of this connection; return how many that were."""
    rows = connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database()"
    )
    return sum(done for (done,) in rows)
