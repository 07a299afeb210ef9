"""Links in the docs lead somewhere: files exist, and a link that names a symbol of a file finds it there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from bide.store.database import parse_queries
from tests.repo.source_files import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TABLE_OR_INDEX = re.compile(r"^CREATE (?:TABLE|(?:UNIQUE )?INDEX) (\w+)", re.MULTILINE)


def broken_links(page: str, folder: Path) -> list[str]:
    """Say what is wrong with the relative links of a page that lies in `folder`."""
    links = [(match["text"], match["target"]) for match in LINK.finditer(FENCED.sub("", page))]
    return [problem for text, target in links if (problem := what_is_wrong(text, target, folder))]


def what_is_wrong(text: str, target: str, folder: Path) -> str:
    """Say why a link leads nowhere; nothing if it leads somewhere, or out of the repository."""
    if re.match(r"[a-z]+:|#", target):
        return ""
    file = folder / target.partition("#")[0]
    if not file.exists():
        return f"{target}: there is no such file"
    named = re.fullmatch(r"`([\w.]+)(?:\(.*\))?`", text)
    if named is None or file.suffix not in (".py", ".sql"):
        return ""
    return "" if named[1] in symbols_of(file) else f"{target}: there is no {named[1]!r} in it"


def symbols_of(file: Path) -> set[str]:
    """What a file defines: classes, functions, methods and names in Python; queries, tables and indexes in SQL."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".sql":
        return {*parse_queries(source), *TABLE_OR_INDEX.findall(source)}
    return set(names_in(ast.parse(source), ""))


def names_in(node: ast.Module | ast.ClassDef, prefix: str) -> list[str]:
    """The dotted names that a module or a class defines directly, and those inside its classes."""
    names: list[str] = []
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(prefix + inner.name)
        elif isinstance(inner, ast.ClassDef):
            names += [prefix + inner.name, *names_in(inner, f"{prefix}{inner.name}.")]
        elif isinstance(inner, ast.Assign | ast.AnnAssign):
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            names += [prefix + target.id for target in targets if isinstance(target, ast.Name)]
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    assert broken_links(page.read_text(encoding="utf-8"), page.parent) == []


def test_architecture_links_each_step_of_a_request_to_the_function_that_does_it():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    line = page.partition("## One request")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. .*?(?=^\d+\. |\Z)", line, re.MULTILINE | re.DOTALL)

    without = [step.split("\n")[0] for step in steps if not re.search(r"\[`[\w.()]+`\]\(\.\./src/\S+\)", step)]

    assert len(steps) >= 8
    assert without == []


def test_architecture_page_stays_three_pages_long():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

    assert len(page.splitlines()) <= 170


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a Python file and an SQL file to link to."""
    (tmp_path / "code.py").write_text("LIMIT = 3\nclass Store:\n    size: int = 0\n    def begin(self): ...\n")
    (tmp_path / "queries.sql").write_text("-- name: claim_run\nUPDATE x\n")
    (tmp_path / "schema.sql").write_text("CREATE TABLE runs (\n);\nCREATE UNIQUE INDEX one_live_run ON runs (x);\n")
    return tmp_path


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("[x](gone.md)", "gone.md: there is no such file"),
        ("[`Store.commit`](code.py)", "code.py: there is no 'Store.commit' in it"),
        ("[`begin`](code.py)", "code.py: there is no 'begin' in it"),
        ("[`drop_run`](queries.sql)", "queries.sql: there is no 'drop_run' in it"),
        ("[`run`](schema.sql)", "schema.sql: there is no 'run' in it"),
    ],
)
def test_link_that_leads_nowhere_is_found(folder, link, problem):
    assert broken_links(f"See {link}.", folder) == [problem]


@pytest.mark.parametrize(
    "link",
    [
        "[code](code.py)",
        "[`Store`](code.py)",
        "[`Store.begin`](code.py#L3)",
        "[`Store.begin()`](code.py)",
        "[`Store.size`](code.py)",
        "[`LIMIT`](code.py)",
        "[`claim_run`](queries.sql)",
        "[`runs`](schema.sql)",
        "[`one_live_run`](schema.sql)",
        "[out](https://example.org/gone.md)",
        "[here](#below)",
        "\n```text\n[x](gone.md)\n```\n",
    ],
)
def test_link_that_leads_somewhere_or_out_of_the_repository_is_fine(folder, link):
    assert broken_links(link, folder) == []
