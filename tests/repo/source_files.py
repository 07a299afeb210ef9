"""The repository's own files, and its Python as syntax trees."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {"__pycache__", "build", "dist", "node_modules"}


def repository_texts() -> Iterator[tuple[Path, str]]:
    """Every text file that could be committed: .git, .venv and caches are left out, .ci and dotfiles are not."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS and (name == ".ci" or not name.startswith("."))]
        for path in (Path(folder, name) for name in sorted(names)):
            with suppress(UnicodeDecodeError):  # an image, a database: nothing to read
                yield path, path.read_text(encoding="utf-8")


def python_files(*places: str) -> list[Path]:
    """The Python files of some folders or files of the repository."""
    found = [path for place in places for path in (ROOT.glob(place) if "." in place else (ROOT / place).rglob("*.py"))]
    return sorted(path for path in found if not NOT_OURS.intersection(path.relative_to(ROOT).parts))


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function in a tree, methods and inner ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def docstrings_of(tree: ast.AST) -> set[ast.expr]:
    """The constants in a tree that are docstrings, or strings that document the name above them."""
    return {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def place(path: Path, node: ast.AST) -> str:
    """Where something is, as editors understand it."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
