"""The PostgreSQL that the benchmarks run on: started for one run, and as careful as one that holds money."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tools.needs import POSTGRES, find_postgres, provide
from tools.postgres import serving
from tools.terminal import Problem

SETTINGS = {
    "listen_addresses": "",  # everybody comes through the socket
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "timezone": "UTC",
}
# Survives a restart by convention, so it is on a disk, where /tmp may be in memory; and a socket's path must be short.
PLACE = "/var/tmp"


@dataclass(frozen=True)
class Server:
    """A PostgreSQL on which databases may be made, by its DSN."""

    dsn: str

    def url(self, database: str) -> str:
        """Return the address of a database on it, in the form that every library here reads."""
        from psycopg.conninfo import conninfo_to_dict  # only whoever measures PostgreSQL needs its driver

        known = {key: value for key, value in conninfo_to_dict(self.dsn).items() if key != "dbname"}
        who = ":".join(quote(str(known.pop(key)), safe="") for key in ("user", "password") if key in known)
        return f"postgresql://{who}@/{database}?{urlencode(known, safe='/')}"

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """Give the address of a database of one's own, and drop it at the end."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        with self.connected() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            with self.connected() as connection:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Connect to the server itself, to do what belongs to no database."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            yield connection

    @property
    def version(self) -> str:
        """Return the server's version, without what its packager adds."""
        with self.connected() as connection:
            return str(connection.info.parameter_status("server_version")).split()[0]


@contextmanager
def running() -> Iterator[Server]:
    """Start a server of our own, also beside one that the machine has; the one that `dev.py test` finds or installs."""
    provide(POSTGRES)
    programs = find_postgres({"PATH": os.environ.get("PATH", os.defpath)})
    if programs is None:
        raise Problem(
            f"The benchmarks start a PostgreSQL of their own, and its programs are not here. {POSTGRES.advice}"
        )
    home = Path(tempfile.mkdtemp(prefix="bide-bench-", dir=PLACE))
    try:
        with serving(Path(programs), home, SETTINGS) as dsn:
            yield Server(dsn)
    finally:
        shutil.rmtree(home, ignore_errors=True)
