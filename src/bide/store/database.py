"""What the store needs of a database, and where its SQL comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bide.clock import Clock

if TYPE_CHECKING:
    from bide.store.doorbell import Doorbell
    from bide.store.lease import Lifeline

SQL = Path(__file__).parent / "sql"

T = TypeVar("T")
Row = tuple[Any, ...]


class Transaction(Protocol):
    """A transaction that is under way: named queries, nothing else.

    `run`, `one` and `all` answer at once. `send`, `expect` and `ask` need not: a database that is a network away lets
    them wait and sends them together, at the latest with the commit, so that a whole transaction is one round trip.
    """

    @property
    def connection(self) -> Any:
        """The driver's own connection, for `step(effect="tx")`."""
        ...

    def run(self, query: str, params: Mapping[str, Any]) -> int:
        """Run a query for its effect; return how many rows it changed."""
        ...

    def one(self, query: str, params: Mapping[str, Any]) -> Row | None:
        """Return the first row, or None."""
        ...

    def all(self, query: str, params: Mapping[str, Any]) -> Sequence[Row]:
        """Return every row."""
        ...

    def send(self, query: str, params: Mapping[str, Any]) -> None:
        """Run a query for its effect, however many rows that changes; in order, but not always at once."""
        ...

    def expect(self, query: str, params: Mapping[str, Any], otherwise: Otherwise) -> None:
        """Run a query that must change or find a row, in order, but not always at once.

        If it does not, the transaction is taken back and `otherwise` makes the error; it is given a transaction, so
        that it can look why.
        """
        ...

    def ask(self, query: str, params: Mapping[str, Any]) -> Answer:
        """Return a function that returns every row: several questions asked before the first answer travel together."""
        ...


Otherwise = Callable[[Transaction], Exception]
Answer = Callable[[], Sequence[Row]]


class Database(Protocol):
    """One SQL database, shared by the threads of this process and by other processes."""

    path: str
    """What it is called in messages; no password is in it."""
    blocking: bool
    """Whether calls may wait for a disk or a network."""

    def write(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction; when this returns, it is durable. `work` may be run again after a failure."""
        ...

    def write_one(self, name: str, query: str, params: Mapping[str, Any], *, proof: str) -> int:
        """Run one statement, which is a transaction by itself; return how many rows it changed.

        `proof` finds a row if this very statement, with these very parameters, was applied before: a reply may be
        lost on the way.
        """
        ...

    def write_alone(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work`, which is not ours, in a transaction that nobody else shares."""
        ...

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot."""
        ...

    def check_present(self) -> None:
        """Refuse to acknowledge what would not be found again."""
        ...

    def stop_waiting(self) -> None:
        """Wait no longer than a moment from now on for a server that is gone: the store is being closed."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...

    def clock(self) -> Clock:
        """Return the clock by which everybody who shares this database decides what is due, and who is gone."""
        ...

    def lifeline(self, lease: float) -> Lifeline:
        """Return a way to renew a lease of so many seconds, which is there when all connections are in use."""
        ...

    def doorbell(self) -> Doorbell:
        """Return a bell that others who share this database can hear."""
        ...

    # ── For migrate.py alone ───────────────────────────────────────────────────────────────────────────────────────

    def change_schema(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction in which nobody else changes the schema."""
        ...

    def is_ours(self, tx: Transaction) -> bool:
        """Say whether there is a database of Bide; an empty one is not. One of another program is refused."""
        ...

    def make(self, tx: Transaction) -> None:
        """Make the present schema where nothing is, and mark it as ours."""
        ...

    def run_script(self, tx: Transaction, script: str) -> None:
        """Run the statements of a migration."""
        ...


@cache
def queries(folder: str = "") -> Mapping[str, str]:
    """Load the named queries of every file in `sql/`, or a folder in it, but the schema; no name may come twice."""
    found: dict[str, str] = {}
    for file in sorted((SQL / folder).glob("*.sql")):
        named = {} if file.name == "schema.sql" else parse_queries(file.read_text(encoding="utf-8"))
        twice = found.keys() & named.keys()
        assert not twice, f"Two queries have the same name: {sorted(twice)}"
        found.update(named)
    return found


_NAMED = re.compile(r"^-- (name|part): (\w+)\n(.*?)(?=^-- (?:name|part): |\Z)", re.MULTILINE | re.DOTALL)
_PART = re.compile(r"/\* part: (\w+) \*/")


def parse_queries(text: str) -> dict[str, str]:
    """Split a file at its `-- name:` lines; other comments are for the reader.

    What several queries of a file share stands once, below `-- part:`, and is put in where `/* part: … */` says so.
    """
    found: dict[str, dict[str, str]] = {"name": {}, "part": {}}
    for kind, name, body in _NAMED.findall(text):
        found[kind][name] = "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
    return {name: _PART.sub(lambda part: found["part"][part[1]], body) for name, body in found["name"].items()}


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
