"""Conditions in plain form: the form itself, which is read for ever, the way back, and what is refused as damaged."""

from __future__ import annotations

import copy
import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.codec import Codec
from bide.errors import CorruptDataError, InterruptError
from bide.waits import (
    Fact,
    Match,
    after,
    all_of,
    any_of,
    approval,
    at,
    child,
    email,
    event,
    from_plain,
    match,
    one_of,
    open_leaves,
    quorum,
    regex,
    to_plain,
    verdict,
    webhook,
)
from bide.waits.leaves import leaves
from tests.waits.strategies import conditions

DAY = 86_400_000
GOLDEN = [
    (after("2h30m"), {"kind": "after", "ms": 9_000_000}),
    (at("2026-01-31T08:30Z"), {"kind": "at", "instant": 1_769_848_200_000}),
    (
        email(from_="ann@example.org", subject="Re: *"),
        {"kind": "email", "from": "ann@example.org", "subject": "Re: *", "lookback": DAY, "exclusive": False},
    ),
    (
        email(to=regex("x", 2), body="*", in_reply_to="<1@x>", mailbox="sales", lookback=0, exclusive=True),
        {
            "kind": "email",
            "to": {"regex": "x", "flags": "i"},
            "body": "*",
            "in_reply_to": "1@x",
            "mailbox": "sales",
            "lookback": 0,
            "exclusive": True,
        },
    ),
    (
        webhook("paid", schema={"type": "object"}, match={"a": 1}),
        {
            "kind": "webhook",
            "name": "paid",
            "schema": {"type": "object"},
            "match": {"has": {"a": {"is": 1}}},
            "lookback": DAY,
            "exclusive": False,
        },
    ),
    (
        event("paid", match={"a": {"b": [1, None]}, "is": one_of("x", {"y": 1}), "has": regex("z"), "e": {}}),
        {
            "kind": "event",
            "name": "paid",
            "match": {
                "has": {
                    "a": {"has": {"b": {"is": [1, None]}}},
                    "is": {"one_of": ["x", {"y": 1}]},
                    "has": {"regex": "z", "flags": ""},
                    "e": {"has": {}},
                }
            },
            "lookback": DAY,
            "exclusive": False,
        },
    ),
    (event("paid", lookback=None), {"kind": "event", "name": "paid", "lookback": 0, "exclusive": False}),
    (
        approval("May I?", assignees=["ann"], form=int),
        {
            "kind": "approval",
            "title": "May I?",
            "options": ["approve", "reject"],
            "assignees": ["ann"],
            "form": {"type": "integer"},
        },
    ),
    (child("t-1"), {"kind": "child", "thread_id": "t-1"}),
    (
        any_of(after(1), after(2)),
        {
            "kind": "any_of",
            "of": [["after", {"kind": "after", "ms": 1000}], ["after#2", {"kind": "after", "ms": 2000}]],
        },
    ),
    (all_of(x=after(1)), {"kind": "all_of", "of": [["x", {"kind": "after", "ms": 1000}]]}),
    (quorum(1, x=after(1)), {"kind": "quorum", "k": 1, "of": [["x", {"kind": "after", "ms": 1000}]]}),
]


@pytest.mark.parametrize(("condition", "plain"), GOLDEN)
def test_what_is_stored_stays_what_it_is(condition, plain):
    assert to_plain(condition) == plain
    assert from_plain(plain) == condition


@settings(deadline=None)
@given(conditions())
def test_every_condition_comes_back(condition):
    plain = to_plain(condition)

    assert from_plain(plain) == condition
    assert from_plain(json.loads(json.dumps(plain))) == condition
    codec = Codec()
    assert from_plain(codec.decode(codec.encode(plain))) == condition


@pytest.mark.parametrize("given", [None, "after", {"kind": "after"}, 7])
def test_what_is_no_condition_is_not_stored(given):
    with pytest.raises(InterruptError, match="is no condition"):
        to_plain(given)


EVENT = {"kind": "event", "name": "paid", "lookback": 0, "exclusive": False}
EMAIL = {"kind": "email", "subject": "*", "lookback": 0, "exclusive": False}
APPROVAL = {"kind": "approval", "title": "", "options": ["a"], "assignees": []}
ONE = ["x", {"kind": "after", "ms": 1}]
DAMAGED = [
    *(None, 7, "after", [], [1], {}, {"kind": None}, {"kind": 7}, {"kind": "nothing"}, {"kind": ["after"]}),
    *({"kind": "after"}, {"kind": "after", "ms": "1"}, {"kind": "after", "ms": -1}, {"kind": "after", "ms": 10**30}),
    *({"kind": "after", "ms": True}, {"kind": "after", "ms": 1.5}, {"kind": "after", "ms": 1, "more": 1}),
    *({"kind": "at"}, {"kind": "at", "instant": None}, {"kind": "at", "instant": 10**30}),
    *(
        {**EVENT, "name": ""},
        {**EVENT, "name": None},
        {**EVENT, "only": {"has": {}}},
        {"kind": "event", "name": "paid"},
    ),
    *({**EVENT, "lookback": -1}, {**EVENT, "lookback": None}, {**EVENT, "lookback": 10**30}, {**EVENT, "exclusive": 1}),
    *({**EVENT, "match": None}, {**EVENT, "match": {}}, {**EVENT, "match": {"is": 1}}, {**EVENT, "match": {"has": []}}),
    *({**EVENT, "match": {"has": {"a": 1}}}, {**EVENT, "match": {"has": {"a": {"is": {"b": 1}}}}}),
    *({**EVENT, "match": {"has": {"a": {"is": 1, "or": 2}}}}, {**EVENT, "match": {"has": {1: {"is": 1}}}}),
    *({**EVENT, "match": {"has": {"a": {"is": float("nan")}}}}, {**EVENT, "match": {"has": {"a": {"is": b"x"}}}}),
    *({**EVENT, "match": {"has": {"a": {"one_of": []}}}}, {**EVENT, "match": {"has": {"a": {"one_of": "ab"}}}}),
    {**EVENT, "match": {"has": {"a": {"regex": "(", "flags": ""}}}},
    {**EVENT, "match": {"has": {"a": {"regex": "a", "flags": "x"}}}},
    {**EVENT, "match": {"has": {"a": {"regex": None, "flags": ""}}}},
    {**EVENT, "match": {"has": {"a": {"regex": "a"}}}},
    *(
        {"kind": "email", "lookback": 0, "exclusive": False},
        {**EMAIL, "subject": 7},
        {**EMAIL, "subject": {"glob": "*"}},
    ),
    *({**EMAIL, "mailbox": 7}, {**EMAIL, "in_reply_to": None}, {**EMAIL, "from_": "*"}, {**EMAIL, "from": "a <b"}),
    *(
        {"kind": "webhook", **{**EVENT, "kind": "webhook", "schema": []}},
        {**EVENT, "kind": "webhook", "schema": {"x": 1}},
    ),
    *(
        {**APPROVAL, "options": []},
        {**APPROVAL, "options": "ab"},
        {**APPROVAL, "options": [1]},
        {**APPROVAL, "form": 7},
    ),
    *({**APPROVAL, "title": None}, {"kind": "approval"}, {**APPROVAL, "assignees": None}, {**APPROVAL, "by": "me"}),
    *({"kind": "child"}, {"kind": "child", "thread_id": 7}, {"kind": "child", "thread_id": ""}),
    *({"kind": "any_of"}, {"kind": "any_of", "of": []}, {"kind": "any_of", "of": {}}, {"kind": "any_of", "of": [[]]}),
    *(
        {"kind": "any_of", "of": [ONE, ONE]},
        {"kind": "any_of", "of": [ONE], "k": 1},
        {"kind": "all_of", "of": [["a.b", ONE[1]]]},
    ),
    *(
        {"kind": "any_of", "of": [[7, ONE[1]]]},
        {"kind": "any_of", "of": [["x", None]]},
        {"kind": "any_of", "of": ["xy"]},
    ),
    *(
        {"kind": "quorum", "of": [ONE]},
        {"kind": "quorum", "k": 2, "of": [ONE]},
        {"kind": "quorum", "k": True, "of": [ONE]},
    ),
]
FACTS = [
    Fact(kind, "paid", {"a": 1, "subject": "s", "from": "a@x.org"}, "s", "1", 0)
    for kind in ("event", "webhook", "email", "child")
]


@pytest.mark.parametrize("plain", DAMAGED, ids=repr)
def test_a_damaged_condition_is_a_typed_error_and_never_a_match(plain):
    with pytest.raises(CorruptDataError, match="damaged"):
        from_plain(plain)
    with pytest.raises(CorruptDataError, match="damaged"):
        leaves(plain, 0)
    with pytest.raises(CorruptDataError, match="damaged"):
        verdict(plain, {})
    with pytest.raises(CorruptDataError, match="damaged"):
        open_leaves(plain, {})
    for fact in FACTS:
        fits, (reason,) = match(plain, fact)
        assert not fits
        assert "damaged" in reason


def test_a_condition_that_nests_or_grows_without_end_is_damaged():
    deep = {"kind": "after", "ms": 1}
    for _ in range(100_000):
        deep = {"kind": "any_of", "of": [["x", deep]]}
    deep_match = {"is": 1}
    for _ in range(100_000):
        deep_match = {"has": {"a": deep_match}}
    wide = {"kind": "any_of", "of": [[f"p{number}", {"kind": "after", "ms": 1}] for number in range(1001)]}

    for plain in (deep, {**EVENT, "match": deep_match}, wide):
        with pytest.raises(CorruptDataError, match="damaged"):
            from_plain(plain)


@st.composite
def damaged(draw):
    """A stored condition in which something was replaced, taken away or added."""
    plain = copy.deepcopy(to_plain(draw(conditions(depth=2))))
    holder = plain
    for _ in range(draw(st.integers(0, 6))):
        inside = [
            item for item in (holder.values() if isinstance(holder, dict) else holder) if isinstance(item, dict | list)
        ]
        if not inside:
            break
        holder = draw(st.sampled_from(inside))
    junk = draw(
        st.sampled_from([None, True, -1, 10**40, 1.5, "", "*", "\x00", [], {}, [[]], {"is": {}}, {"has": {"a": None}}])
    )
    if isinstance(holder, list):
        holder.insert(draw(st.integers(0, len(holder))), junk)
    else:
        holder[draw(st.sampled_from([*holder, "more", "kind", "match", "of"]))] = junk
    return plain


@settings(max_examples=300, deadline=None)
@given(damaged(), st.sampled_from(FACTS))
def test_any_damage_gives_a_condition_or_a_typed_error(plain, fact):
    assert isinstance(match(plain, fact), Match)
    with suppress(CorruptDataError):
        condition = from_plain(plain)

        assert from_plain(to_plain(condition)) == condition
        assert len(leaves(plain, 0)) >= 1
