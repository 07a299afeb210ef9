"""Times, sizes and values for people; values for programs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bide.cli import words
from bide.cli.exits import Exit, code_of, hints_of
from bide.cli.plain import plain
from bide.errors import (
    AlreadyAnsweredError,
    BideError,
    ConflictError,
    EncryptionError,
    GraphError,
    InvalidAnswerError,
    StoreUnavailableError,
    UnknownThreadError,
    WaitExpiredError,
)
from bide.types import RunStatus, Send

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (3660, "1h 1m"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (52 * 3600, "2d 4h"),
        (20 * 86400 + 7200, "20d"),
    ],
)
def test_length_of_time_is_short_and_exact_enough(seconds: int, said: str):
    assert words.length(timedelta(seconds=seconds)) == said


def test_past_and_future_are_told_apart():
    assert words.ago(NOON - timedelta(hours=2), NOON) == "2h ago"
    assert words.ago(NOON, NOON) == "just now"
    assert words.until(NOON + timedelta(hours=2), NOON) == "in 2h"
    assert words.until(NOON - timedelta(hours=2), NOON) == "2h over"
    assert (words.ago(None, NOON), words.until(None, NOON)) == ("–", "–")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("bell\x07", "bell\\x07"),
        ("\u202eabc", "\\u202eabc"),
        ("\x9b31m", "\\x9b31m"),
        ("naïve 漢字 🎉", "naïve 漢字 🎉"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_text_from_outside_cannot_steer_the_terminal(text: str, shown: str):
    assert words.safe(text) == shown


def test_value_is_one_line_and_cut():
    assert words.value({"a": [1, None]}) == '{"a": [1, null]}'
    assert words.value("two\nlines") == "two lines"
    assert words.value("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(("octets", "said"), [(512, "512 B"), (1536, "1.5 KiB"), (5 * 1024**3, "5.0 GiB")])
def test_sizes_have_units(octets: int, said: str):
    assert words.size(octets) == said


def test_counts_agree_with_their_nouns():
    assert [words.count(number, "run") for number in (0, 1, 12345)] == ["0 runs", "1 run", "12 345 runs"]


@dataclass
class Point:
    x: int
    when: datetime


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (RunStatus.DONE, "done"),
        (NOON, "2026-03-02T12:00:00+00:00"),
        (timedelta(seconds=90), 90.0),
        (b"\x00\x01", "AAE="),
        (Path("a/b"), "a/b"),
        ((1, {2}), [1, [2]]),
        (Point(1, NOON), {"x": 1, "when": "2026-03-02T12:00:00+00:00"}),
        (Send("a", {1: 2}), {"node": "a", "arg": {"1": 2}, "timeout": None}),
        (float("inf"), "inf"),
        (True, True),
        (object, "<class 'object'>"),
    ],
)
def test_values_for_programs_are_plain_json(value: object, shown: object):
    assert plain(value) == shown


def test_value_that_holds_itself_comes_to_an_end():
    endless: list[object] = []
    endless.append(endless)

    assert "…" in str(plain(endless))


@pytest.mark.parametrize(
    ("problem", "code", "hint"),
    [
        (UnknownThreadError("x"), Exit.NOT_FOUND, "bide threads"),
        (InvalidAnswerError("x"), Exit.INVALID, "bide answer WAIT"),
        (AlreadyAnsweredError("x"), Exit.CONFLICT, "bide show THREAD"),
        (WaitExpiredError("x"), Exit.CONFLICT, "bide show THREAD"),
        (ConflictError("x"), Exit.CONFLICT, None),
        (StoreUnavailableError("x"), Exit.UNAVAILABLE, "bide doctor"),
        (EncryptionError("x"), Exit.UNAVAILABLE, "--app"),
        (GraphError("x"), Exit.FAILED, None),
        (BideError("x"), Exit.FAILED, None),
    ],
)
def test_errors_have_exit_codes_and_a_next_command(problem: BideError, code: Exit, hint: str | None):
    assert code_of(problem) == code
    assert (hints_of(problem) == ()) if hint is None else (hint in hints_of(problem)[0])
