"""docs/complaints.md tells the truth: fifty rows, and each names tests that show it, or says what is not yet there."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import NamedTuple

import pytest

from tests.repo.marked_tests import Marks, all_marks, marks_in
from tests.repo.source_files import ROOT

NUMBERS = range(1, 51)
ROW = re.compile(r"^\| (?P<number>\d+) \|(?P<threads>[^|]+)\|(?P<suffered>[^|]+)\|(?P<ours>[^|]+)\|(?P<shown>[^|]+)\|$")
LINK = re.compile(r"\[`(?P<name>test_\w+)`\]\(\.\./(?P<path>tests/[\w/]+\.py)\)")
NOT_YET = re.compile(r"not yet: \S")


class Row(NamedTuple):
    """One complaint: the tests that show our answer, and whether something is still missing."""

    number: int
    tests: list[str]
    is_open: bool


def rows_of(page: str) -> list[Row]:
    """The rows of the table, in all its parts."""
    found = [match for line in page.splitlines() if (match := ROW.match(line))]
    return [
        Row(
            int(row["number"]),
            [f"{link['path']}::{link['name']}" for link in LINK.finditer(row["shown"])],
            NOT_YET.search(row["shown"]) is not None,
        )
        for row in found
    ]


def lies(rows: list[Row], marks: Marks, numbers: range) -> list[str]:
    """Whatever the table says or leaves out against the tests."""
    counts = Counter(row.number for row in rows)
    found = [f"{number} has no row" for number in numbers if number not in counts]
    found += [f"{number} has {count} rows" for number, count in counts.items() if count > 1]
    named: set[int] = set()
    for row in rows:
        named |= {row.number} if row.tests else set()
        if not row.tests and not row.is_open:
            found.append(f"{row.number} names no test and does not say what is not yet there")
        for test in row.tests:
            if test not in marks:
                found.append(f"{row.number}: there is no test {test}")
            elif row.number not in marks[test]:
                found.append(f"{row.number}: {test} does not carry @pytest.mark.complaint({row.number})")
    claims = ((number, test) for test, shown in marks.items() for number in shown)
    return found + [
        f"{number} is shown by {test}, and its row names no test" for number, test in claims if number not in named
    ]


def page_of_complaints() -> str:
    return (ROOT / "docs" / "complaints.md").read_text(encoding="utf-8")


def test_every_complaint_has_its_row_and_every_row_its_tests_or_says_what_is_missing():
    found = lies(rows_of(page_of_complaints()), all_marks("complaint"), NUMBERS)

    assert not found, "\n".join(found)


def test_no_line_of_the_table_is_overlooked():
    lines = [line for line in page_of_complaints().splitlines() if re.match(r"\| *\d", line)]

    assert len(lines) == len(rows_of(page_of_complaints())) == len(NUMBERS)


def test_head_of_the_page_counts_its_rows():
    rows = rows_of(page_of_complaints())
    counted = [
        sum(1 for row in rows if row.tests and not row.is_open),
        sum(1 for row in rows if row.tests and row.is_open),
        sum(1 for row in rows if not row.tests),
    ]

    said = re.search(
        r"\*\*(\d+)\*\*\sare\sanswered,\s\*\*(\d+)\*\*\sin\spart,\s\*\*(\d+)\*\*\snot\syet", page_of_complaints()
    )

    assert said is not None
    assert [int(number) for number in said.groups()] == counted


def row(number: int, shown: str) -> str:
    return f"| {number} | LG#1 | they suffer | we do not | {shown} |"


A, B, C, GONE = (f"[`test_{name}`](../tests/x.py)" for name in ("a", "b", "c", "gone"))
SOURCE = """
@pytest.mark.slow
@pytest.mark.complaint(1, 2)
def test_a(): ...

@pytest.mark.complaint(1)
async def test_b(): ...

def test_c(): ...
"""


@pytest.mark.parametrize(
    ("page", "lie"),
    [
        ([row(1, A)], "2 has no row"),
        ([row(1, A), row(1, A)], "1 has 2 rows"),
        ([row(1, A), row(2, GONE)], "2: there is no test tests/x.py::test_gone"),
        ([row(1, A), row(2, C)], "2: tests/x.py::test_c does not carry @pytest.mark.complaint(2)"),
        ([row(1, A), row(2, "later")], "2 names no test and does not say what is not yet there"),
        ([row(1, A), row(2, "not yet: it")], "2 is shown by tests/x.py::test_a, and its row names no test"),
    ],
)
def test_lie_in_the_table_is_found(page, lie):
    found = lies(rows_of("\n".join(page)), marks_in("tests/x.py", ast.parse(SOURCE), "complaint"), range(1, 3))

    assert lie in found


def test_true_table_is_left_alone():
    page = "\n".join([row(1, f"{A}<br>{B}"), row(2, f"{A}<br>not yet: the rest"), row(3, "not yet: all of it")])

    assert lies(rows_of(page), marks_in("tests/x.py", ast.parse(SOURCE), "complaint"), range(1, 4)) == []
