"""Whether a stored thread still fits the code of its graph."""

from __future__ import annotations

from bide.engine.spec import GraphSpec
from bide.engine.values import Checkpoint
from bide.errors import GraphChanged


def check_fits(spec: GraphSpec, checkpoint: Checkpoint) -> None:
    """Refuse a thread whose nodes or keys the graph no longer has, instead of ending it in silence."""
    gone = [task.node for task in checkpoint.tasks if task.node not in spec.nodes]
    if gone:
        raise GraphChanged(
            f"The thread stands before node {gone[0]!r}, which graph {spec.name!r} no longer has. "
            f"Known nodes: {', '.join(map(repr, spec.nodes))}. Bring the node back (an old name may point to new "
            f"code), rename it in a hook, compile(migrate=…), or move the thread on with update_state(config, None, "
            f"as_node=…)."
        )
    lost = [key for key in checkpoint.values if key not in spec.channels and key not in checkpoint.extras]
    if lost:
        raise GraphChanged(
            f"The thread holds state key {lost[0]!r}, which graph {spec.name!r} no longer has. "
            f"Known keys: {', '.join(sorted(spec.state_keys))}. Bring the key back, rename or drop it in a hook, "
            f"compile(migrate=…), or begin a new thread."
        )
