"""Disks that are full: a small one in memory, and ones on which files may not grow.

The small one is a tmpfs in a mount namespace of its own, so that nothing of it is left when its keeper ends. Root may
make one, and elsewhere whoever may make user namespaces. The limit on files needs no rights: the system refuses to
write beyond it, and PostgreSQL takes that for a full disk.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import psycopg

from tests.faults.server import DURABLE, Cluster, cluster, programs

DISK_MEGABYTES = 64
LEFT_KILOBYTES = 1500
FILE_LIMIT = (1 << 20) + 100
"""What a piece of the server's log needs, and a little more: so a page is written in part, as on a full disk."""
LOG_LIMIT = 750_000
"""More than any table needs, and less than a piece of the log."""
LOG_STEP = 10_000
SECONDS = 60
LASTING = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type NOT IN ('autovacuum worker')"
"""The processes of the server that are there for longer than a moment."""
SETTINGS = {**DURABLE, "max_wal_size": "4MB", "min_wal_size": "2MB", "shared_buffers": "4MB"}


class FullDisk(Protocol):
    """A server whose disk can be filled and emptied."""

    server: Cluster

    def fill(self) -> None: ...

    def free(self) -> None: ...


class SmallDisk:
    """A tmpfs, and a file on it that takes up the space."""

    def __init__(self, server: Cluster) -> None:
        self.server = server
        self.ballast = server.data.parent / "ballast"

    def fill(self) -> None:
        left = f"$(df -k --output=avail {self.ballast.parent} | tail -1)"
        self._run(f"head -c $(( ({left} - {LEFT_KILOBYTES}) * 1024 )) /dev/zero > {self.ballast}")

    def free(self) -> None:
        self._run(f"rm {self.ballast}")

    def _run(self, script: str) -> None:
        subprocess.run([*self.server.inside, "/bin/sh", "-c", script], check=True, timeout=SECONDS)


class FilesThatMayNotGrow:
    """A limit on the size of files, for the server and all of its processes."""

    def __init__(self, server: Cluster) -> None:
        self.server = server

    def fill(self) -> None:
        self._limit(str(FILE_LIMIT))

    def free(self) -> None:
        self._limit("unlimited")

    def _limit(self, size: str) -> None:
        postmaster = int((self.server.data / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        with psycopg.connect(self.server.dsn) as database:
            others = [pid for (pid,) in database.execute(LASTING)]
        for pid in (postmaster, *others):
            # As the server's own user: root need not have the right to do that.
            limit = ["prlimit", f"--pid={pid}", f"--fsize={size}:"]
            subprocess.run(limit, check=True, timeout=SECONDS, **self.server.account)


class LogThatMayNotGrow(FilesThatMayNotGrow):
    """A limit that is too low for the server's log alone: it cannot go on, and ends itself."""

    def fill(self) -> None:
        with psycopg.connect(self.server.dsn, autocommit=True) as database:
            while self._place_in_the_log(database) < LOG_LIMIT:
                database.execute("SELECT pg_logical_emit_message(false, 'ballast', repeat('x', %s))", (LOG_STEP,))
        self._limit(str(LOG_LIMIT))

    @staticmethod
    def _place_in_the_log(database: psycopg.Connection) -> int:
        """Return how full the present piece of the log is."""
        row = database.execute("SELECT (pg_walfile_name_offset(pg_current_wal_insert_lsn())).file_offset").fetchone()
        assert row is not None
        return int(row[0])

    def free(self) -> None:
        self.server.stop()
        self.server.start()


@contextmanager
def log_that_may_not_grow() -> Iterator[FullDisk]:
    with cluster(**SETTINGS) as server:
        yield LogThatMayNotGrow(server)


@contextmanager
def files_that_may_not_grow() -> Iterator[FullDisk]:
    with cluster(**SETTINGS) as server:
        yield FilesThatMayNotGrow(server)


@contextmanager
def small_disk() -> Iterator[FullDisk]:
    """Give a server on a disk of its own; where nobody may make one, the limit on files has to do."""
    home = Path(tempfile.mkdtemp(prefix="bide-disk-", dir="/tmp"))
    (home / "disk").mkdir()
    try:
        with _mounted(home) as inside:
            if inside is None:
                with files_that_may_not_grow() as disk:
                    yield disk
            else:
                server = Cluster(programs(), home, home / "disk" / "data", SETTINGS, inside)
                server.make()
                server.start()
                try:
                    yield SmallDisk(server)
                finally:
                    server.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _mounted(home: Path) -> Iterator[list[str] | None]:
    """Mount a tmpfs; give the command that runs another one where it is seen, or None if that is not allowed here."""
    is_root = os.geteuid() == 0
    account = _account() if is_root else (os.geteuid(), os.getegid())
    options = f"size={DISK_MEGABYTES}m,mode=700,uid={account[0]},gid={account[1]}"
    own = ["--mount"] if is_root else ["--user", "--map-current-user", "--keep-caps", "--mount"]
    script = f"mount -t tmpfs -o {options} tmpfs {home / 'disk'} && echo mounted && read -r line"
    keeper = subprocess.Popen(["unshare", *own, "/bin/sh", "-c", script], stdin=-1, stdout=-1, stderr=-1)
    assert keeper.stdout is not None
    try:
        if keeper.stdout.readline() != b"mounted\n":
            yield None
            return
        enter = ["nsenter", "--target", str(keeper.pid), "--mount"]
        if not is_root:
            yield [*enter, "--user", "--preserve-credentials"]
            return
        os.chown(home, *account)
        yield [*enter, "setpriv", f"--reuid={account[0]}", f"--regid={account[1]}", "--clear-groups"]
    finally:
        keeper.communicate(timeout=SECONDS)


def _account() -> tuple[int, int]:
    """Return whom root runs the server as."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    entry = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return entry.pw_uid, entry.pw_gid


DISKS: dict[str, Callable[[], AbstractContextManager[FullDisk]]] = {
    "a small disk": small_disk,
    "files that may not grow": files_that_may_not_grow,
    "a log that may not grow": log_that_may_not_grow,
}
