"""Who drives runs, and whether they still live."""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

from bide.clock import Instant, uuid7

LEASE_SECONDS = 30.0
"""How long a worker counts as alive after it was last heard of, unless the store is told otherwise."""
SHORTEST_LEASE, LONGEST_LEASE = 0.2, 3600.0
LEASE = int(LEASE_SECONDS * 1000)
NO_LEASE = 0
"""The end of the lease of a worker that never renews one: it lives as long as its process."""
FORGET_AFTER = 24 * 3600 * 1000
"""Milliseconds after which a worker that holds nothing is forgotten."""


class Worker(NamedTuple):
    """One life of one process."""

    worker_id: str
    host: str
    pid: int
    started: str


def this_worker(now: Instant) -> Worker:
    """Describe this process."""
    return Worker(uuid7(now), this_host(), os.getpid(), _started(os.getpid()) or "")


@cache
def this_host() -> str:
    """Name this machine and this space of process ids: in a container, pid 7 is not the host's pid 7."""
    return f"{os.uname().nodename}|{_read('/proc/sys/kernel/random/boot_id')}|{_link('/proc/self/ns/pid')}"


def is_gone(host: str, pid: int, started: str, lease_until: Instant, now: Instant) -> bool:
    """Say whether a worker is gone: its lease has run out, or, seen from the same machine, its process has ended."""
    if host == this_host():
        if _has_ended(pid, started):
            return True
        if lease_until == NO_LEASE:
            return False
    return lease_until < now


def _has_ended(pid: int, started: str) -> bool:
    present = _started(pid)
    # "" means that the kernel does not tell: then a process that exists counts as the one we knew.
    return present is None or bool(started and present and present != started)


def _started(pid: int) -> str | None:
    """Return when a process was started, as the kernel counts; "" where that cannot be told; None if it is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    stat = _read(f"/proc/{pid}/stat")
    if not stat:
        return ""
    # The name in parentheses may hold spaces; the fields after it do not. State is the 1st, start time the 20th.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
