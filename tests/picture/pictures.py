"""Pictures to draw: some as users have them, and any that Hypothesis can think of."""

from __future__ import annotations

from hypothesis import strategies as st

from bide.picture import Picture, PictureEdge, PictureNode

START = PictureNode("__start__", kind="start")
END = PictureNode("__end__", kind="end")


def edge(source: str, target: str, label: str = "") -> PictureEdge:
    return PictureEdge(source, target, label)


def choice(source: str, target: str, label: str = "") -> PictureEdge:
    return PictureEdge(source, target, label, is_conditional=True)


def join(source: str, target: str) -> PictureEdge:
    return PictureEdge(source, target, is_join=True)


LINEAR = Picture(
    (START, PictureNode("fetch"), PictureNode("publish"), END),
    (edge("__start__", "fetch"), edge("fetch", "publish"), edge("publish", "__end__")),
)

DIAMOND = Picture(
    (START, *map(PictureNode, ("plan", "search_web", "search_docs", "merge")), END),
    (
        edge("__start__", "plan"),
        edge("plan", "search_web"),
        edge("plan", "search_docs"),
        join("search_web", "merge"),
        join("search_docs", "merge"),
        edge("merge", "__end__"),
    ),
    "A diamond",
)

AGENT = Picture(
    (START, PictureNode("agent"), PictureNode("tools"), END),
    (
        edge("__start__", "agent"),
        choice("agent", "tools", "continue"),
        choice("agent", "__end__", "end"),
        edge("tools", "agent"),
    ),
)

WORKERS = ("researcher", "coder", "writer", "critic", "planner")
SUPERVISOR = Picture(
    (START, PictureNode("supervisor"), *map(PictureNode, WORKERS), END),
    (
        edge("__start__", "supervisor"),
        *(choice("supervisor", worker) for worker in WORKERS),
        *(edge(worker, "supervisor") for worker in WORKERS),
        choice("supervisor", "__end__", "FINISH"),
    ),
)

PAUSED = Picture(
    (
        PictureNode("__start__", kind="start", mark="visited"),
        PictureNode("classify", mark="visited"),
        PictureNode("approve", mark="paused", note="Refund 500 € to Ada?"),
        PictureNode("refund", mark="next"),
        PictureNode("notify", mark="failed"),
        END,
    ),
    (
        edge("__start__", "classify"),
        choice("classify", "approve", "large"),
        choice("classify", "refund", "small"),
        choice("classify", "notify", "spam"),
        edge("approve", "refund"),
        choice("approve", "approve", "ask again"),
        choice("approve", "classify", "reclassify"),
        edge("refund", "__end__"),
        edge("notify", "__end__"),
    ),
    "Refunds",
)

RESEARCH = Picture(
    (START, PictureNode("query"), PictureNode("rank"), END),
    (
        edge("__start__", "query"),
        edge("query", "rank"),
        choice("rank", "query", "too few"),
        choice("rank", "__end__", "enough"),
    ),
)

NESTED = Picture(
    (
        START,
        PictureNode("triage"),
        PictureNode("team", "research team", kind="subgraph", inside=RESEARCH, mark="paused"),
        PictureNode("billing", kind="subgraph"),
        PictureNode("outer", kind="subgraph", inside=Picture((PictureNode("deep", inside=DIAMOND),), ())),
        END,
    ),
    (
        edge("__start__", "triage"),
        choice("triage", "team", "research"),
        choice("triage", "billing", "invoice"),
        edge("team", "outer"),
        edge("billing", "__end__"),
        edge("outer", "__end__"),
        choice("outer", "triage", "again"),
    ),
)

HOSTILE_LABELS = (
    "</svg><script>alert(1)</script>",
    "]]> <!-- & \"quotes\" 'single'",
    'end; --> x["y"] %% %%{init: {}}%%',
    "line one\nline two\r\nline three",
    "emoji 🎉 👩‍👩‍👧 漢字 é ü ñ שלום",
    "`markdown` **bold** #quot; |pipe| $$x$$",
    "nul \x00 bell \x07 escape \x1b surrogate \ud800 last \uffff",
    "x" * 1000,
    " ".join(["word"] * 200),
    "   ",
    "1. item",
)
HOSTILE = Picture(
    tuple(PictureNode(f"n{index}", label, note=label) for index, label in enumerate(HOSTILE_LABELS)),
    tuple(choice(f"n{index}", f"n{index + 1}", label) for index, label in enumerate(HOSTILE_LABELS[1:])),
    HOSTILE_LABELS[0],
)

LOOSE = Picture(
    tuple(map(PictureNode, ("only", "two", "three", "four"))),
    (edge("two", "three"), edge("three", "two"), edge("two", "two", "again")),
)

TWINS = Picture(
    (PictureNode("a"), PictureNode("b")),
    (choice("a", "b", "yes"), choice("a", "b", "maybe"), edge("a", "b"), edge("b", "a"), edge("b", "a", "back")),
)

EMPTY = Picture((), ())
SINGLE = Picture((PictureNode("alone"),), ())

ALL = {
    "linear": LINEAR,
    "diamond": DIAMOND,
    "agent": AGENT,
    "supervisor": SUPERVISOR,
    "paused": PAUSED,
    "nested": NESTED,
    "hostile": HOSTILE,
    "loose": LOOSE,
    "twins": TWINS,
    "empty": EMPTY,
    "single": SINGLE,
}

_KINDS = st.sampled_from(("node", "node", "node", "subgraph", "start", "end"))
_MARKS = st.sampled_from(("", "", "visited", "paused", "failed", "next"))
_TEXTS = st.one_of(st.just(""), st.text(max_size=30), st.sampled_from(HOSTILE_LABELS))


@st.composite
def pictures(draw: st.DrawFn, depth: int = 1, most: int = 9) -> Picture:
    """Any picture: cycles, loops, twins, parts that nothing joins, and pictures inside nodes."""
    count = draw(st.integers(0, most))
    inside = st.none() if depth == 0 else st.one_of(st.none(), st.none(), pictures(depth=depth - 1, most=4))
    nodes = [
        PictureNode(f"n{index}", draw(_TEXTS), draw(_KINDS), draw(_MARKS), draw(inside), draw(_TEXTS))
        for index in range(count)
    ]
    if not nodes:
        return Picture((), (), draw(_TEXTS))
    ids = st.sampled_from([node.id for node in nodes])
    edges = st.builds(PictureEdge, ids, ids, _TEXTS, st.booleans(), st.booleans())
    return Picture(tuple(nodes), tuple(draw(st.lists(edges, max_size=2 * most))), draw(_TEXTS))
