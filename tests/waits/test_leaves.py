"""The leaves of a condition, as the store keeps them."""

from __future__ import annotations

from hypothesis import given, settings

from bide.waits import after, all_of, any_of, approval, at, child, email, event, quorum, to_plain, webhook
from bide.waits.groups import leaves_of
from bide.waits.leaves import NO_LIMIT, Leaf, leaves
from tests.waits.strategies import conditions

DAY = 86_400_000


def test_every_leaf_says_what_the_store_must_know():
    condition = any_of(
        after("1h"),
        quorum(1, at("1970-01-01T00:00:02Z"), child("t-1")),
        people=all_of(ann=approval(), ben=event("paid", lookback=None, exclusive=True)),
        mail=email(subject="*", lookback="90s"),
        hook=webhook("paid"),
    )

    found = leaves(to_plain(condition), now=1000)

    assert [leaf[:-1] for leaf in found] == [
        (0, "after", "time", "", 3_601_000, 0, False),
        (1, "quorum.at", "time", "", 2000, 0, False),
        (2, "quorum.child", "child", "child:t-1", None, NO_LIMIT, False),
        (3, "people.ann", "approval", "", None, 0, False),
        (4, "people.ben", "event", "event:paid", None, 0, True),
        (5, "mail", "email", "email:", None, 90_000, False),
        (6, "hook", "webhook", "webhook:paid", None, DAY, False),
    ]
    assert [leaf.plain for leaf in found] == [to_plain(one) for _, one in leaves_of(condition)]


def test_a_single_condition_is_one_leaf():
    assert leaves(to_plain(after("1h")), now=0) == (
        Leaf(0, "after", "time", "", 3_600_000, 0, False, {"kind": "after", "ms": 3_600_000}),
    )


@settings(deadline=None)
@given(conditions())
def test_leaves_are_numbered_and_each_has_a_path_of_its_own(condition):
    found = leaves(to_plain(condition), now=5)

    assert [leaf.number for leaf in found] == list(range(len(found)))
    assert len({leaf.label for leaf in found}) == len(found)
    assert all((leaf.due_at is not None) == (leaf.kind == "time") for leaf in found)
    assert all(bool(leaf.correlation) == (leaf.kind in ("email", "webhook", "event", "child")) for leaf in found)
    for leaf in found:
        (alone,) = leaves(leaf.plain, now=5)
        assert alone[2:] == leaf[2:]
