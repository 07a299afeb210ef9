"""Every Python block in the README and in docs/ runs, in its page's order, as a reader would type it."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repo.served_pages import ADDRESS, served
from tests.repo.source_files import ROOT

PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block: what its fence says, the number of its first line, and its lines."""

    info: str
    first_line: int
    text: str


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, without the indent that a list gives them."""
    lines = page.splitlines()
    blocks, number = [], 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first = number
        while number < len(lines) and lines[number].strip() != opening["fence"]:
            number += 1
        blocks.append(Block(opening["info"].strip(), first, textwrap.dedent("\n".join(lines[first:number]))))
        number += 1
    return blocks


def program_of(page: str) -> str:
    """The page as one program: its Python at its own line numbers, so that a traceback points into the page."""
    program: list[str] = []
    for block in blocks_of(page):
        if block.info == "python":
            program += [""] * (block.first_line - len(program))
            program += block.text.splitlines()
    return "\n".join(program) + "\n"


def disguised_python(page: str) -> list[str]:
    """Blocks that look like Python to a reader, and would not be run."""
    return [
        f"line {block.first_line}: ```{block.info}" for block in blocks_of(page) if re.match(r"py(?!thon$)", block.info)
    ]


def run_page(page: str, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Run a page's program in an empty folder; if it speaks to a server, beside the one that the page tells of."""
    program = program_of(page)
    if ADDRESS not in program:
        return run_program(program, folder, name)
    first = next(block.text for block in blocks_of(page) if block.info == "python")
    with served(page, first, folder) as url:
        return run_program(program.replace(ADDRESS, url), folder, name)


def run_program(program: str, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a script."""
    script = folder / name
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize("name", PAGES)
def test_page_runs(name, tmp_path):
    page = (ROOT / name).read_text(encoding="utf-8")

    assert disguised_python(page) == [], (
        "Mark it ```python, so that it is run; what cannot run does not belong on a page."
    )
    if program_of(page).strip():
        done = run_page(page, tmp_path, name)
        assert done.returncode == 0, f"{name} does not run:\n{done.stdout}{done.stderr}"


def test_blocks_of_a_page_share_their_names_and_keep_their_line_numbers(tmp_path):
    page = (
        "# Title\n\n```python\nx = 1\n```\n\n1. in a list:\n\n   ```python\n   x += 1\n   raise ValueError(x)\n   ```\n"
    )

    done = run_page(page, tmp_path, "page.md")

    assert done.returncode == 1
    assert "ValueError: 2" in done.stderr
    assert "line 11" in done.stderr


@pytest.mark.parametrize("info", ["python no-run", "py", "pycon", "python3"])
def test_block_that_would_not_run_is_found(info):
    assert disguised_python(f"```{info}\nx\n```\n")


def test_other_blocks_and_longer_fences_are_left_alone():
    page = "````markdown\n```python\nnot code here\n```\n````\n```sh\nls\n```\n"

    assert program_of(page).strip() == ""
    assert disguised_python(page) == []
