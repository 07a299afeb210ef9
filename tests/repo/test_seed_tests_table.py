"""docs/seed-tests.md tells the truth: a row for every test of the seeds, with tests of ours or what it waits for."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import NamedTuple

import pytest

from tests.repo.marked_tests import Marks, all_marks, marks_in
from tests.repo.source_files import ROOT
from tests.requirements.seed_names import seed_tests

ROW = re.compile(r"^\| `(?P<file>[^`|]+)` \| `?(?P<name>[^`|]+)`? \| (?P<shown>[^|]+) \|$")
LINK = re.compile(r"\[`(?P<name>test_\w+)`\]\(\.\./(?P<path>tests/[\w/]+\.py)\)")
NOT_YET = re.compile(r"^not yet: \S")


class Row(NamedTuple):
    """One test of a seed: ours that show the same, or a note that it is not yet shown."""

    seed: str
    tests: list[str]
    is_open: bool


def rows_of(page: str) -> list[Row]:
    """The rows of the table, in all its parts."""
    found = [match for line in page.splitlines() if (match := ROW.match(line))]
    return [
        Row(
            f"{row['file']}::{row['name']}",
            [f"{link['path']}::{link['name']}" for link in LINK.finditer(row["shown"])],
            NOT_YET.search(row["shown"]) is not None,
        )
        for row in found
    ]


def lies(rows: list[Row], marks: Marks, seeds: list[str]) -> list[str]:
    """Whatever the table says or leaves out against the list and against the tests."""
    counts = Counter(row.seed for row in rows)
    found = [f"{seed} has no row" for seed in seeds if seed not in counts]
    found += [f"{seed} has {count} rows" for seed, count in counts.items() if count > 1]
    found += [f"{seed} is in no list" for seed in counts if seed not in seeds]
    for row in rows:
        found += [f"{row.seed}: there is no test {test}" for test in row.tests if test not in marks]
        if not any(row.seed in marks.get(test, ()) for test in row.tests) and not row.is_open:
            found.append(f"{row.seed} is re-expressed by none of its tests, and does not say what it waits for")
        if row.tests and row.is_open:
            found.append(f"{row.seed} is not yet shown, and names tests")
    named = {(row.seed, test) for row in rows for test in row.tests}
    claims = [(seed, test) for test, shown in marks.items() for seed in sorted(shown)]
    return found + [
        f"{test} re-expresses {seed}, whose row does not name it" for seed, test in claims if (seed, test) not in named
    ]


def page_of_seeds() -> str:
    return (ROOT / "docs" / "seed-tests.md").read_text(encoding="utf-8")


def test_every_test_of_the_seeds_has_its_row_and_every_row_its_tests_or_what_it_waits_for():
    found = lies(rows_of(page_of_seeds()), all_marks("seed"), seed_tests())

    assert not found, "\n".join(found)


def test_no_line_of_the_table_is_overlooked():
    lines = [line for line in page_of_seeds().splitlines() if line.startswith("| `")]

    assert len(lines) == len(rows_of(page_of_seeds())) == len(seed_tests())


def test_head_of_the_page_counts_its_rows():
    rows = rows_of(page_of_seeds())
    said = re.search(r"\*\*(\d+)\*\*\sof\s(\d+)\sare\sshown,\s\*\*(\d+)\*\*\sare\snot\syet", page_of_seeds())

    assert said is not None
    counted = [sum(1 for row in rows if row.tests), len(rows), sum(1 for row in rows if row.is_open)]
    assert [int(number) for number in said.groups()] == counted


def row(seed: str, shown: str) -> str:
    file, _, name = seed.partition("::")
    return f"| `{file}` | `{name}` | {shown} |"


A, B, C, GONE = (f"[`test_{name}`](../tests/x.py)" for name in ("a", "b", "c", "gone"))
SOURCE = """
@pytest.mark.slow
@pytest.mark.seed("f.rs::one", "f.rs::two")
@pytest.mark.seed("f.rs::three")
def test_a(): ...

@pytest.mark.seed("f.rs::one")
async def test_b(): ...

def test_c(): ...
"""
SEEDS = ["f.rs::one", "f.rs::two", "f.rs::three", "f.rs::four"]
TRUE = [
    row("f.rs::one", f"{A}<br>{B}"),
    row("f.rs::two", f"{A}<br>{C}"),
    row("f.rs::three", A),
    row("f.rs::four", "not yet: wings"),
]


@pytest.mark.parametrize(
    ("page", "lie"),
    [
        (TRUE[:3], "f.rs::four has no row"),
        ([*TRUE, TRUE[3]], "f.rs::four has 2 rows"),
        ([*TRUE, row("f.rs::five", "not yet: wings")], "f.rs::five is in no list"),
        ([*TRUE[:3], row("f.rs::four", GONE)], "f.rs::four: there is no test tests/x.py::test_gone"),
        (
            [*TRUE[:3], row("f.rs::four", C)],
            "f.rs::four is re-expressed by none of its tests, and does not say what it waits for",
        ),
        (
            [*TRUE[:3], row("f.rs::four", "later")],
            "f.rs::four is re-expressed by none of its tests, and does not say what it waits for",
        ),
        ([*TRUE[:3], row("f.rs::four", f"not yet: {C}")], "f.rs::four is not yet shown, and names tests"),
        (
            [row("f.rs::one", A), *TRUE[1:]],
            "tests/x.py::test_b re-expresses f.rs::one, whose row does not name it",
        ),
    ],
)
def test_lie_in_the_table_is_found(page, lie):
    found = lies(rows_of("\n".join(page)), marks_in("tests/x.py", ast.parse(SOURCE), "seed"), SEEDS)

    assert lie in found


def test_true_table_is_left_alone():
    assert lies(rows_of("\n".join(TRUE)), marks_in("tests/x.py", ast.parse(SOURCE), "seed"), SEEDS) == []
