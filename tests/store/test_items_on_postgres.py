"""The long-term store means the same in both databases: PostgreSQL answers, and SQLite is the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bide import Store
from bide.store.item_memory import InMemoryStore
from bide.store.item_ops import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from tests.store.conftest import FakeClock


@pytest.fixture
def store(postgres_url: str, clock: FakeClock) -> Iterator[Store]:
    with Store.open(postgres_url, schema="bide", clock=clock) as store:
        yield store


SEGMENTS = st.text(alphabet="a1.%\x00\x01\xff\ud800", min_size=1, max_size=2)
NAMESPACES = st.lists(SEGMENTS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["", "a", "b", "\x00", "ä"])
OPS = st.one_of(
    st.builds(
        PutOp,
        NAMESPACES,
        KEYS,
        st.none() | st.fixed_dictionaries({"n": st.integers(0, 3)}),
        st.none(),
        st.none() | st.sampled_from([1, 2]),
    ),
    st.builds(GetOp, NAMESPACES, KEYS, st.none() | st.booleans()),
    st.builds(
        SearchOp,
        st.lists(SEGMENTS, max_size=2).map(tuple),
        st.none() | st.fixed_dictionaries({"n": st.fixed_dictionaries({"$gte": st.integers(0, 3)})}),
        st.integers(0, 4),
        st.integers(0, 2),
        st.none(),
        st.none() | st.booleans(),
    ),
    st.builds(
        ListNamespacesOp,
        st.none() | st.tuples(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), NAMESPACES)),
        st.none() | st.integers(1, 2),
        st.integers(0, 4),
        st.integers(0, 2),
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.lists(OPS, max_size=6), st.integers(0, 90_000)), max_size=5))
def test_postgres_answers_as_sqlite_does(store, clock, story):
    theirs = store.items
    with InMemoryStore(clock=clock) as ours:
        for ops, pause in story:
            assert theirs.batch(ops) == ours.batch(ops)
            clock.advance(pause)

        everything = SearchOp((), limit=1000, refresh_ttl=False)
        assert theirs.batch([everything]) == ours.batch([everything])
        for item in theirs.search((), limit=1000, refresh_ttl=False):
            theirs.delete(item.namespace, item.key)
        theirs.sweep_ttl()
