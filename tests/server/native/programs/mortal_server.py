"""A server of the graphs of these tests, without a worker.

    python mortal_server.py DATABASE

It prints its address. With BIDE_FAILPOINT=wake:committed it dies when an answer is durable, and before it could say so.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn

sys.path.insert(0, str(Path(__file__).parents[4]))

from bide import Bide
from bide.server import Settings, create_app
from tests.server.native.world import graphs


def main(database: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    with Bide(database, graphs()) as app:
        print("http://{}:{}".format(*listening.getsockname()), flush=True)
        config = uvicorn.Config(create_app(app, Settings(worker=False)), log_config=None)
        uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
