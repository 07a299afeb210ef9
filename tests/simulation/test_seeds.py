"""Thousands of lives of a thread, each decided by a seed: all end where a calm one ends, and any can be lived again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.simulation import Broken, Simulation

ROOT = Path(__file__).parents[2]


def check_lives(seeds: range) -> None:
    for seed in seeds:
        Simulation(seed).run()


def test_thread_ends_where_a_calm_one_ends_and_makes_each_effect_once(seeds: range):
    check_lives(seeds)


def test_seed_tells_the_same_story_each_time():
    seeds = range(40)

    first, second = ([Simulation(seed).run() for seed in seeds] for _ in range(2))

    assert first == second
    assert len(set(first)) == len(first), "and no two seeds the same one"


def test_seed_tells_the_same_story_in_another_process():
    program = "from tests.simulation.simulation import *; print([Simulation(seed).run() for seed in range(20)])"

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


def test_seeds_meet_everything_that_can_happen():
    wanted = ("dies", "stalls", "is left", "is drained", "(refused)", "(reply lost)", "Edit", "Record", "Transact")
    wanted += ("LeaseLostError", "ThreadBusyError", "GraphRecursionError", "InvalidAnswerError", "AlreadyAnsweredError")
    lives = [Simulation(seed) for seed in range(300)]

    for life in lives:
        life.run()

    told = "\n".join(line for life in lives for line in life.trace)
    assert [what for what in wanted if what not in told] == []
    assert {life.plan.deepest for life in lives} == {1, 2, 3}


def test_broken_promise_is_told_with_its_seed_its_story_and_how_to_replay_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.simulation.simulation.FIRST_INPUT", {"log": ["another input"], "notes": []})

    with pytest.raises(Broken) as told:
        Simulation(7).run()

    assert "seed 7: the log differs" in str(told.value)
    assert "returns\n\nReplay it: " in str(told.value)
    assert "python3 dev.py test tests/simulation --seed=7" in str(told.value)
