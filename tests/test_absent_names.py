"""Whoever imports a name of LangGraph's that is not here is told what to do instead."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bide
from bide import errors
from bide.absent import INSTEAD
from tests.repo.source_files import ROOT
from tests.repo.test_langgraph_names import names_page, rows_of


@pytest.mark.parametrize("name", INSTEAD)
def test_import_of_an_absent_name_says_what_to_do(name: str):
    with pytest.raises(ImportError, match=rf"no {name}: .*docs/langgraph\.md"):
        exec(f"from bide import {name}")


def test_text_is_the_last_line_that_a_user_sees():
    done = subprocess.run(
        [sys.executable, "-c", "from bide import EncryptedSerializer"], capture_output=True, text=True, check=False
    )

    assert done.stderr.splitlines()[-1].startswith("ImportError: Bide has no EncryptedSerializer: open the store with")


def test_any_other_name_is_missing_as_everywhere():
    assert not hasattr(bide, "nobody_knows_me")
    with pytest.raises(AttributeError, match="'bide' has no attribute 'nobody_knows_me'"):
        _ = bide.nobody_knows_me


def test_page_of_names_does_not_call_an_absent_name_present():
    said = {row.name: row.status for row in rows_of(names_page())}

    assert {said.get(name) for name in INSTEAD}.isdisjoint({"same", "different"})
    assert not INSTEAD.keys() & set(bide.__all__)


def test_pages_that_are_named_are_there():
    pages = {word.strip(".,;:)") for text in INSTEAD.values() for word in text.split() if word.startswith("docs/")}

    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []


def test_every_error_can_be_caught_by_its_name_in_bide():
    found = {name: thing for name, thing in vars(errors).items() if isinstance(thing, type)}
    classes = {name: thing for name, thing in found.items() if issubclass(thing, errors.BideError)}

    assert classes
    assert classes.keys() <= set(bide.__all__)
    assert {name: getattr(bide, name) for name in classes} == classes


def test_compiled_graph_has_langgraphs_name_too():
    assert bide.CompiledStateGraph is bide.CompiledGraph
