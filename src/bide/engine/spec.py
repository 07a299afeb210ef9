"""GraphSpec: what `compile()` produces and the engine runs. Plain data and functions, no run in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bide.codec import Codec
from bide.engine.care import NO_CARE, Care
from bide.engine.channels import Barrier, Channel, LastValue
from bide.errors import InvalidUpdateError, did_you_mean

DEFERRED = "~defer"
"""The hidden key that holds the deferred nodes whose turn has not come."""
PARALLEL = "parallel_results"
"""The key that holds what the branches before a fan-in returned."""
GATHERED = "~gathered"
"""The hidden key that says that a fan-in has run on them."""
PREVIOUS = "~previous"
"""The hidden key that holds what a function's last call on this thread left for the next."""
GIVEN = "~given"
"""The hidden key that holds what a graph inside a task was given: for each key a digest, and the length of a list."""
FRAMES = "~frames"
"""The hidden key that holds, for each graph inside this one that goes on between calls, its latest checkpoint."""


class Call(NamedTuple):
    """A user's function, and how to call it."""

    function: Callable[..., Any]
    is_async: bool
    takes_state: bool = True
    injected: tuple[tuple[str, str], ...] = ()
    """Parameters that the engine fills: (parameter, `config` | `runtime` | `writer` | `store` | `error` | …)."""
    twin: Callable[..., Any] | None = None
    """The async form of a thing that has both (`invoke` and `ainvoke`)."""
    parameters: tuple[str, ...] = ()
    """The names of its positional parameters, where they matter."""


class Subgraph(NamedTuple):
    """A graph that runs inside a task of another."""

    spec: GraphSpec
    keeps: bool | None = None
    """None: its state belongs to the task · True: it goes on from one call to the next · False: it is not saved."""
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    config: Mapping[str, Any] = {}
    """What `with_config` has said; it is added to the config of the run."""


class Branch(NamedTuple):
    """A conditional edge: a function that chooses the next places."""

    name: str
    call: Call
    read: Callable[[Mapping[str, Any]], Any]
    destinations: Mapping[Any, str] | None
    """What the function's results mean, or None when it returns names itself."""
    reads_all: bool = True
    """Whether it is shown the whole state, and not only the keys of a schema of its own."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node, with everything about it that can be known at compile."""

    name: str
    call: Call
    read: Callable[[Mapping[str, Any]], Any]
    """Makes the node's argument from channel values."""
    edges: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()
    joins: tuple[str, ...] = ()
    """Names of the barrier channels at which this node arrives."""
    subgraph: Subgraph | None = None
    """The graph that this node is, if it is one."""
    care: Care = NO_CARE
    """What happens when it fails, hangs, or has been run before."""
    is_feeder: bool = False
    """Whether it is the last node of a branch that leads to a fan-in."""
    is_fanin: bool = False
    destinations: tuple[str, ...] = ()
    """Where its `Command(goto=…)` may lead, as far as its author has said; for pictures."""


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """A graph, ready to run."""

    name: str
    nodes: Mapping[str, NodeSpec]
    start: NodeSpec
    """START as a node: its edges and branches lead to the first nodes."""
    channels: Mapping[str, Channel]
    joins: Mapping[str, str]
    """Barrier channel → the node that runs when it is full."""
    input_keys: frozenset[str]
    output_keys: tuple[str, ...]
    state_keys: frozenset[str]
    """Every key of the graph's own schemas; barrier channels are not among them."""
    read_update: Callable[[Any], Mapping[str, Any] | None]
    """Turns a dict or a schema instance into key → value; None when it is neither."""
    fingerprint: str
    codec: Codec
    open_state: bool = True
    """Whether keys outside the schema may be kept when an edit brings them."""
    fleeting: tuple[str, ...] = ()
    deferred: frozenset[str] = frozenset()
    """Nodes that run only when nothing else is left."""
    value_key: str | None = None
    """The one key whose value is the graph's input and output, for graphs made of a function."""
    begins: tuple[str, ...] = ()
    """Keys that have a value before anything is written: the empty list of a reducer, and the like."""

    def initial(self) -> dict[str, Any]:
        """Return the values before any write: new ones each time, since a reducer may change them in place."""
        return {key: self.channels[key].initial() for key in self.begins}

    def check_keys(self, pairs: Mapping[str, Any], who: str) -> None:
        """Refuse keys that the state does not have, and name the one that was probably meant."""
        if pairs.keys() <= self.state_keys:
            return
        unknown = next(key for key in pairs if key not in self.state_keys)
        raise InvalidUpdateError(
            f"{who} state key {unknown!r}, which the state does not have.{did_you_mean(unknown, self.state_keys)} "
            f"Known keys: {', '.join(sorted(self.state_keys))}. Add it to the state's schema, or leave it out."
        )

    def channel(self, key: str) -> Channel:
        """Return the rule of a key; a key that an edit brought in keeps its last value."""
        return self.channels.get(key, _PLAIN)

    def barrier(self, name: str) -> Barrier:
        """Return a barrier channel."""
        channel = self.channels[name]
        assert isinstance(channel, Barrier)
        return channel


_PLAIN = LastValue()
