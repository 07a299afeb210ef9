"""Tests prove something only if they fail when the code is wrong: the code is broken, and the named test must fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "bide"
PAGE = ROOT / "docs" / "mutants.md"
SECONDS = 100
PASSED, FAILED = 0, 1

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * SECONDS)]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, which may be broken."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "bide", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "src"


def run_with(copy: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program that finds the copy before the package itself."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def run_test(copy: Path, test: str) -> subprocess.CompletedProcess[str]:
    return run_with(copy, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", test)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_broken_code_is_noticed(mutation: Mutation, copy: Path) -> None:
    broken = copy / "bide" / mutation.file
    before = broken.read_text(encoding="utf-8")
    broken.write_text(mutation.change(before), encoding="utf-8")

    ran = run_test(copy, mutation.test)

    assert broken.read_text(encoding="utf-8") != before
    assert ran.returncode == FAILED, f"{mutation.test} does not notice it:\n{ran.stdout[-3000:]}{ran.stderr[-1000:]}"


@pytest.mark.parametrize("test", sorted({mutation.test for mutation in MUTATIONS}))
def test_code_that_is_not_broken_is_not_found_fault_with(test: str, copy: Path) -> None:
    ran = run_test(copy, test)

    assert ran.returncode == PASSED, f"{test} fails by itself:\n{ran.stdout[-3000:]}{ran.stderr[-1000:]}"


def test_it_is_the_copy_that_is_tested(copy: Path) -> None:
    found = run_with(copy, "-c", "import bide; print(bide.__file__)")

    assert Path(found.stdout.strip()) == copy / "bide" / "__init__.py"


def test_page_lists_every_mutation_with_its_test() -> None:
    page = PAGE.read_text(encoding="utf-8")

    listed = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]

    assert listed == [row_of(mutation) for mutation in MUTATIONS]


def row_of(mutation: Mutation) -> str:
    """How the page tells of a mutation."""
    file, _, test = mutation.test.removeprefix("tests/").partition("::")
    return f"| {mutation.name} | `{mutation.file}` | `{file}` `{test}` |"
