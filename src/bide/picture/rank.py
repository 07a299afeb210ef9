"""Which node stands above which: cycles are broken, then every edge that is left points down.

Nodes are numbers here, in the order in which the picture names them; edges are pairs of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

Edge = tuple[int, int]


def components(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Return the parts of a graph that no edge joins, each in the order of its nodes."""
    near: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        near[source].append(target)
        near[target].append(source)
    found: list[list[int]] = []
    seen: set[int] = set()
    for node in range(count):
        if node not in seen:
            part = _reachable(node, near)
            seen |= part
            found.append(sorted(part))
    return found


def _reachable(node: int, near: Sequence[Sequence[int]]) -> set[int]:
    reached, ahead = {node}, [node]
    while ahead:
        for other in near[ahead.pop()]:
            if other not in reached:
                reached.add(other)
                ahead.append(other)
    return reached


def back_edges(count: int, edges: Sequence[Edge], first: Collection[int]) -> set[int]:
    """Return the edges to turn round so that no cycle is left: those that lead back to where a walk came from.

    The walk sets out from the `first` nodes, then from nodes that no edge leads to, so a loop is entered where a reader
    would enter it. Where the way forks it matters which branch is walked first; a few orders are tried, and the best is
    the one that turns the fewest edges, and of those the one in which nodes come as the picture names them.
    """
    entered = {target for _, target in edges}
    roots = sorted(range(count), key=lambda node: (node not in first, node in entered, node))
    forks: list[list[int]] = [[] for _ in range(count)]
    for index, (source, _) in enumerate(edges):
        forks[source].append(index)
    by_target = [sorted(fork, key=lambda index: edges[index][1]) for fork in forks]
    tries = [
        _turned(roots, edges, out)
        for out in (forks, by_target, [fork[::-1] for fork in forks], [fork[::-1] for fork in by_target])
    ]
    return min(tries, key=lambda back: (len(back), _against_the_order(edges, back)))


def _against_the_order(edges: Sequence[Edge], back: set[int]) -> int:
    return sum(source > target for index, (source, target) in enumerate(edges) if index not in back)


def _turned(roots: Sequence[int], edges: Sequence[Edge], out: Sequence[Sequence[int]]) -> set[int]:
    """Walk the whole graph, and return the edges that closed a cycle."""
    back: set[int] = set()
    open_nodes: set[int] = set()
    done: set[int] = set()
    for root in roots:
        if root not in done:
            _walk(root, edges, out, open_nodes, done, back)
    return back


def _walk(
    root: int,
    edges: Sequence[Edge],
    out: Sequence[Sequence[int]],
    open_nodes: set[int],
    done: set[int],
    back: set[int],
) -> None:
    """Go as deep as the edges lead; an edge to a node that is still open closes a cycle."""
    trail = [(root, iter(out[root]))]
    open_nodes.add(root)
    while trail:
        node, ahead = trail[-1]
        index = next(ahead, None)
        if index is None:
            trail.pop()
            open_nodes.discard(node)
            done.add(node)
        elif (target := edges[index][1]) in open_nodes:
            back.add(index)
        elif target not in done:
            open_nodes.add(target)
            trail.append((target, iter(out[target])))


def ranks(count: int, edges: Sequence[Edge], first: Collection[int], last: Collection[int]) -> list[int]:
    """Return the rank of each node: below everything that leads to it, the `first` on top, the `last` at the bottom."""
    after: list[list[int]] = [[] for _ in range(count)]
    before: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        after[source].append(target)
        before[target].append(source)
    order = topological(dict(enumerate(after)))
    rank = [0] * count
    for node in order:
        rank[node] = max((rank[other] + 1 for other in before[node]), default=0)
    lowest = max(rank, default=0)
    for node in last:
        if not after[node]:
            rank[node] = lowest
    for node in reversed(order):
        # It goes next to where it leads, when more edges get shorter by that than longer.
        if node not in first and len(after[node]) > len(before[node]):
            rank[node] = min(rank[other] for other in after[node]) - 1
    highest = min(rank, default=0)
    return [place - highest for place in rank]


def topological(after: Mapping[int, Iterable[int]]) -> list[int]:
    """Return nodes so that each stands behind all that lead to it; a graph without cycles has such an order."""
    waiting = dict.fromkeys(after, 0)
    for others in after.values():
        for other in others:
            waiting[other] += 1
    order = [node for node, count in waiting.items() if not count]
    for node in order:  # grows while it is walked
        for other in after[node]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    return order
