"""Globs: the two signs they have, what their matching leaves out of account, and how long it may take."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.waits.globs import fits_exactly, fits_text, literal, only_text


@pytest.mark.parametrize(
    ("glob", "text"),
    [
        ("Re: *", "Re: Quote"),
        ("Re: *", "RE: quote"),
        ("Re: *", "Re: "),
        ("Re: *", "Re:   a\r\n folded   subject"),
        ("*quote*", "Your QUOTE, please"),
        ("*", ""),
        ("**", "anything"),
        ("a*b*c", "a-b-b-c"),
        ("h?llo", "hello"),
        ("?", "é"),
        ("STRASSE", "straße"),
        ("Größe", "Gro\u0308ße"),
        ("approved", "  approved\n"),
        ("[Ticket 12] *", "[Ticket 12] it is back"),
        (r"50\% off\*", "50% off*"),
        (r"a\\b", "a\\b"),
        ("ends with \\", "ends with \\"),
    ],
)
def test_text_fits(glob, text):
    assert fits_text(glob, text)


@pytest.mark.parametrize(
    ("glob", "text"),
    [
        ("Re: *", "Fwd: Re: Quote"),
        ("Re: *", "Re:Quote"),
        ("quote", "a quote"),
        ("", "a"),
        ("?", ""),
        ("?", "ab"),
        ("a*a", "a"),
        ("ab*ba", "aba"),
        ("[ab]", "a"),
        (r"\*", "a"),
        (r"\?", "a"),
        ("a*b", "a-b-c"),
    ],
)
def test_text_does_not_fit(glob, text):
    assert not fits_text(glob, text)


@settings(deadline=None)
@given(st.text(max_size=50))
def test_a_literal_glob_fits_its_text_and_no_other(text):
    glob = literal(text)

    assert only_text(glob) == text
    assert fits_exactly(glob, text)
    assert not fits_exactly(glob, text + "x")


@settings(deadline=None)
@given(st.text(alphabet="ab*?\\", max_size=8), st.text(alphabet="ab*?\\", max_size=10))
def test_a_glob_means_what_its_regular_expression_means(glob, text):
    tokens = re.findall(r"\\.|.", glob, flags=re.DOTALL)
    pattern = "".join({"*": ".*", "?": "."}.get(token, re.escape(token[-1])) for token in tokens)

    assert fits_exactly(glob, text) == bool(re.fullmatch(pattern, text, re.DOTALL))


@pytest.mark.parametrize("glob", ["*a" * 250, "*a?" * 160 + "a", "?" * 400 + "*a", "*b*" * 100])
def test_globs_that_hang_others_are_matched_at_once(glob):
    assert not fits_text(glob, "a" * 100_000 + "b")  # in milliseconds, where trying every split would take years
