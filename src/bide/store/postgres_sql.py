"""The named queries as PostgreSQL reads them: numbered parameters, row locks, and tables of one schema."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

from bide.errors import StoreError, StoreUnavailableError
from bide.store.database import queries, sql_text

# What a parameter may not be found in, then the parameter. The lookbehind keeps `::type` from reading as `:type`.
_TOKEN = re.compile(
    r"""
      (?P<keep> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$\w*\$.*?\$\w*\$ )
    | (?<![:\w]) : (?P<parameter>[a-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_LOCK = re.compile(r"/\*\s*lock:\s*(?P<kind>[a-z ]*?)\s*\*/")
_SQLITE_ONLY = re.compile(r"\s*/\*\s*sqlite:.*?\*/")
_POSTGRES_ONLY = re.compile(r"/\*\s*postgres:\s*(?P<text>.*?)\s*\*/")
_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)
_SCHEMA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Statement(NamedTuple):
    """One query, ready to be sent."""

    name: bytes
    """Under which a connection keeps it prepared: of its text, so that no other text has it."""
    text: bytes
    params: tuple[str, ...]

    def bind(self, params: Mapping[str, Any]) -> tuple[list[bytes | None], list[int]]:
        """Return the parameters as bytes, and for each whether these are binary.

        None of them says of which type it is, so that the server takes the type of the place where each stands, NULL
        or not, and one prepared statement serves all.
        """
        values: list[bytes | None] = []
        formats: list[int] = []
        for name in self.params:
            value = params[name]
            if isinstance(value, str):
                value = _text(name, value)
                formats.append(0)
            elif isinstance(value, int):
                value = b"%d" % value
                formats.append(0)
            else:
                value = value if value is None else bytes(value)
                formats.append(1)
            values.append(value)
        return values, formats


def _text(name: str, value: str) -> bytes:
    try:
        text = value.encode()
    except UnicodeEncodeError:
        text = b"\0"
    if b"\0" in text:
        raise StoreError(
            f"The {name.replace('_', ' ')} {value!r} holds a NUL character or half of one, and PostgreSQL keeps "
            f"neither in texts. Nothing was written. Use another."
        )
    return text


class Statements:
    """Every query, rendered once when it is first asked for."""

    def __init__(self, schema: str | None) -> None:
        self.schema = checked_schema(schema)
        # Several stores may share the connections of a pool, and know nothing of what the others have prepared.
        self._mine = os.urandom(4).hex()
        self._sql = {**queries(), **queries("postgres")}
        self._plain: dict[str, Statement] = {}
        self._expecting: dict[str, Statement] = {}

    def plain(self, query: str) -> Statement:
        """Return a query as it is."""
        found = self._plain.get(query)
        if found is None:
            found = self._plain[query] = statement_of(render(self._sql[query], self.schema), self._mine)
        return found

    def expecting(self, query: str) -> Statement:
        """Return a query that fails, and the transaction with it, if it neither changes nor finds a row."""
        found = self._expecting.get(query)
        if found is None:
            inner = render(self._sql[query], self.schema)
            changes = inner.startswith(("INSERT", "UPDATE", "DELETE")) and "RETURNING" not in inner
            whole = self._sql["expectation"].replace(":statement", f"{inner}\nRETURNING 1" if changes else inner)
            found = self._expecting[query] = statement_of(whole, self._mine)
        return found

    def settle_in(self, schema: str | None) -> None:
        """Name this schema from now on: it was found where none was given, so its name may be any."""
        self.schema = schema
        self._plain.clear()
        self._expecting.clear()

    def qualified(self, table: str) -> str:
        """Return a table's name as it stands in a query."""
        return table if self.schema is None else f"{quoted(self.schema)}.{table}"


def checked_schema(schema: str | None) -> str | None:
    """Refuse a name that would have to be quoted by whoever looks at the database with a program of their own."""
    if schema is not None and (not isinstance(schema, str) or not _SCHEMA_NAME.fullmatch(schema)):
        raise StoreUnavailableError(
            f"schema={schema!r} is no name for a schema: use a–z, A–Z, 0–9 and _, at most 63 of them, and begin with "
            f"a letter or _."
        )
    return schema


def quoted(name: str) -> str:
    """Return a name as it stands in a query, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def render(sql: str, schema: str | None = None) -> str:
    """Turn lock comments into row locks, take what is for PostgreSQL, drop what is for SQLite, and name the schema of
    each table."""
    sql = _POSTGRES_ONLY.sub(r"\g<text>", _SQLITE_ONLY.sub("", sql))
    sql = _LOCK.sub(_row_lock, sql).strip().rstrip(";")
    if schema is None:
        return sql
    return _in_a_from().sub(lambda found: f"{found['before']}{quoted(schema)}.{found['table']}", sql)


def _row_lock(comment: re.Match[str]) -> str:
    kind = comment["kind"]
    return "FOR SHARE" if kind == "share" else f"FOR UPDATE {kind.upper()}".strip()


def statement_of(sql: str, owner: str = "") -> Statement:
    """Number the parameters: `:name` becomes `$1`."""
    order: list[str] = []

    def replace(token: re.Match[str]) -> str:
        if token["parameter"] is None:
            return token["keep"]
        if token["parameter"] not in order:
            order.append(token["parameter"])
        return f"${order.index(token['parameter']) + 1}"

    text = _TOKEN.sub(replace, sql).encode()
    name = f"bide_{owner}_{blake2b(text, digest_size=10).hexdigest()}"
    return Statement(name.encode(), text, tuple(order))


@cache
def our_tables() -> tuple[str, ...]:
    """Return the names of our tables."""
    return tuple(_TABLE.findall(sql_text("schema.sql") + "\n" + sql_text("postgres/schema.sql")))


@cache
def _in_a_from() -> re.Pattern[str]:
    """Match a table where a query names it; elsewhere its name stands for a column, or is an alias by itself."""
    tables = "|".join(our_tables())
    return re.compile(rf"(?P<before>\b(?:FROM|JOIN|INTO|UPDATE)\s+)(?P<table>{tables})\b(?!\.)")
