"""Which seeds are lived through: one of your choice (`--seed=123`), or as many as there is time for."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

QUICK = 300
"""How many seeds every run of the tests lives through."""
MANY = int(os.environ.get("BIDE_SEEDS", "3000"))
"""How many more the slow tests live through; a night may be given more of them: BIDE_SEEDS=200000."""
CHUNK = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    with suppress(ValueError):  # the simulation of workers has the same option, and may have been there first
        parser.addoption("--seed", type=int, default=None, help="live through this seed of the simulation alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hand out seeds in chunks, so that several processes can share them."""
    if "seeds" not in metafunc.fixturenames:
        return
    seed = metafunc.config.getoption("--seed", default=None)
    if seed is not None:
        metafunc.parametrize("seeds", [range(seed, seed + 1)], ids=[str(seed)])
        return
    many = [pytest.param(chunk, marks=pytest.mark.slow) for chunk in _chunks(QUICK, QUICK + MANY)]
    metafunc.parametrize("seeds", [*_chunks(0, QUICK), *many], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")


def _chunks(first: int, last: int) -> list[range]:
    return [range(begin, min(begin + CHUNK, last)) for begin in range(first, last, CHUNK)]
