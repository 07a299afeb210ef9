"""Lanes: what a worker must serve to claim a run."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_QUEUE = "default"


def lane_of(graph: str, queue: str = DEFAULT_QUEUE, version: str = "") -> str:
    """Name what a worker must serve to claim a run: a queue, a graph, and the version that the run is pinned to."""
    return f"{queue}/{graph}@{version}"


class Lane(NamedTuple):
    """A lane, read."""

    queue: str
    graph: str
    version: str


def read_lane(lane: str) -> Lane:
    """Read the name of a lane."""
    queue, _, rest = lane.partition("/")
    graph, _, version = rest.rpartition("@")
    return Lane(queue, graph, version)
