"""Namespaces are exact to the segment: what begins with the same letters is not below, whatever the letters are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide import Store
from bide.codec import Codec
from bide.store.item_checks import request_of
from bide.store.item_errors import InvalidItemError
from bide.store.item_memory import InMemoryStore
from bide.store.item_ops import ListNamespacesOp, MatchCondition, PutOp
from bide.store.namespaces import decode_namespace, encode_namespace, under

# Few letters, so that segments often begin alike: all that a separator, an escape, a pattern or a path is made of.
SEGMENTS = st.one_of(
    st.text(alphabet="a1.%_/*\\'\x00\x01\x02\xff\ud800\U0010ffff", min_size=1, max_size=4),
    st.text(st.characters(exclude_categories=()), min_size=1, max_size=6),
)
NAMESPACES = st.lists(SEGMENTS, min_size=1, max_size=4).map(tuple)
PREFIXES = st.lists(SEGMENTS, max_size=3).map(tuple)

TREE = [
    ("shop",),
    ("users",),
    ("users", "1"),
    ("users", "1", "notes"),
    ("users", "1", "notes", "2024"),
    ("users", "10"),
    ("users", "10", "notes"),
    ("users", "1x"),
    ("usersx", "1"),
]


@pytest.fixture
def tree() -> Iterator[InMemoryStore]:
    with InMemoryStore() as items:
        items.batch([PutOp(namespace, key, {}) for namespace in TREE for key in ("a", "b")])
        yield items


# ── The bytes ──────────────────────────────────────────────────────────────────────────────────────────────────────


@given(NAMESPACES)
def test_namespace_comes_back_from_its_bytes(namespace):
    assert decode_namespace(encode_namespace(namespace)) == namespace


@given(NAMESPACES, NAMESPACES)
def test_bytes_are_in_the_order_of_the_tuples(one, other):
    assert (encode_namespace(one) < encode_namespace(other)) == (one < other)


@given(NAMESPACES, PREFIXES)
def test_range_of_a_prefix_holds_what_begins_with_its_segments_and_nothing_else(namespace, prefix):
    since, until = under(prefix)

    assert (since <= encode_namespace(namespace) < until) == (namespace[: len(prefix)] == prefix)


@given(PREFIXES, NAMESPACES)
def test_range_of_a_prefix_holds_everything_below_it(prefix, rest):
    since, until = under(prefix)

    assert since <= encode_namespace(prefix + rest) < until


# ── The store ──────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(st.lists(NAMESPACES, max_size=12), PREFIXES)
def test_search_finds_exactly_what_lies_under_the_prefix(namespaces, prefix):
    with InMemoryStore() as items:
        items.batch([PutOp(namespace, "key", {"here": list(namespace)}) for namespace in namespaces])

        expected = sorted({namespace for namespace in namespaces if namespace[: len(prefix)] == prefix})
        for filter in (None, {"absent": None}):
            found = items.search(prefix, filter=filter, limit=100)
            assert [item.namespace for item in found] == expected
            assert all(item.value == {"here": list(item.namespace)} for item in found)
        assert items.list_namespaces(prefix=tuple("*" for _ in prefix)) == sorted(
            {namespace for namespace in namespaces if len(namespace) >= len(prefix)}
        )


@settings(max_examples=60)
@given(st.lists(st.tuples(NAMESPACES, st.text(st.characters(exclude_categories=()), max_size=5)), max_size=10))
def test_each_item_is_found_under_its_own_namespace_and_key_and_no_other(places):
    with InMemoryStore() as items:
        items.batch([PutOp(namespace, key, {"number": number}) for number, (namespace, key) in enumerate(places)])

        expected = {place: number for number, place in enumerate(places)}
        assert {place: items.get(*place).value["number"] for place in places} == expected
        assert len(items.search((), limit=100)) == len(expected)


@pytest.mark.parametrize("neighbour", ["10", "1x", "1.", "1%", "1_", "1/", "1\x00", "1\xff", "1*", "_", "%", "*"])
def test_neighbour_that_begins_alike_is_not_below(neighbour):
    with InMemoryStore() as items:
        items.put(("users", "1"), "key", {})
        items.put(("users", neighbour), "key", {})

        assert [item.namespace for item in items.search(("users", "1"))] == [("users", "1")]
        assert [item.namespace for item in items.search(("users", neighbour))] == [("users", neighbour)]
        assert items.get(("users", neighbour), "key") is not None


def test_segments_with_a_separator_in_them_are_not_taken_apart():
    with InMemoryStore() as items:
        items.put(("a.b", "c"), "key", {"n": 1})
        items.put(("a", "b.c"), "key", {"n": 2})
        items.put(("a", "b", "c"), "key", {"n": 3})

        places = [("a.b", "c"), ("a", "b.c"), ("a", "b", "c")]
        assert [items.get(place, "key").value["n"] for place in places] == [1, 2, 3]
        assert len(items.search(("a",))) == 2


@pytest.mark.parametrize("query", ["list_items", "scan_items", "next_namespace"])
def test_database_walks_through_the_range_of_the_prefix_and_nothing_else(path, query):
    with Store.open(f"sqlite:///{path}") as store:
        params = {"since": b"a", "until": b"b", "key": b"", "now": 0, "most": 1, "skip": 0}

        def explain(tx):
            return [row[-1] for row in tx.connection.execute("EXPLAIN QUERY PLAN " + tx.sql[query], params)]

        plan = " / ".join(store.database.read(explain))

    assert "SEARCH items USING PRIMARY KEY" in plan
    assert "namespace<?" in plan


# ── Listing namespaces ─────────────────────────────────────────────────────────────────────────────────────────────


def test_namespaces_are_listed_in_order_each_once(tree):
    assert tree.list_namespaces() == TREE


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        ({"prefix": ("users", "1")}, TREE[2:5]),
        ({"prefix": ()}, TREE),
        ({"suffix": ()}, TREE),
        ({"suffix": ("notes",)}, [("users", "1", "notes"), ("users", "10", "notes")]),
        ({"prefix": ("users",), "suffix": ("1",)}, [("users", "1")]),
        ({"prefix": ("*", "1")}, [*TREE[2:5], ("usersx", "1")]),
        ({"prefix": ("users", "*", "notes")}, [*TREE[3:5], ("users", "10", "notes")]),
        ({"suffix": ("1", "*")}, [("users", "1", "notes")]),
        ({"prefix": ("users",) * 5}, []),
        ({"max_depth": 1}, [("shop",), ("users",), ("usersx",)]),
        ({"max_depth": 2}, [*TREE[:3], ("users", "10"), ("users", "1x"), ("usersx", "1")]),
        ({"max_depth": 9}, TREE),
        ({"suffix": ("notes",), "max_depth": 2}, [("users", "1"), ("users", "10")]),
        ({"limit": 2, "offset": 3}, TREE[3:5]),
        ({"max_depth": 1, "limit": 1, "offset": 1}, [("users",)]),
        ({"limit": 0}, []),
        ({"offset": 99}, []),
    ],
)
def test_namespaces_are_listed_by_their_ends_and_down_to_a_depth(tree, ask, expected):
    assert tree.list_namespaces(**ask) == expected


def test_several_conditions_hold_together(tree):
    prefixes = (MatchCondition("prefix", ("users",)), MatchCondition("prefix", ("*", "10")))

    [found] = tree.batch([ListNamespacesOp((*prefixes, MatchCondition("suffix", ("notes",))))])

    assert found == [("users", "10", "notes")]


@pytest.mark.parametrize(
    ("paths", "beginning"),
    [
        ([], ()),
        ([("users", "1")], ("users", "1")),
        ([("users", "*", "notes")], ("users",)),
        ([("*", "1"), ("users",)], ("users",)),
    ],
)
def test_listing_walks_only_through_what_the_prefixes_share_up_to_a_wildcard(paths, beginning):
    op = ListNamespacesOp(tuple(MatchCondition("prefix", path) for path in paths))

    assert request_of(op, Codec(), None, True).where == under(beginning)


def test_namespace_is_listed_as_long_as_it_holds_something(tree):
    tree.delete(("shop",), "a")
    assert ("shop",) in tree.list_namespaces()

    tree.delete(("shop",), "b")
    assert ("shop",) not in tree.list_namespaces()


def test_depth_is_one_at_least(tree):
    with pytest.raises(InvalidItemError, match=r"max_depth=0.*1 or more"):
        tree.list_namespaces(max_depth=0)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from("ab*"), min_size=1, max_size=4).map(tuple), max_size=12),
    st.lists(st.sampled_from("ab*"), max_size=3).map(tuple),
    st.lists(st.sampled_from("ab*"), max_size=3).map(tuple),
    st.none() | st.integers(1, 4),
    st.integers(0, 5),
    st.integers(0, 3),
)
def test_listing_is_what_sorting_all_namespaces_would_give(namespaces, prefix, suffix, max_depth, limit, offset):
    def alike(path, segments):
        return len(path) == len(segments) and all(p in ("*", s) for p, s in zip(path, segments, strict=True))

    with InMemoryStore() as items:
        items.batch([PutOp(namespace, "key", {}) for namespace in namespaces])

        found = items.list_namespaces(prefix=prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset)

    fitting = [
        namespace
        for namespace in namespaces
        if alike(prefix, namespace[: len(prefix)]) and alike(suffix, namespace[max(0, len(namespace) - len(suffix)) :])
    ]
    assert found == sorted({namespace[:max_depth] for namespace in fitting})[offset : offset + limit]
