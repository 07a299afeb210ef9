"""A proxy that cuts every connection after so many bytes of the answer, as bad networks and impatient proxies do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread


class Cutting:
    """What the proxy has done."""

    def __init__(self, port: int, most: int) -> None:
        self.port = port
        self.most = most
        self.cuts = 0
        self.url = ""
        self.tasks: set[asyncio.Task[None]] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection, until it is cut, or the test is over."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        with suppress(OSError, asyncio.CancelledError):
            up, down = await asyncio.open_connection("127.0.0.1", self.port)
            asking = asyncio.create_task(_pipe(reader, down))
            try:
                await self._answer(up, writer)
            finally:
                asking.cancel()
                down.close()
        writer.close()
        self.tasks.discard(task)

    async def _answer(self, up: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self.most
        while left and (piece := await up.read(min(left, 65536))):
            left -= len(piece)
            writer.write(piece)
            await writer.drain()
        self.cuts += not left


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.CancelledError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()


@contextmanager
def cutting(port: int, most: int) -> Iterator[Cutting]:
    """Stand between clients and a server."""
    proxy, is_ready, is_over = Cutting(port, most), Event(), asyncio.Event()

    async def serve() -> None:
        server = await asyncio.start_server(proxy.carry, "127.0.0.1", 0)
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        is_ready.set()
        await is_over.wait()
        server.close()
        for task in list(proxy.tasks):
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)

    loop = asyncio.new_event_loop()
    thread = Thread(target=lambda: loop.run_until_complete(serve()), name="cutting-proxy", daemon=True)
    thread.start()
    assert is_ready.wait(30)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join(30)
        loop.run_until_complete(asyncio.sleep(0))  # what was closed is told so
        loop.close()
