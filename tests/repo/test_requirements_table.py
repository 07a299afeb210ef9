"""docs/requirements.md tells the truth: every requirement has a row, and every row names tests that show it."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from typing import NamedTuple

import pytest

from tests.repo.marked_tests import Marks, all_marks, marks_in
from tests.repo.source_files import ROOT

# Numbers are added here with their rows, and never taken away.
PROMISED = "Z0-01…43 Z1-02…10 Z1-12…34 T2-01…02 T2-05…16 T2-21…22 T2-24 T2-27…28 T2-31 S3-01…15 L4-01…16"
ROW = re.compile(r"^\| (?P<number>[A-Z]\d-\d\d) \| (?P<asked>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
NUMBER = re.compile(r"[A-Z]\d-\d\d")


class Row(NamedTuple):
    """One requirement: what is asked, and the tests that show it."""

    number: str
    asked: str
    tests: list[str]


def promised(text: str) -> list[str]:
    """Every number of a list with ranges: `Z0-01…03 T2-07`."""
    numbers = []
    for part in text.split():
        first, _, last = part.partition("…")
        letters, number = first.split("-")
        numbers += [f"{letters}-{each:02}" for each in range(int(number), int(last or number) + 1)]
    return numbers


def rows_of(page: str) -> list[Row]:
    """The rows of the table, in all its parts."""
    return [
        Row(row["number"], row["asked"].strip(), [test.strip().strip("`") for test in row["tests"].split("<br>")])
        for row in ROW.finditer(page)
    ]


def lies(rows: list[Row], marks: Marks, numbers: list[str]) -> list[str]:
    """Whatever the table says or leaves out against the tests."""
    counts = Counter(row.number for row in rows)
    found = [f"{number} has no row" for number in numbers if number not in counts]
    found += [f"{number} has {count} rows" for number, count in counts.items() if count > 1]
    for row in rows:
        for test in row.tests:
            if test not in marks:
                found.append(f"{row.number}: there is no test {test}")
            elif row.number not in marks[test]:
                found.append(f'{row.number}: {test} does not carry @pytest.mark.requirement("{row.number}")')
    claimed: defaultdict[str, list[str]] = defaultdict(list)
    for test, shown in marks.items():
        for number in shown:
            claimed[number].append(test)
    unknown = sorted(claimed.keys() - counts.keys())
    return found + [f"{number} is shown by {claimed[number][0]}, and has no row" for number in unknown]


def test_every_requirement_has_its_row_and_every_row_its_tests():
    page = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")

    found = lies(rows_of(page), all_marks("requirement"), promised(PROMISED))

    assert not found, "\n".join(found)


def test_no_line_of_the_table_is_overlooked():
    page = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")

    lines = [line for line in page.splitlines() if line.startswith("| ") and NUMBER.search(line.split("|")[1])]

    assert len(lines) == len(rows_of(page)) == len(promised(PROMISED))


def test_ranges_of_promised_numbers_are_read():
    assert promised("Z0-08…11 T2-01") == ["Z0-08", "Z0-09", "Z0-10", "Z0-11", "T2-01"]


TRUE = "| Z0-01 | a thing | `tests/x.py::test_a`<br>`tests/x.py::test_b` |"
SOURCE = """
@pytest.mark.slow
@pytest.mark.requirement("Z0-01", "Z0-02")
def test_a(): ...

@pytest.mark.requirement("Z0-01")
async def test_b(): ...

def test_c(): ...
"""


@pytest.mark.parametrize(
    ("page", "lie"),
    [
        (f"{TRUE}\n", "Z0-02 is shown by tests/x.py::test_a, and has no row"),
        ("| Z0-02 | a thing | `tests/x.py::test_a` |\n", "Z0-01 has no row"),
        (f"{TRUE}\n{TRUE}\n", "Z0-01 has 2 rows"),
        (f"{TRUE}\n| Z0-02 | more | `tests/x.py::test_gone` |\n", "Z0-02: there is no test tests/x.py::test_gone"),
        (
            f"{TRUE}\n| Z0-02 | more | `tests/x.py::test_c` |\n",
            'Z0-02: tests/x.py::test_c does not carry @pytest.mark.requirement("Z0-02")',
        ),
    ],
)
def test_lie_in_the_table_is_found(page, lie):
    found = lies(rows_of(page), marks_in("tests/x.py", ast.parse(SOURCE), "requirement"), ["Z0-01"])

    assert lie in found


def test_true_table_is_left_alone():
    page = f"{TRUE}\n| Z0-02 | another thing | `tests/x.py::test_a` |\n"

    assert lies(rows_of(page), marks_in("tests/x.py", ast.parse(SOURCE), "requirement"), ["Z0-01", "Z0-02"]) == []
