"""A server in a process of its own: `python -m tests.server.javascript.served DATABASE PORT [alone]`.

`alone` has no worker: it can be killed, and runs go on.
"""

from __future__ import annotations

import sys

from bide import Bide
from bide.server import Settings
from bide.server.process import serve
from bide.server.settings import CorsSettings, LimitSettings, Listening
from tests.server.javascript.agents import agents


def main(database: str, port: str, *alone: str) -> None:
    """Serve until somebody ends it."""
    settings = Settings(
        limits=LimitSettings(rate=0), cors=CorsSettings(origins=("http://localhost:3000",)), worker=not alone
    )
    with Bide(database, agents()) as app:
        serve(app, settings, Listening(port=int(port), grace=2))


if __name__ == "__main__":
    main(*sys.argv[1:])
