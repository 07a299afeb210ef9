"""What processes of these tests do: be a server, or a worker, until they are killed."""

from __future__ import annotations

import os
from typing import Any

from bide import Bide, Store
from bide.server import Settings
from bide.server.process import serve
from bide.server.settings import HookSettings, LimitSettings, Listening
from tests.server.streams.scenes import SECRET, all_graphs

LEASE = 2.0


def settings_of(**said: Any) -> Settings:
    """Settings of a server that asks nobody who they are, and lets everybody call as often as they like."""
    hook = HookSettings("paid", scheme="github", secrets=(SECRET,))
    limits = LimitSettings(rate=0, public_rate=0)
    return Settings(**{"hooks": (hook,), "limits": limits, "heartbeat": 1.0, **said})


def be_a_server(database: str, address: str, port: int, settings: dict[str, Any]) -> None:
    """Serve, and write the address to a file."""

    def ready(url: str) -> None:
        with open(f"{address}~", "w", encoding="utf-8") as file:
            file.write(url)
        os.rename(f"{address}~", address)

    with Store.open(database, lease=LEASE) as store, Bide(store, all_graphs()) as app:
        serve(app, settings_of(**settings), Listening(port=port, grace=5.0), on_ready=ready)


def be_a_worker(database: str) -> None:
    """Drive runs."""
    with Store.open(database, lease=LEASE) as store, Bide(store, all_graphs()) as app:
        app.worker(poll=0.05).run()
