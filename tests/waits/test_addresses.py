"""Addresses of mails: what is plainly one is read, and what could be read in two ways is not."""

from __future__ import annotations

from email.utils import formataddr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.waits.addresses import addresses_of, only_address_of


@pytest.mark.parametrize(
    "header",
    [
        "ann@example.org",
        "  ann@example.org ",
        "<ann@example.org>",
        "Ann <ann@example.org>",
        "Ann Example <Ann@Example.ORG>",
        '"Example, Ann" <ann@example.org>',
        '"Ann \\"the boss\\" <x>" <ann@example.org>',
        '"evil@example.net" <ann@example.org>',
        "ann@example.org (Ann)",
        "Ann (at work) <ann@example.org>",
        "=?utf-8?q?Ann?= <ann@example.org>",
        "Änn <ann@example.org>",
        ["Ann <ann@example.org>"],
    ],
)
def test_one_address_is_read(header):
    assert only_address_of(header) == "ann@example.org"


@pytest.mark.parametrize(
    "header",
    [
        '"ann@example.org" <evil@example.net>',
        "(ann@example.org) evil@example.net",
        "evil@example.net (ann@example.org)",
        '"<ann@example.org>" <evil@example.net>',
    ],
)
def test_a_display_name_is_not_taken_for_the_address(header):
    assert only_address_of(header) == "evil@example.net"


@pytest.mark.parametrize(
    "header",
    [
        "ann@example.org <evil@example.net>",
        "ann@example.org, evil@example.net",
        "ann@example.org evil@example.net",
        "<ann@example.org> <evil@example.net>",
        "<ann@example.org>evil@example.net",
        "ann@example.org<evil@example.net>",
        "ann@example.org (x) <evil@example.net>",
        'ann@example.org "x" <evil@example.net>',
        "<ann@example.org",
        "ann@example.org>",
        '"ann <ann@example.org>',
        "ann (oh <ann@example.org>",
        "ann@example.org)evil@example.net",
        "ann@evil@example.org",
        "ann@",
        "@example.org",
        "Ann",
        "",
        "a b@example.org",
        '"a b"@example.org',
        "ann@example.org\x00",
        "ann@exa\nmple.org",
        "friends: ann@example.org;",
        "undisclosed-recipients:;",
        "x" * 20_000 + "@example.org",
        None,
        7,
        {"address": "ann@example.org"},
        ["ann@example.org", "evil@example.net"],
        [],
        [None],
    ],
)
def test_what_is_unclear_is_no_sender(header):
    assert only_address_of(header) is None


def test_recipients_are_all_that_can_be_told():
    header = 'Ann <ann@example.org>, "Smith, Ben" <ben@example.org>, x y z, cleo@example.org'

    assert addresses_of(header) == ("ann@example.org", "ben@example.org", "cleo@example.org")
    assert addresses_of([header, None, 7]) == addresses_of(header)
    assert addresses_of('"not closed, ann@example.org') == ()


def test_only_the_letters_of_ascii_lose_their_case():
    assert only_address_of("\u212aate@example.org") == "\u212aate@example.org"  # the sign for kelvin, not a K


NAMES = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)
LOCAL = st.from_regex(r"[a-z0-9.+_-]{1,10}", fullmatch=True)


@settings(deadline=None)
@given(NAMES, LOCAL)
def test_whatever_name_the_standard_library_puts_before_an_address_it_is_found(name, local):
    address = f"{local}@example.org"

    assert only_address_of(formataddr((name, address))) in (address, None)
    if name.isalnum():
        assert only_address_of(formataddr((name, address))) == address


@settings(deadline=None)
@given(st.text(alphabet='ab@.<>(),;:" \\\n', max_size=30))
def test_whatever_is_read_stands_in_the_header_and_is_one_address(header):
    for address in addresses_of(header):
        assert address in header
        assert address.count("@") == 1
        assert not set(address) & set('<>(),;:" \\\n')
