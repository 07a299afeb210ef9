"""A PostgreSQL of our own: made in a folder, reached through a socket in it, stopped when we are done.

The tests and the benchmarks each start theirs. Readable by Python 3.8, like dev.py.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import threading
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Iterator, Mapping

READY = b"database system is ready to accept connections"
# The server lives as long as our end of the shell's standard input is open: a run that is killed outright leaves no
# server behind. The shell lets go of the log, so that the log ends when the server does.
WHILE_WE_LIVE = '"$@" & server=$!; exec 2>/dev/null; read -r line; kill -INT "$server"; wait "$server"'


@contextmanager
def serving(programs: Path, home: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Make a cluster in `home`, give the DSN under which it is served, and stop that one server at the end."""
    account = unprivileged_account(home)
    data = home / "data"
    initdb = [programs / "initdb", "-D", data, "-U", "bide", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    made = subprocess.run(initdb, cwd=home, capture_output=True, text=True, check=False, **account)
    if made.returncode != 0:
        raise RuntimeError(f"initdb failed:\n{made.stdout}{made.stderr}")
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    server = subprocess.Popen(
        ["/bin/sh", "-c", WHILE_WE_LIVE, "sh", programs / "postgres", "-D", data, "-k", home, *options],
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for whoever started us, who then stops the server in order
        **account,
    )
    try:
        wait_until_ready(server)
        yield f"host={home} user=bide dbname=postgres"
    finally:
        stop(server)


def unprivileged_account(home: Path) -> dict[str, Any]:
    """Return whom to run PostgreSQL as: it refuses root, so root gives it to the account that owns no files of ours."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    account = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(home, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def wait_until_ready(server: subprocess.Popen[bytes]) -> None:
    """Read the server's log until it says that it is ready, and go on reading so that it never blocks on us."""
    assert server.stderr is not None
    log: deque[bytes] = deque(maxlen=50)
    for line in server.stderr:
        log.append(line)
        if READY in line:
            threading.Thread(target=read_to_the_end, args=(server.stderr,), daemon=True).start()
            return
    server.stderr.close()
    raise RuntimeError(f"PostgreSQL did not start:\n{b''.join(log).decode()}")


def read_to_the_end(log: IO[bytes]) -> None:
    """Throw the rest of the log away; it ends when the server does."""
    with log:
        deque(log, maxlen=0)


def stop(server: subprocess.Popen[bytes]) -> None:
    """Stop this one server, without waiting for clients that forgot to leave."""
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGQUIT)
        server.wait()
