"""What the first bytes of a SQLite file say, before anything opens it."""

from __future__ import annotations

import os

from bide.errors import StoreFormatError, StoreUnavailableError

APPLICATION_ID = 0x42494445  # "BIDE", in the header of the file


def check_kind(path: str) -> None:
    """Refuse a file that is no database of ours, before anything is made beside it."""
    header, _ = _read_header(path)
    if not header:
        return
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise StoreFormatError(
            f"{path!r} is not a database. Bide did not touch it. Choose another path, or move that file away."
        )
    if header[68:72] != APPLICATION_ID.to_bytes(4) and _has_content(header):
        raise StoreFormatError(
            f"{path!r} is a database of another program, not of Bide. Nothing was changed. Choose another path."
        )


def check_length(path: str) -> bool:
    """Refuse a file that was cut short; say whether it lacks pages that may be in its log. Only inside the gate."""
    header, size = _read_header(path)
    if not header:
        return False
    page = int.from_bytes(header[16:18])
    pages = int.from_bytes(header[28:32])
    # The page count in the header is valid only where the change counters agree.
    is_counted = header[24:28] == header[92:96]
    if not is_counted or pages * (65536 if page == 1 else page) <= size:
        return False
    if os.path.exists(path + "-wal"):
        return True
    raise StoreFormatError(
        f"{path!r} is cut short: it should have {pages} pages and holds {size} bytes. Bide did not touch it. "
        f"Restore it from a backup; what is left can be read with the sqlite3 program's .recover."
    )


def _read_header(path: str) -> tuple[bytes, int]:
    try:
        with open(path, "r+b") as file:
            return file.read(100), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return b"", 0
    except OSError as problem:
        raise StoreUnavailableError(
            f"{path!r} cannot be opened for reading and writing: {problem.strerror}. It must be a file that is "
            f"writable by this user; check its permissions, or choose another path."
        ) from problem


def _has_content(header: bytes) -> bool:
    """Whether the schema was ever changed; an empty database may become ours."""
    return header[40:44] != bytes(4)
