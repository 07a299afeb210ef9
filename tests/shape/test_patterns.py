"""Patterns of schemas: they mean what `re` means, and no answer can make them take long."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.errors import InterruptError
from bide.shape import build, json_schema, problems
from bide.waits import match, to_plain, webhook
from bide.waits.facts import Fact

TOO_LONG = ["answer: would take too long to be put to the patterns of the schema; give shorter texts"]

# One that has to remember where each of the last 300 characters began: the more it varies, the more there is to do.
COSTLY = {"pattern": "[ab]*a[ab]{300}c"}


def varied(length: int, seed: int = 1) -> str:
    return "".join("ab"[digit == "1"] for digit in f"{pow(3, length + seed, 2**length):0{length}b}")


# --- the time it takes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(a*)*$", "(.*.*)*x$", "^(?=(a+)+$)a", "^(?!(a+)+x)a*$"])
def test_a_pattern_that_would_hang_others_is_checked_at_once(pattern):
    answer = "a" * 9_999 + "!"  # where each letter more doubles the time, this is longer than the world is old

    [sentence] = problems(answer, {"pattern": pattern})

    assert sentence.startswith("answer: expected a string that fits the pattern")


def test_so_is_one_for_the_names_of_keys():
    schema = {"patternProperties": {"^(a+)+$": {"type": "null"}}, "additionalProperties": False}

    assert problems({"a" * 5_000: None}, schema) == []
    [sentence] = problems({"a" * 5_000 + "!": None}, schema)
    assert sentence.endswith("is not expected here")


def test_an_answer_that_would_take_too_long_does_not_fit_and_says_so():
    assert problems(varied(10_000), COSTLY) == TOO_LONG


def test_many_texts_of_one_answer_have_the_same_budget_as_one():
    schema = {"items": {"pattern": "^[a-z]*$"}}

    assert problems(["a" * 9_000] * 100, schema) == []
    assert problems(["a" * 9_000] * 120, schema) == TOO_LONG


def test_the_next_answer_has_a_budget_of_its_own():
    assert problems(["a" * 9_000] * 120, {"items": {"pattern": "^[a-z]*$"}}) == TOO_LONG
    assert problems(["a" * 9_000] * 100, {"items": {"pattern": "^[a-z]*$"}}) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"not": COSTLY},
        {"if": COSTLY, "else": True, "then": False},
        {"anyOf": [COSTLY, True]},
        {"oneOf": [COSTLY, True]},
        {"not": {"$ref": "#/$defs/c"}, "$defs": {"c": COSTLY}},
    ],
)
def test_what_could_not_be_looked_at_never_counts_as_a_misfit_that_was_wanted(schema):
    assert problems(varied(10_000), schema) == TOO_LONG


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"pattern": "<script"}},
        {"if": {"pattern": "<script"}, "then": False},
        {"not": {"anyOf": [{"pattern": "<script"}, {"const": 1}]}},
        {"allOf": [{"$ref": "#/$defs/x"}, {"not": {"$ref": "#/$defs/x"}}], "$defs": {"x": {"pattern": "<script"}}},
    ],
)
def test_a_text_that_is_too_long_to_be_looked_at_does_not_slip_past_a_pattern_that_is_forbidden(schema):
    [sentence] = problems("x" * 10_000 + "<script", schema)

    assert sentence.startswith("answer: expected at most 10000 characters, since it must fit a pattern")


def test_an_alternative_without_a_pattern_takes_a_long_text_as_ever():
    assert problems("x" * 20_000, {"anyOf": [{"pattern": "^x"}, {"type": "string"}]}) == []


def test_a_webhook_with_such_a_payload_is_no_match_and_the_reason_is_told():
    wanted = to_plain(webhook("orders", schema={"properties": {"note": COSTLY}}))
    fact = Fact("webhook", "orders", {"note": varied(10_000)}, "test", "1", 0)

    found = match(wanted, fact)

    assert not found.fits
    assert "payload: would take too long to be put to the patterns of the schema; give shorter texts" in found.reasons


def test_a_stored_schema_that_cannot_be_enforced_any_more_is_no_match_and_no_error():
    wanted = to_plain(webhook("orders", schema={"properties": {"note": {"pattern": "^a"}}}))
    wanted["schema"]["properties"]["note"]["pattern"] = r"(a)\1"

    found = match(wanted, Fact("webhook", "orders", {"note": "aa"}, "test", "1", 0))

    assert not found.fits


# --- what it means ----------------------------------------------------------------------------------------------------

ATOMS = st.sampled_from(["a", "b", ".", r"\d", r"\w", "[ab]", "[^a]", "(?:a|b)", "(ab)", r"\$", "[$]", "$", "^", r"\b"])
REPEATS = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?"])
PIECES = st.builds(lambda atom, times: atom + ("" if atom in ("$", "^", r"\b") else times), ATOMS, REPEATS)
BODIES = st.lists(PIECES, max_size=4).map("".join)
LOOKING = st.builds("(?{}{})".format, st.sampled_from("=!"), st.builds("{}|{}".format, BODIES, BODIES) | BODIES)
PATTERNS = BODIES | st.builds("^{}{}".format, st.lists(LOOKING, min_size=1, max_size=2).map("".join), BODIES)


@settings(max_examples=300, deadline=None)
@given(PATTERNS, st.lists(st.text(alphabet="aab1$ \n", max_size=6), min_size=1, max_size=5))
def test_a_pattern_means_what_it_means_to_re_with_a_dollar_for_the_very_end(pattern, texts):
    compiled = re.compile(re.sub(r"(\\\$|\[\$\])|\$", lambda found: found[1] or r"\Z", pattern))

    found = [text for text in texts if not problems(text, {"pattern": pattern})]

    assert found == [text for text in texts if compiled.search(text)]


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        (r"^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "abcdefG1", "abcdefgh"),
        (r"^(?!admin)[a-z]+$", "ann", "admin2"),
        (r"(?i)^(?!admin$)", "Administrator", "ADMIN"),
        (r"^(?=a|b)(?:a.|b)$", "b", "c"),
    ],
)
def test_a_pattern_may_look_ahead_where_it_begins(pattern, fits, does_not):
    assert problems(fits, {"pattern": pattern}) == []
    assert problems(does_not, {"pattern": pattern}) != []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a)\1", "back references"),
        (r"a(?=b)", r"'\(\?=b' at position 1 is not supported"),
        (r"(?=b)b", "not supported"),
        (r"(?<=a)b", "not supported"),
        (r"(?m)^(?=a)b", "not supported"),
        (r"^(?=a)b|c", "put the whole choice into brackets"),
        (r"^(?=a", "never closed"),
        (r"^(?=a)*b", "nothing to repeat"),
        (r"^(?=a))b", "never opened"),
        (r"a++b", "possessive"),
        (r"(?>a)b", "not supported"),
        (r"(a{100}){100}", "steps"),
        (r"^(?=a{600}a{600})b", "steps"),
    ],
)
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_what_cannot_be_run_so_is_refused_when_the_schema_is_written(pattern, why, keyword):
    schema: dict[str, Any] = {keyword: pattern if keyword == "pattern" else {pattern: {}}}

    for write in (json_schema, lambda schema: webhook("x", schema=schema)):
        with pytest.raises(InterruptError, match=why) as refused:
            write(schema)
        assert f"schema.{keyword}" in str(refused.value)
        assert "or check it in the node" in str(refused.value)


# --- what pydantic writes ---------------------------------------------------------------------------------------------


class Priced(pydantic.BaseModel):
    price: Decimal = pydantic.Field(max_digits=6, decimal_places=2)
    sku: str = pydantic.Field(pattern=r"^[A-Z]{2}-\d+$")
    by_code: dict[pydantic.constr(pattern="^[a-z]{2}$"), int] = {}  # type: ignore[valid-type]


def test_a_model_with_patterns_and_decimals_is_an_answer():
    answer = {"price": "12.50", "sku": "AB-7", "by_code": {"de": 1}}

    assert problems(answer, json_schema(Priced)) == []
    assert build(Priced, answer) == Priced(price=Decimal("12.50"), sku="AB-7", by_code={"de": 1})
    assert problems({"price": "12.50", "sku": "7"}, json_schema(Priced)) != []


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$",
        r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d{0,2}0*$",
        r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,4}|(?=[\d.]{1,7}0*$)\d{0,4}\.\d{0,2}0*$)",
        r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,6}|(?=[\d.]{1,7}0*$)\d*\.\d*0*$)",
    ],
    ids=["any", "decimal_places", "both", "max_digits"],
)
def test_decimals_as_earlier_releases_of_pydantic_describe_them_mean_what_they_meant(pattern):
    texts = ["", "-", "+.", "1", "-0012.50", "123456789", "1.2345", ".5", "x", "12x", "-x", "+", "1.", "0"]
    compiled = re.compile(pattern)

    found = [text for text in texts if not problems(text, {"pattern": pattern})]

    assert found == [text for text in texts if compiled.search(text)]
