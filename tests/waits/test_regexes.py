"""Regular expressions: they mean what they mean to `re`, and no pattern and no text can make them take long."""

from __future__ import annotations

import random
import re
import warnings
from contextlib import suppress

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bide.errors import InterruptError
from bide.shape.regex_limits import TooCostlyError
from bide.waits import regex
from bide.waits.patterns import FLAGS, LONGEST_REGEX, Regex, searched

ATOMS = [
    *("a", "b", ".", "1", "é", "_", " ", "K", "ſ", "-", "{", "}", "]", r"\.", r"\x61", r"\u0062", r"\n", r"\-", "\n"),
    *(
        r"\d",
        r"\w",
        r"\s",
        r"\D",
        r"\W",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-c1]",
        "[]a]",
        "[^]]",
        r"[\]]",
        "[[]",
        "[&&a]",
        "[|~]",
    ),
    *("^", "$", r"\b", r"\B", r"\A", r"\Z"),
]
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "{,}", "*?", "+?", "??", "{0}", "{1,2}?"]
PIECES = st.builds(
    lambda atom, times: atom + ("" if atom in ATOMS[-6:] else times), st.sampled_from(ATOMS), st.sampled_from(REPEATS)
)
PATTERNS = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.builds("({}){}".format, inner, st.sampled_from(REPEATS)),
        st.builds("(?:{}|{}){}".format, inner, inner, st.sampled_from(REPEATS)),
        st.builds("(?P<name>{})".format, PIECES),
        st.lists(inner, max_size=3).map("".join),
    ),
    max_leaves=6,
)
TEXTS = st.text(alphabet="aabbc1_ \n-.éKkſsS[]&|", min_size=1, max_size=8)
FLAG_SETS = st.lists(st.sampled_from("aims"), unique=True).map("".join)


def as_re(pattern: str, flags: str) -> re.Pattern[str] | None:
    value = 0
    for letter in flags:
        value |= FLAGS[letter]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # [[] and [&&a] may mean something else one day
            return re.compile(pattern, value)
    except (re.error, OverflowError):
        return None


@settings(max_examples=500, deadline=None)
@given(PATTERNS, FLAG_SETS, st.lists(TEXTS, min_size=1, max_size=5))
def test_a_pattern_finds_what_re_finds(pattern, flags, texts):
    compiled = as_re(pattern, flags)
    assume(compiled is not None)  # it has two groups of one name
    wanted = regex(pattern, compiled.flags)

    assert [searched(wanted, text) for text in texts] == [bool(compiled.search(text)) for text in texts]


@pytest.mark.parametrize("flags", ["", "m", "a", "i", "s", "ms"])
@pytest.mark.parametrize(
    "pattern", ["a$", "^a", "a\\Z", "\\Aa", "^$", "$\\n", "\\ba", "a\\b", "\\Ba", "a\\B", "a.a", "\\bé", "K"]
)
def test_places_mean_what_they_mean_to_re(pattern, flags):
    texts = ["a", "a\n", "a\n\n", "\na", "b\na\nb", "ba", "ab", "a b", "é", "aé", "\n", "a\na", "k", "\u212a", "A"]
    compiled = as_re(pattern, flags)

    found = [text for text in texts if searched(regex(pattern, compiled.flags), text)]

    assert found == [text for text in texts if compiled.search(text)]


@settings(max_examples=500, deadline=None)
@given(st.text(alphabet="ab()[]{}*+?|^$\\-1,.:<=P\n&d", max_size=12))
def test_what_re_refuses_is_refused(pattern):
    with suppress(InterruptError):
        regex(pattern)

        assert as_re(pattern, "") is not None


def test_flags_may_stand_at_the_start_of_the_pattern():
    assert searched(regex("(?i)quote"), "QUOTE")
    assert searched(regex("(?ms)^b.c$"), "a\nb\nc\nd")
    assert not searched(regex("quote"), "QUOTE")
    assert searched(regex(re.compile("quote", re.IGNORECASE)), "QUOTE")
    assert regex(re.compile("quote", re.IGNORECASE)) == Regex("quote", "i")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a)\1", "back references"),
        (r"(?P<x>a)(?P=x)", "not supported"),
        (r"a(?=b)", "not supported"),
        (r"(?<!a)b", "not supported"),
        (r"(?>a)b", "not supported"),
        (r"(a)?(?(1)b)", "not supported"),
        (r"a(?i)b", "not supported"),
        (r"(?i:a)", "not supported"),
        (r"(?x) a", "not supported"),
        (r"a++", "possessive"),
        (r"a**", "several repetitions"),
        (r"*a", "nothing to repeat"),
        (r"{2}a", "nothing to repeat"),
        (r"^*", "cannot be repeated"),
        (r"a{2,1}", "more than it allows"),
        (r"(?P<x>a)(?P<x>b)", "two groups"),
        (r"(a", "never closed"),
        (r"a)", "never opened"),
        (r"[a", "never closed"),
        (r"[]", "never closed"),
        (r"[z-a]", "wrong"),
        (r"\q", "wrong"),
        ("a\\", "wrong"),
        (r"[a--b]", "two hyphens"),
        (r"(a{100}){100}", "steps"),
        (r"a{99999999999999999999}", "too often"),
        ("(" * 60 + ")" * 60, "nests deeper"),
        ("a" * (LONGEST_REGEX + 1), "characters"),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_reason(pattern, why):
    with pytest.raises(InterruptError, match=why):
        regex(pattern)


def test_bytes_and_other_flags_are_refused():
    with pytest.raises(InterruptError, match="must be a text"):
        regex(re.compile(b"a"))
    with pytest.raises(InterruptError, match="VERBOSE"):
        regex(re.compile("a", re.VERBOSE))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+b", "a" * 100_000),
        (".*.*.*.*x", "a" * 100_000),
        ("(a|aa)+$", "a" * 99_999 + "b"),
        ("(x+x+)+y", "x" * 100_000),
        ("(?:a?){100}a{100}", "a" * 99),
        (".*" * 300 + "x", "ab" * 50_000),
        ("([a-z]+)*[0-9]", "abc " * 25_000),
    ],
)
def test_patterns_that_hang_others_are_searched_for_at_once(pattern, text):
    assert not searched(regex(pattern), text)  # in hundredths of a second, where backtracking would take years


def test_a_search_that_takes_too_much_work_is_given_up():
    bits = random.Random(1)
    text = "".join(bits.choice("ab") for _ in range(100_000))

    with pytest.raises(TooCostlyError):
        searched(regex("[ab]*a[ab]{300}c"), text)
