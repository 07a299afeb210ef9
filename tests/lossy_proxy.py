"""A proxy between a store and its PostgreSQL that loses what it is told to lose, and then hangs up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK = 65536


class LossyProxy:
    """Passes bytes both ways. `lose_reply()` and `lose_request()` each concern the next one of any connection."""

    def __init__(self, dsn: str) -> None:
        given = conninfo_to_dict(dsn)
        self._host, self._port = str(given.pop("host")), int(given.pop("port", None) or 5432)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._lock = Lock()
        self._to_lose = ""
        self.lost = 0
        """How many requests and replies were lost."""
        self.dsn = make_conninfo(**{**given, "host": "127.0.0.1", "port": self._server.getsockname()[1]})
        Thread(target=self._accept, daemon=True).start()

    def lose_reply(self) -> None:
        """Let the next request reach the server, and lose what it answers."""
        self._to_lose = "reply"

    def lose_request(self) -> None:
        """Lose the next request before it reaches the server."""
        self._to_lose = "request"

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = self._connected()
                for source, sink, what in ((client, server, "request"), (server, client, "reply")):
                    Thread(target=self._pass_on, args=(source, sink, what), daemon=True).start()

    def _connected(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _pass_on(self, source: socket.socket, sink: socket.socket, what: str) -> None:
        with suppress(OSError):
            while (data := source.recv(CHUNK)) and not self._is_lost(what):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()

    def _is_lost(self, what: str) -> bool:
        with self._lock:
            if self._to_lose != what:
                return False
            self._to_lose = ""
            self.lost += 1
            return True


@contextmanager
def lossy_proxy(dsn: str) -> Iterator[LossyProxy]:
    """Run a proxy in front of the server of a DSN."""
    proxy = LossyProxy(dsn)
    try:
        yield proxy
    finally:
        proxy.close()
