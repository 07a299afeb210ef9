"""What a SQLite file says of itself, before anything is done with it.

Never by opening the file ourselves: when a process closes any copy of a file, the system drops all POSIX locks that the
process has on that file, and with them those of every SQLite connection beside this one. Another process then believes
itself alone, and may throw away a log that is in use. SQLite knows this and keeps such a file open, so it is asked;
`immutable` makes it look at the file alone, without locks, without the log, and without making anything.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from typing import NamedTuple
from urllib.parse import quote

from bide.errors import StoreFormatError, StoreUnavailableError
from bide.store.sqlite_errors import explain

APPLICATION_ID = 0x42494445  # "BIDE", in the header of the file
SMALLEST = 100
"""The length of the header."""
NO_DATABASE, MALFORMED = "SQLITE_NOTADB", "SQLITE_CORRUPT"


class Header(NamedTuple):
    """What the first page says, each under the name of the pragma that tells it without looking at other pages."""

    application_id: int
    schema_version: int
    page_size: int


def check_kind(path: str) -> None:
    """Refuse a file that is no database of ours, before anything is made beside it."""
    size = _size(path)
    if not size:
        return
    if size < SMALLEST:
        raise _no_database(path)
    try:
        header = _read_header(path)
    except sqlite3.DatabaseError as problem:
        if problem.sqlite_errorname == NO_DATABASE:
            raise _no_database(path) from problem
        if problem.sqlite_errorname == MALFORMED:
            return  # It lacks pages. They may be in its log, which `check_length` looks into.
        raise explain(problem, path) from problem
    # A schema that was never changed is that of an empty database, which may become ours.
    if header.application_id != APPLICATION_ID and header.schema_version:
        raise StoreFormatError(
            f"{path!r} is a database of another program, not of Bide. Nothing was changed. Choose another path."
        )


def check_length(path: str) -> bool:
    """Refuse a file that was cut short; say whether it lacks pages that may be in its log. Only inside the gate."""
    size = _size(path)
    if not size:
        return False
    try:
        if size % _read_header(path).page_size == 0:
            return False
    except sqlite3.DatabaseError as problem:
        # SQLite says so here if there are fewer pages than the header counts.
        if problem.sqlite_errorname != MALFORMED:
            raise explain(problem, path) from problem
    if os.path.exists(path + "-wal"):
        return True
    raise StoreFormatError(
        f"{path!r} is cut short: it has only {size} bytes, and its header speaks of more. Bide did not touch it. "
        f"Restore it from a backup; what is left can be read with the sqlite3 program's .recover."
    )


def _read_header(path: str) -> Header:
    address = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as look:
        return Header(*(look.execute(f"PRAGMA {name}").fetchone()[0] for name in Header._fields))


def _size(path: str) -> int:
    """The length of a file that we may read and write; 0 where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0
    except OSError as problem:
        raise _unusable(path, problem.strerror or str(problem)) from problem
    if not stat.S_ISREG(found.st_mode):
        raise _unusable(path, "it is not a file")
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise _unusable(path, "permission denied")
    return found.st_size


def _unusable(path: str, why: str) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"{path!r} cannot be opened for reading and writing: {why}. It must be a file that is writable by this user; "
        f"check its permissions, or choose another path."
    )


def _no_database(path: str) -> StoreFormatError:
    return StoreFormatError(
        f"{path!r} is not a database. Bide did not touch it. Choose another path, or move that file away."
    )
