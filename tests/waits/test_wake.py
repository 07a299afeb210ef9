"""What comes back from a wait can be stored, and says who brought it and when."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from bide.codec import Codec
from bide.errors import InterruptError
from bide.waits import ChildResult, Wake, open_leaves, to_plain, verdict
from tests.waits.strategies import VALUES, conditions


@settings(deadline=None)
@given(VALUES)
def test_a_wake_comes_back_as_it_was_stored(value):
    codec = Codec()
    inner = Wake(value, "email", "email", "ann@example.org", 5, "imap", "d-1")
    wake = Wake({"email": inner, "child": Wake(ChildResult("failed", error="ValueError('x')"))}, kind="all_of", at=5)

    assert codec.decode(codec.encode(wake)) == wake


@settings(deadline=None)
@given(conditions())
def test_whatever_a_condition_comes_to_can_be_stored(condition):
    plain, codec = to_plain(condition), Codec()
    found = verdict(plain, {number: Wake(number, at=number) for number in open_leaves(plain, {})})

    assert codec.decode(codec.encode(found)) == found


GOLDEN = [
    (
        Wake("yes", winner="boss", kind="approval", by="ann", at=5, via="cli"),
        "01c7570493a9626964652e57616b650188a576616c7565a3796573a677696e6e6572a4626f7373a46b696e64a8617070726f76616c"
        "a26279a3616e6ea2617405a3766961a3636c69a864656c6976657279c0a7636f6d6d656e74c0",
    ),
    (
        ChildResult("done", "s", "t", "r", "c"),
        "01c7560493b0626964652e4368696c64526573756c740186a6737461747573a4646f6e65a773756d6d617279a173a97468726561645f6964"
        "a174a672756e5f6964a172ad636865636b706f696e745f6964a163a56572726f72c0",
    ),
]


@pytest.mark.parametrize(("value", "stored"), GOLDEN)
def test_what_is_stored_stays_what_it_is(value, stored):
    codec = Codec()

    assert codec.encode(value).hex() == stored
    assert codec.decode(bytes.fromhex(stored)) == value


def test_what_was_stored_before_there_were_comments_is_read():
    stored = (
        "01c74e0493a9626964652e57616b650187a576616c7565a3796573a677696e6e6572a4626f7373a46b696e64a8617070726f76616c"
        "a26279a3616e6ea2617405a3766961a3636c69a864656c6976657279c0"
    )

    assert Codec().decode(bytes.fromhex(stored)) == Wake("yes", "boss", "approval", by="ann", at=5, via="cli")


def test_the_instant_is_also_a_datetime():
    assert Wake(None, at=1_769_848_200_000).when == datetime(2026, 1, 31, 8, 30, tzinfo=UTC)
    assert Wake(None).when is None


@pytest.mark.parametrize("status", ["done", "failed", "cancelled", "dead"])
def test_a_child_says_how_it_ended(status):
    result = ChildResult(status, "short", "t-1", "r-1", "c-1")

    told = {
        "done": result.is_done,
        "failed": result.is_failed,
        "cancelled": result.is_cancelled,
        "dead": result.is_dead,
    }
    assert told == {name: name == status for name in told}


def test_a_child_cannot_end_in_another_way():
    with pytest.raises(InterruptError, match="one of done, failed, cancelled, dead"):
        ChildResult("running")


def test_importing_bide_does_not_load_what_only_waits_need():
    program = "import sys, bide.waits, bide.waits.leaves, bide.waits.matching, bide.waits.tree; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert "bide.waits.wake" in loaded
    assert not {"bide.waits.conditions", "bide.shape.automaton", "bide.waits.judging", "email"} & set(loaded)
