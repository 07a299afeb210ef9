"""A server as a process: it listens, works, and ends when it is asked to, with nothing left half done.

On SIGTERM or Ctrl-C it takes no more connections, tells open streams to end, lets requests and steps that are under way
come to their end, gives back runs, and returns. A second signal ends it at once: whatever was acknowledged is in the
database, and whatever was not is taken over by others.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI

from bide.errors import SettingsError
from bide.runtime import Bide, Worker
from bide.server.app import create_app
from bide.server.auth.binding import check_binding
from bide.server.context import Context
from bide.server.settings import Listening, Settings

logger = logging.getLogger("bide.server")

BACKLOG = 2048
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(
    app: Bide,
    settings: Settings | None = None,
    listening: Listening | None = None,
    *,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve an application until somebody asks this process to stop; `on_ready` is told the address."""
    settings, listening = settings or Settings(), listening or Listening()
    check_binding(listening.host, settings, insecure=listening.insecure)
    with listen(listening.host, listening.port) as listener:
        url = address_of(listener)
        worker = app.worker(concurrency=settings.concurrency, grace=listening.grace) if settings.worker else None
        api = create_app(app, settings)
        config = uvicorn.Config(
            api,
            http="h11",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            # Nobody is believed unless they are named: rates are limited by address, and anybody can say any.
            proxy_headers=bool(listening.trusted_proxies),
            forwarded_allow_ips=list(listening.trusted_proxies),
            timeout_graceful_shutdown=max(1, round(listening.grace)),
            timeout_keep_alive=75,
        )
        Process(config, worker, lambda: on_ready(url)).run(sockets=[listener])


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Take a port, before anything else is begun: who cannot have it is told so at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as problem:
            raise SettingsError(_why(problem, host, port)) from problem
        listener.set_inheritable(True)
        yield listener
    finally:
        listener.close()


def _why(problem: OSError, host: str, port: int) -> str:
    if problem.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is taken: another server listens there. Stop it, or say --port 0 for any port."
    if problem.errno == errno.EACCES:
        return f"Port {port} is for the administrator of this machine. Say --port with one above 1023."
    return f"Nobody can listen at {host}, port {port}: {problem.strerror or problem}."


def address_of(listener: socket.socket) -> str:
    """Return the address under which a browser on this machine finds the server."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


class Process(uvicorn.Server):
    """The web server, with a worker beside it."""

    def __init__(self, config: uvicorn.Config, worker: Worker | None, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._api = cast("FastAPI", config.app)
        self._worker = worker
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to work when requests can come, and not before: who fails to begin must not hold runs."""
        await super().startup(sockets)
        if self.should_exit:
            return
        if self._worker is not None:
            self._context.worker = self._worker
            if self._api.state.tracing is not None:
                self._worker.around = self._api.state.tracing.drives_of(self._worker.store)
            self._worker.start()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, requests and work side by side, each within the grace."""
        self._context.stopping.set()
        work = [] if self._worker is None else [asyncio.to_thread(self._worker.stop)]
        with _breaking_streams_off():
            await asyncio.gather(super().shutdown(sockets), *work)
        if self._api.state.tracing is not None:
            await asyncio.to_thread(self._api.state.tracing.close)

    @property
    def _context(self) -> Context:
        found: Context = self._api.state.bide
        return found

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Listen for signals. Unlike uvicorn's own, this does not die of them afterwards: a clean end is code 0."""
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ask the server to stop; who asks twice does not want to wait."""
        if self.should_exit:
            os.write(2, b"Ended at once: runs that were under way are taken over by others.\n")
            os._exit(128 + sig)
        self.should_exit = True


@contextmanager
def _breaking_streams_off() -> Iterator[None]:
    """Keep uvicorn from complaining of streams that have no proper end: they are left so, for clients to reconnect."""
    log = logging.getLogger("uvicorn.error")

    def is_news(record: logging.LogRecord) -> bool:
        return record.getMessage() != "ASGI callable returned without completing response."

    log.addFilter(is_news)
    try:
        yield
    finally:
        log.removeFilter(is_news)
