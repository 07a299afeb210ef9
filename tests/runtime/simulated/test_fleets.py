"""Thousands of lives of a fleet, each decided by a seed: nothing is lost, done twice, or left over, and any life can be
lived again."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.runtime.simulated.audit import Broken
from tests.runtime.simulated.lives import live

ROOT = Path(__file__).parents[3]
WRITES = ("start", "claim", "enter", "journal", "transact", "commit", "deliver", "match", "wake", "reap")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Workers tell each time that they have lost a run; here that is the rule."""
    caplog.set_level(logging.CRITICAL, "bide.worker")


def check_lives(seeds: range) -> None:
    for seed in seeds:
        live(seed)


@pytest.mark.timeout(300)
def test_what_a_fleet_accepts_happens_once_whoever_dies_or_stalls(seeds: range):
    check_lives(seeds)


def test_seed_tells_the_same_story_each_time():
    first, second = ([live(seed).digest for seed in range(10)] for _ in range(2))

    assert first == second
    assert len(set(first)) == len(first), "and no two seeds the same one"


def test_seed_tells_the_same_story_in_another_process():
    program = "from tests.runtime.simulated.lives import live; print([live(seed).digest for seed in range(8)])"

    stories = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": order},
        ).stdout
        for order in ("1", "2")
    ]

    assert stories[0] == stories[1]


@pytest.mark.slow
def test_seeds_meet_everything_that_can_happen():
    seen: Counter[str] = Counter()

    for seed in range(300):
        seen += live(seed).seen

    wanted = [f"dies at {write}:{when}" for write in WRITES for when in ("begun", "written", "committed")]
    wanted += ["stalls", "answer resumed", "answer already_answered", "answer AlreadyAnsweredError"]
    wanted += ["answer WaitExpiredError", "left lost"]
    assert [what for what in wanted if not seen[what]] == []


def test_broken_promise_is_told_with_its_seed_its_story_and_how_to_replay_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.runtime.simulated.audit.expected_log", lambda plan: ["another log"])

    with pytest.raises(Broken) as told:
        live(7)

    assert "seed 7: " in str(told.value)
    assert "another" not in str(told.value)
    assert "planned [" in str(told.value)
    assert "Replay it: python3 dev.py test tests/runtime/simulated --seed=7" in str(told.value)
