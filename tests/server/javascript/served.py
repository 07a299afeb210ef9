"""A server in a process of its own: `python -m tests.server.javascript.served DATABASE SOCKET [alone]`.

The socket is the number of a file that listens, and that others hold as well: while the server is away, whoever calls
waits in its queue. `alone` has no worker: it can be killed, and runs go on.
"""

from __future__ import annotations

import socket
import sys

import uvicorn

from bide import Bide
from bide.server import Settings, create_app
from bide.server.process import Process
from bide.server.settings import CorsSettings, LimitSettings
from tests.server.javascript.agents import agents


def main(database: str, listening: str, *alone: str) -> None:
    """Serve until somebody ends it."""
    settings = Settings(
        limits=LimitSettings(rate=0), cors=CorsSettings(origins=("http://localhost:3000",)), worker=not alone
    )
    with Bide(database, agents()) as app:
        config = uvicorn.Config(
            create_app(app, settings), http="h11", lifespan="on", log_config=None, timeout_graceful_shutdown=2
        )
        worker = None if alone else app.worker(poll=0.05, grace=2)
        Process(config, worker, lambda: None).run(sockets=[socket.socket(fileno=int(listening))])


if __name__ == "__main__":
    main(*sys.argv[1:])
