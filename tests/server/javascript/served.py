"""A server in a process of its own, which can be killed: `python -m tests.server.javascript.served DATABASE PORT`."""

from __future__ import annotations

import socket
import sys

import uvicorn

from bide import Bide
from bide.server import Settings, create_app
from bide.server.settings import CorsSettings, LimitSettings
from tests.server.javascript.agents import agents


def main(database: str, port: str) -> None:
    """Serve until killed."""
    # Whoever calls before the server is ready waits in the socket's queue.
    listening = socket.create_server(("127.0.0.1", int(port)))
    settings = Settings(limits=LimitSettings(rate=0), cors=CorsSettings(origins=("http://localhost:3000",)))
    with Bide(database, agents()) as app, app.worker(poll=0.05):
        uvicorn.Server(uvicorn.Config(create_app(app, settings), log_config=None)).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
