"""What the README tells a reader to type at a server is answered as it says."""

from __future__ import annotations

import json
import shlex
import urllib.request
from pathlib import Path
from typing import Any

from tests.repo.served_pages import ADDRESS, served
from tests.repo.source_files import ROOT
from tests.repo.test_docs_run import blocks_of


def typed(line: str, url: str) -> Any:
    """Do what a line with curl says, without a shell; return what is told."""
    words = shlex.split(line, comments=True)
    assert words[0] == "curl"
    assert words[1].startswith(ADDRESS)
    body = words[words.index("--json") + 1].encode() if "--json" in words else None
    request = urllib.request.Request(words[1].replace(ADDRESS, url), body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_lines_of_the_readme_start_a_thread_list_who_waits_and_answer(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = blocks_of(page)
    lines = [line for block in blocks if block.info == "sh" for line in block.text.splitlines() if "curl" in line]
    source = next(block.text for block in blocks if block.info == "python")

    with served(page, source, tmp_path) as url:
        begun, waits, resumed = [typed(line, url) for line in lines]

    assert (begun["status"], begun["thread_id"]) == ("waiting", "quote-2")
    assert [wait["thread_id"] for wait in waits["waits"]] == ["quote-2"]
    assert resumed["status"] == "resumed"
