"""Which tests of the repository carry a marker, and with what: for the pages that list them."""

from __future__ import annotations

import ast
from typing import Any

from tests.repo.source_files import ROOT, functions_of, python_files, tree_of

Marks = dict[str, set[Any]]
"""A test, as `path::name`, and what its marker names."""


def marks_in(path: str, tree: ast.Module, marker: str) -> Marks:
    """The tests of a file, by its syntax alone."""
    marks: Marks = {}
    for function in functions_of(tree):
        if function.name.startswith("test_"):
            calls = [mark for mark in function.decorator_list if isinstance(mark, ast.Call)]
            shown = [call for call in calls if ast.unparse(call.func) == f"pytest.mark.{marker}"]
            marks[f"{path}::{function.name}"] = {ast.literal_eval(named) for call in shown for named in call.args}
    return marks


def all_marks(marker: str) -> Marks:
    """Every test of the repository."""
    marks: Marks = {}
    for path in python_files("tests"):
        if path.name.startswith("test_"):
            marks |= marks_in(path.relative_to(ROOT).as_posix(), tree_of(path), marker)
    return marks
