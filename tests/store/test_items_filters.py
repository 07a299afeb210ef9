"""A filter compares what a value holds: typed, on its top-level keys, and what cannot be compared does not match."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.store.item_errors import InvalidFilterError
from bide.store.item_filters import conditions_of, matches
from bide.store.item_memory import InMemoryStore
from bide.store.item_ops import PutOp
from bide.store.item_requests import PAGE
from tests.store.conftest import FakeClock

PETS = ("pets",)


@pytest.fixture
def items() -> Iterator[InMemoryStore]:
    with InMemoryStore() as items:
        items.put(PETS, "rex", {"kind": "dog", "age": 3, "tags": ["loud"], "owner": {"name": "Ada"}, "tame": True})
        items.put(PETS, "tom", {"kind": "cat", "age": 7.5, "tags": [], "owner": None, "tame": False})
        items.put(PETS, "old", {"kind": "cat", "age": "unknown"})
        yield items


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (None, {"rex", "tom", "old"}),
        ({}, {"rex", "tom", "old"}),
        ({"kind": "cat"}, {"tom", "old"}),
        ({"kind": "cat", "age": 7.5}, {"tom"}),
        ({"kind": "Cat"}, set()),
        ({"tags": ["loud"]}, {"rex"}),
        ({"owner": {"name": "Ada"}}, {"rex"}),
        ({"owner": {}}, set()),
        ({"age": {"$eq": 3}}, {"rex"}),
        ({"age": {"$ne": 3}}, {"tom", "old"}),
        ({"age": {"$gt": 3}}, {"tom"}),
        ({"age": {"$gte": 3}}, {"rex", "tom"}),
        ({"age": {"$lt": 7.5}}, {"rex"}),
        ({"age": {"$lte": 7.5}}, {"rex", "tom"}),
        ({"age": {"$gt": 3, "$lt": 8}, "kind": "cat"}, {"tom"}),
        ({"age": {"$gte": "u"}}, {"old"}),
        ({"kind": {"$gt": "cat"}}, {"rex"}),
    ],
)
def test_search_returns_what_meets_every_condition(items, filter, expected):
    assert {item.key for item in items.search(PETS, filter=filter)} == expected


@pytest.mark.parametrize(
    ("stored", "filter", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": Decimal(1)}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": {"b": [1]}}, {"a": {"b": [True]}}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}, True),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, False),
        ({"a": (1,)}, {"a": [1]}, False),
        ({"a": {"$x": 1}}, {"a": {"$eq": {"$x": 1}}}, True),
        ({"a": math.nan}, {"a": math.nan}, False),
    ],
)
def test_equality_goes_by_value_and_tells_truth_from_numbers(stored, filter, expected):
    assert matches(stored, conditions_of(filter)) is expected


def test_key_that_is_missing_counts_as_none(items):
    assert {item.key for item in items.search(PETS, filter={"owner": None})} == {"tom", "old"}
    assert {item.key for item in items.search(PETS, filter={"tame": {"$ne": True}})} == {"tom", "old"}
    assert items.search(PETS, filter={"weight": {"$lt": 5}}) == []


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ("3", 2),
        (3, "2"),
        (None, 2),
        (True, 0),
        ([3], 2),
        ({"a": 1}, 2),
        ({1}, 2),
        (math.nan, 2),
        (Decimal("NaN"), 2),
        (datetime(2024, 1, 1, tzinfo=UTC), date(2023, 1, 1)),
        (datetime(2024, 1, 1, tzinfo=UTC), datetime(2023, 1, 1)),  # noqa: DTZ001 — that is the point
    ],
)
def test_what_cannot_be_compared_matches_no_order(stored, wanted):
    for operator in ("$gt", "$gte", "$lt", "$lte"):
        assert not matches({"a": stored}, conditions_of({"a": {operator: wanted}}))


@pytest.mark.parametrize(
    ("filter", "hint"),
    [
        ({"age": {"$gth": 3}}, r"operator '\$gth'.*\$gte.*Did you mean '\$gt"),
        ({"age": {"$gt": 3, "lt": 5}}, "operator 'lt', which does not exist"),
        ({"age": {"$gt": None}}, r"\$gt None, of type NoneType"),
        ({"age": {"$lt": True}}, r"\$lt True, of type bool"),
        ({"age": {"$lte": [1]}}, r"of type list.*\$eq or \$ne"),
        ("kind = 'cat'", "a dict .* this one is of type str"),
        ([("kind", "cat")], "of type list"),
    ],
)
def test_filter_that_means_nothing_is_refused_with_what_to_write(items, filter, hint):
    with pytest.raises(InvalidFilterError, match=hint):
        items.search(PETS, filter=filter)


@pytest.mark.parametrize("text", ["' OR 1=1 --", "%", "cat' ; DROP TABLE items; --", "_at", "$kind"])
def test_text_in_a_filter_is_a_value_and_nothing_else(items, text):
    assert items.search(PETS, filter={"kind": text}) == []
    assert items.search(PETS, filter={text: "cat"}) == []
    assert len(items.search(PETS)) == 3


@pytest.mark.parametrize(("limit", "offset"), [(10, 0), (1, 0), (7, 5), (1000, 0), (3, PAGE), (5, 10_000), (0, 3)])
def test_filter_over_many_pages_counts_what_matches_and_keeps_the_order(limit, offset):
    clock = FakeClock()
    with InMemoryStore(clock=clock) as items:
        # Written in an order that is not that of their keys, each of which begins the next.
        for number in range(3 * PAGE + 5):
            place = number * 89 % (3 * PAGE + 5)
            items.put(("deep", f"{place % 2}"), "k" * place, {"place": place})
            clock.advance(number % 2)

        everything = items.search((), limit=10_000)
        found = items.search((), filter={"place": {"$gte": 20}}, limit=limit, offset=offset)

        assert found == [item for item in everything if item.value["place"] >= 20][offset : offset + limit]


SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([-1.5, 0.0, 2.0, math.inf, math.nan])
    | st.sampled_from([Decimal(1), Decimal("2.5"), Fraction(1, 2)])
    | st.text("ab", max_size=2)
    | st.sampled_from([date(2024, 1, 1), date(2024, 1, 2), b"", b"a"])
)
VALUES = SIMPLE | st.lists(SIMPLE, max_size=2) | st.dictionaries(st.sampled_from("xy"), SIMPLE, max_size=2)
DICTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(VALUES, VALUES)
def test_a_value_is_either_equal_or_different(stored, wanted):
    is_equal = matches({"a": stored}, conditions_of({"a": {"$eq": wanted}}))

    assert is_equal is not matches({"a": stored}, conditions_of({"a": {"$ne": wanted}}))
    assert is_equal is matches({"a": stored}, conditions_of({"a": wanted}))


@given(VALUES, SIMPLE.filter(lambda value: value is not None and not isinstance(value, bool)))
def test_orders_agree_with_each_other(stored, wanted):
    holds = {op: matches({"a": stored}, conditions_of({"a": {op: wanted}})) for op in ("$lt", "$lte", "$gt", "$gte")}
    equal = matches({"a": stored}, conditions_of({"a": wanted}))

    assert holds["$lte"] == (holds["$lt"] or equal)
    assert holds["$gte"] == (holds["$gt"] or equal)
    assert not (holds["$lt"] and holds["$gt"])


@settings(max_examples=60)
@given(st.lists(DICTS, max_size=8), DICTS, st.integers(0, 5), st.integers(0, 3))
def test_store_finds_what_one_would_find_by_looking_at_every_value(values, filter, limit, offset):
    with InMemoryStore(clock=FakeClock()) as items:
        items.batch([PutOp(PETS, str(number), value) for number, value in enumerate(values)])

        found = items.search(PETS, filter=filter, limit=limit, offset=offset)

    expected = [str(number) for number, value in enumerate(values) if matches(value, conditions_of(filter))]
    assert [item.key for item in found] == expected[offset : offset + limit]
