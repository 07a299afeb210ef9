"""A client that reads server-sent events byte by byte, and leaves when it is told to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx

CLIENT = httpx.Client(timeout=60, verify=False, limits=httpx.Limits(max_keepalive_connections=0))
"""One for all requests: to make a client takes longer than to ask a server."""


class Sent(NamedTuple):
    """One event."""

    event: str
    data: Any
    id: str | None = None

    @property
    def told(self) -> tuple[str, Any]:
        """What it says, wherever it stands."""
        return self.event, self.data


def events_in(response: httpx.Response) -> Iterator[Sent]:
    """Read the events of a response until it ends; a broken one raises."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield Sent(fields.get("event", ""), json.loads(fields["data"]), fields.get("id"))
            fields = {}


@contextmanager
def opened(url: str, *, after: str | None = None, body: Any = None) -> Iterator[Iterator[Sent]]:
    """Open a stream; leaving it closes the connection."""
    headers = {"accept": "text/event-stream"} | ({} if after is None else {"last-event-id": after})
    method = "GET" if body is None else "POST"
    with CLIENT.stream(method, url, json=body, headers=headers) as response:
        if response.status_code != 200:
            raise AssertionError(f"{response.status_code}: {response.read().decode()}")
        yield events_in(response)


def read(
    url: str, *, after: str | None = None, body: Any = None, most: int | None = None, until: Any = None
) -> list[Sent]:
    """Read a stream to its end, or until so many events came, or one that is waited for."""
    is_last: Callable[[Sent], bool] = until or (lambda sent: False)
    told: list[Sent] = []
    if most == 0:
        return told
    with opened(url, after=after, body=body) as events:
        for sent in events:
            told.append(sent)
            if len(told) == most or is_last(sent):
                break
    return told


def told(events: list[Sent]) -> list[tuple[str, Any]]:
    """What events say."""
    return [sent.told for sent in events]
