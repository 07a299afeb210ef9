"""What the store needs of a database, and where its SQL comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

SQL = Path(__file__).parent / "sql"

T = TypeVar("T")
Row = tuple[Any, ...]


class Transaction(Protocol):
    """A transaction that is under way: named queries, nothing else."""

    connection: Any
    """The driver's own connection, for `step(effect="tx")`."""

    def run(self, query: str, params: Mapping[str, Any]) -> int:
        """Run a query for its effect; return how many rows it changed."""
        ...

    def one(self, query: str, params: Mapping[str, Any]) -> Row | None:
        """Return the first row, or None."""
        ...

    def all(self, query: str, params: Mapping[str, Any]) -> Sequence[Row]:
        """Return every row."""
        ...


@cache
def queries() -> Mapping[str, str]:
    """Load the named queries of every file in `sql/` but the schema; no name may come twice."""
    found: dict[str, str] = {}
    for file in sorted(SQL.glob("*.sql")):
        named = {} if file.name == "schema.sql" else parse_queries(sql_text(file.name))
        twice = found.keys() & named.keys()
        assert not twice, f"Two queries have the same name: {sorted(twice)}"
        found.update(named)
    return found


def parse_queries(text: str) -> dict[str, str]:
    """Split a file at its `-- name:` lines; other comments are for the reader."""
    named: dict[str, str] = {}
    for part in re.split(r"^-- name: ", text, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        named[name.strip()] = "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
    return named


_PIECE = re.compile(r"'(?:[^']|'')*'|--[^\n]*|;|[^';-]+|-")


def statements(script: str) -> list[str]:
    """Split a script into its statements, without comments; what stands in quotes is left alone."""
    found, current = [], ""
    for piece in _PIECE.findall(script):
        if piece == ";":
            found.append(current.strip())
            current = ""
        elif not piece.startswith("--"):
            current += piece
    return [statement for statement in (*found, current.strip()) if statement]


@cache
def sql_text(name: str) -> str:
    """Read a file of the `sql` folder."""
    return (SQL / name).read_text(encoding="utf-8")
