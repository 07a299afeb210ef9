"""Conditions, facts and payloads of every kind, small enough that some of them fit each other."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from bide.waits import (
    Condition,
    Fact,
    after,
    all_of,
    any_of,
    approval,
    at,
    child,
    email,
    event,
    one_of,
    quorum,
    regex,
    webhook,
)

NAMES = st.sampled_from(["paid", "order.paid", "größe", "a|b=1", "x" * 190])
KEYS = st.sampled_from(["id", "order", "größe", "a=b", "a|b", "\x00", "", "k" * 300])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, 1.5, 1e300, 10**300, 2**70, float(2**70)]),
    st.sampled_from(["", "1", "A-17", "grün", "\ud800", "x" * 300]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
PAYLOADS = st.dictionaries(KEYS, VALUES, max_size=4)

REGEXES = st.sampled_from([regex("A-1"), regex("^gr"), regex("(?i)X"), regex(re.compile("[0-9]+", re.ASCII))])
WANTED = st.recursive(
    st.one_of(
        SCALARS,
        st.lists(VALUES, max_size=2),
        REGEXES,
        st.lists(VALUES, min_size=1, max_size=3).map(lambda values: one_of(*values)),
    ),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
MATCHES = st.none() | st.dictionaries(KEYS, WANTED, max_size=3)
LOOKBACKS = st.sampled_from([None, 0, "24h", "90s", 0.5])

MAILBOXES = st.sampled_from(["", "sales", "Sales", "support@example.org"])
SENDERS = [
    "ann@example.org",
    "Ann <ann@example.org>",
    "ANN@Example.ORG",
    "ben@example.net",
    '"ann@example.org" <b@x.org>',
]
IDS = ["<1@x>", "<2@x>", "3@y"]
GLOBS = ["*", "ann@example.org", "*@example.org", "Ben@*", "b?n@*", regex("ann"), regex("^b")]
SUBJECTS = ["Re: *", "re: quote?", "*quote*", "Hello", regex("(?i)quote")]


def emails() -> st.SearchStrategy[Condition]:
    """Conditions for mails."""
    return st.builds(
        email,
        from_=st.sampled_from([None, *GLOBS]),
        to=st.sampled_from([None, *GLOBS]),
        subject=st.sampled_from(SUBJECTS),
        body=st.sampled_from([None, "*yes*", regex("yes|no")]),
        in_reply_to=st.sampled_from([None, *IDS]),
        mailbox=st.sampled_from([None, "sales", "SALES"]),
        lookback=LOOKBACKS,
        exclusive=st.booleans(),
    )


def leaf_conditions() -> st.SearchStrategy[Condition]:
    """Conditions that are no group."""
    schema = st.sampled_from(
        [None, {"type": "object"}, {"required": ["id"]}, {"properties": {"id": {"type": "integer"}}}]
    )
    return st.one_of(
        st.builds(after, st.sampled_from(["0s", "2h30m", 90, 0.25])),
        st.builds(
            at, st.sampled_from(["2026-01-31T08:30Z", "1969-12-31T23:59:59.9999+14:00", "9999-01-01T00:00-05:00"])
        ),
        emails(),
        st.builds(webhook, NAMES, schema=schema, match=MATCHES, lookback=LOOKBACKS, exclusive=st.booleans()),
        st.builds(event, NAMES, match=MATCHES, lookback=LOOKBACKS, exclusive=st.booleans()),
        st.builds(approval, st.sampled_from(["", "May I?"]), st.sampled_from([("approve", "reject"), ("yes",)])),
        st.builds(approval, options=st.just(()), form=st.sampled_from([int, {"type": "object"}])),
        st.builds(child, st.sampled_from(["thread-1", "größe", "t" * 500])),
    )


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2, leaf: st.SearchStrategy[Condition] | None = None) -> Condition:
    """Conditions of any shape."""
    leaf = leaf if leaf is not None else leaf_conditions()
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(leaf)
    inner = conditions(depth - 1, leaf)
    unnamed = draw(st.lists(inner, max_size=3))
    named = draw(
        st.dictionaries(st.sampled_from(["ann", "ben", "cleo"]), inner, min_size=0 if unnamed else 1, max_size=2)
    )
    group = draw(st.sampled_from([any_of, all_of, quorum]))
    if group is quorum:
        return quorum(draw(st.integers(1, len(unnamed) + len(named))), *unnamed, **named)
    return group(*unnamed, **named)


def mails() -> st.SearchStrategy[dict[str, Any]]:
    """Payloads of mails, some of them without this or that."""
    some_ids = st.lists(st.sampled_from(IDS), max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "from": st.sampled_from(SENDERS),
            "to": st.lists(st.sampled_from(SENDERS), max_size=2) | st.sampled_from(SENDERS),
            "cc": st.lists(st.sampled_from(SENDERS), max_size=2),
            "subject": st.sampled_from(["Re: Quote", "RE:  quote!", "Hello", ""]),
            "body": st.sampled_from(["yes", "Oh no\n", ""]),
            "in_reply_to": st.sampled_from(IDS),
            "references": some_ids | some_ids.map(" ".join),
        },
    )


def facts() -> st.SearchStrategy[Fact]:
    """Facts of any kind."""
    return st.one_of(
        st.builds(Fact, st.just("event"), NAMES, PAYLOADS | VALUES, st.just("s"), st.just("1"), st.just(0)),
        st.builds(Fact, st.just("webhook"), NAMES, PAYLOADS | VALUES, st.just("s"), st.just("1"), st.just(0)),
        st.builds(Fact, st.just("email"), MAILBOXES, mails(), st.just("s"), st.just("1"), st.just(0)),
        st.builds(
            Fact,
            st.just("child"),
            st.sampled_from(["thread-1", "größe", "t" * 500, "other"]),
            st.none(),
            st.just("s"),
            st.just("1"),
            st.just(0),
        ),
    )


@st.composite
def fitting(draw: st.DrawFn) -> tuple[Condition, Fact]:
    """A fact, and a condition that was made to fit it: of the same name, asking for some of what it holds."""
    fact = draw(facts())
    if fact.kind == "child":
        return child(fact.name), fact
    if fact.kind == "email":
        return draw(_email_for(fact)), fact
    payload = fact.payload if isinstance(fact.payload, dict) else {}
    chosen = draw(st.sets(st.sampled_from(sorted(payload)))) if payload else set()
    match = {key: draw(_asking_for(payload[key])) for key in sorted(chosen)} if isinstance(fact.payload, dict) else None
    return (event if fact.kind == "event" else webhook)(fact.name, match=match), fact


def _asking_for(value: Any) -> st.SearchStrategy[Any]:
    """Ways to ask for a value: itself, the same number of another type, a choice, a part of it, a pattern."""
    ways = [value, one_of("other", value)]
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**52:
        ways += [float(value), int(value) if value == int(value) else value]
    if isinstance(value, dict):
        ways += [{}, dict(list(value.items())[:1])]
    if isinstance(value, str):
        ways.append(regex(""))
    return st.sampled_from(ways)


def _email_for(fact: Fact) -> st.SearchStrategy[Condition]:
    mail = fact.payload
    senders = ["*", "Ann@Example.org", "b*@*", regex("@")] if "from" in mail else []
    answered = [mail["in_reply_to"]] if "in_reply_to" in mail else []
    return st.builds(
        email,
        from_=st.sampled_from([None, *senders]),
        to=st.sampled_from([None, "*"]) if mail.get("to") or mail.get("cc") else st.none(),
        subject=st.sampled_from([None, "*"]) if "subject" in mail else st.none(),
        body=st.just("*") if "body" in mail else st.just(regex("")),
        in_reply_to=st.sampled_from([None, *answered]),
        mailbox=st.sampled_from([None, fact.name.upper()]) if fact.name else st.none(),
    )
