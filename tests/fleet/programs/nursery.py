"""A process from which workers are born: it has imported everything already, so a worker costs a fork.

    python nursery.py

It obeys lines of JSON, and answers each with one: `["born", {…}]` with the pid of a new worker, `["wait", pid]` with
how it ended, a signal as a negative number. What a worker has to say is in a file of its own. All die with the nursery.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Failpoints are armed by the environment when they are imported, or not at all. Each worker arms its own.
    os.environ["BIDE_FAILPOINT_TRACE"] = os.devnull
    sys.path.insert(0, str(Path(__file__).parents[3]))

PR_SET_PDEATHSIG = 1
CLONE_NEWUTS = 0x04000000
CLONE_NEWNET = 0x40000000


def give_birth(told: dict[str, Any]) -> int:
    """Let a process live as it is told; return its pid."""
    pid = os.fork()
    if pid == 0:
        live(told)
    return pid


def live(told: dict[str, Any]) -> None:
    """Live in a process of its own, and never return."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    said = os.open(told["says"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    code = 1
    try:
        if "machine" in told:
            move_to(libc, told["machine"])
        if "network" in told:
            join(libc, told["network"])
        arm(told.get("point", ""), told.get("trace", ""))
        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", force=True)
        call(told["life"])(*told["given"])
        code = 0
    except BaseException:  # whatever it is, it is told
        logging.exception("this process ends with an error")
    finally:
        os._exit(code)


def move_to(libc: ctypes.CDLL, machine: str) -> None:
    """Live on a machine of another name: then nobody elsewhere can see whether this process still runs."""
    if libc.unshare(CLONE_NEWUTS) != 0:
        raise OSError(ctypes.get_errno(), "this machine does not let us name another one; run the tests as root")
    socket.sethostname(machine)


def join(libc: ctypes.CDLL, network: str) -> None:
    """Live in another network: what is cut there is cut for this process alone."""
    with open(f"/run/netns/{network}", "rb") as found:
        if libc.setns(found.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "this machine does not let us into that network; run the tests as root")


def arm(point: str, trace: str) -> None:
    from bide import failpoints

    failpoints._ARMED, failpoints._TRACE, failpoints.ON = point, trace, bool(point or trace)


def call(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def main() -> None:
    import psycopg  # noqa: F401 — for all at once

    import bide.failpoints
    import bide.runtime
    import bide.store.postgres
    import tests.fleet.lives  # noqa: F401 — for all at once

    assert bide.failpoints.ON
    for line in sys.stdin:
        match json.loads(line):
            case ["born", told]:
                answer: Any = give_birth(told)
            case ["wait", pid]:
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
