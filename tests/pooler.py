"""A real PgBouncer in transaction mode: each transaction of a client may be on another connection to the server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tools.needs import PGBOUNCER, find_pgbouncer
from tools.postgres import read_to_the_end, unprivileged_account

READY = b"process up"
PORT = "6432"


@contextmanager
def pooler(dsn: str, *, connections: int = 2) -> Iterator[str]:
    """Give the DSN under which the pooler passes transactions on to the server of another DSN."""
    program = find_pgbouncer()
    if program is None:
        raise RuntimeError(f"The tests need PgBouncer and there is none. {PGBOUNCER.advice}")
    home = Path(tempfile.mkdtemp(prefix="bide-pool-", dir="/tmp"))
    account = unprivileged_account(home)
    server = conninfo_to_dict(dsn)
    (home / "users").write_text(f'"{server["user"]}" ""\n')
    (home / "pooler.ini").write_text(
        f"[databases]\n* = host={server['host']} port={server.get('port') or 5432}\n"
        f"[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\nunix_socket_dir = {home}\n"
        f"auth_type = trust\nauth_file = {home}/users\npool_mode = transaction\ndefault_pool_size = {connections}\n"
    )
    started = subprocess.Popen([program, home / "pooler.ini"], stderr=subprocess.PIPE, cwd=home, **account)
    try:
        wait_until_ready(started)
        yield make_conninfo(dsn, host=str(home), port=PORT)
    finally:
        started.terminate()
        started.wait()
        shutil.rmtree(home, ignore_errors=True)


def wait_until_ready(started: subprocess.Popen[bytes]) -> None:
    """Read the pooler's log until it says that it is ready, and go on reading so that it never blocks on us."""
    assert started.stderr is not None
    log = []
    for line in started.stderr:
        log.append(line)
        if READY in line:
            Thread(target=read_to_the_end, args=(started.stderr,), daemon=True).start()
            return
    started.stderr.close()
    raise RuntimeError(f"PgBouncer did not start:\n{b''.join(log).decode()}")
