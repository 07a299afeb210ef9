"""A network of its own for one process, and one cable from there to the server, which can be cut."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from threading import Event, Thread
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

CHUNK = 65536
SECONDS = 30


def ip(*words: str) -> None:
    """Change a network; that takes root, and iproute2."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr} (run the tests as root, with iproute2)"


class Cable:
    """Joins a network to the machine on which the server is reached through a socket in a folder.

    A cable that is cut tells nobody: both sides believe that their connections stand.
    """

    def __init__(self, dsn: str) -> None:
        given = conninfo_to_dict(dsn)
        number = os.getpid() % 16000
        self.network = f"bide{number}"
        self._here, self._there = f"bd{number}a", f"bd{number}b"
        first = ip_address("10.100.0.0") + 4 * number
        self._address, self._peer = str(first + 1), str(first + 2)
        self._server = f"{given.pop('host')}/.s.PGSQL.{given.pop('port', None) or 5432}"
        self._dsn = given
        self._late = 0.0
        self._is_over = Event()
        self._stack = ExitStack()

    @property
    def dsn(self) -> str:
        """The server, as it is seen from the network."""
        host, port = self._listening.getsockname()
        return make_conninfo(**{**self._dsn, "host": host, "port": port})

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            ip("netns", "add", self.network)
            stack.callback(ip, "netns", "delete", self.network)
            stack.callback(self._find_replies)  # the rest of what can happen ends with the network
            ip("link", "add", self._here, "type", "veth", "peer", "name", self._there, "netns", self.network)
            ip("address", "add", f"{self._address}/30", "dev", self._here)
            ip("link", "set", self._here, "up")
            ip("-n", self.network, "address", "add", f"{self._peer}/30", "dev", self._there)
            ip("-n", self.network, "link", "set", self._there, "up")
            self._listening = socket.create_server((self._address, 0))
            stack.callback(self._listening.close)
            Thread(target=self._accept, daemon=True).start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._stack.close()

    # ── What can happen to it ──────────────────────────────────────────────────────────────────────────────────────

    def cut(self) -> None:
        """Let nothing through any more, in either direction."""
        ip("link", "set", self._here, "down")

    def lose_replies(self) -> None:
        """Let through what is asked, and nothing of what is answered."""
        ip("route", "add", "blackhole", f"{self._peer}/32")

    def lose_requests(self) -> None:
        """Let nothing through of what is asked, though it could still be answered."""
        ip("-n", self.network, "route", "add", "blackhole", f"{self._address}/32")

    def slow_down(self, seconds: float) -> None:
        """Let each packet be so late, in both directions."""
        self._late = seconds

    def heal(self) -> None:
        """Let everything through again."""
        self._find_replies()
        with suppress(AssertionError):
            ip("-n", self.network, "route", "del", "blackhole", f"{self._address}/32")
        ip("link", "set", self._here, "up")

    def _find_replies(self) -> None:
        with suppress(AssertionError):
            ip("route", "del", "blackhole", f"{self._peer}/32")

    # ── Carrying ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                for source, sink in ((client, server), (server, client)):
                    Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self._is_over.wait(self._late)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
