"""SQLite's complaints, in words that say what to do."""

from __future__ import annotations

import sqlite3

from bide.errors import BideError, StoreBusyError, StoreError, StoreFormatError, StoreUnavailableError

_BUSY = ("locked", "busy")
_UNAVAILABLE = ("readonly", "read-only", "unable to open", "disk is full", "disk i/o", "authorized")
_FORMAT = ("not a database", "malformed", "corrupt", "no such table", "no such column", "unsupported file format")


def explain(problem: sqlite3.Error, path: str) -> BideError:
    """Turn the database's complaint into an error that says what to do."""
    text = str(problem).lower()
    error: BideError
    if any(word in text for word in _BUSY):
        error = StoreBusyError(
            f"The database {path!r} is held by another program ({problem}). Nothing was written. "
            f"Close what else has it open for writing, and try again."
        )
    elif "disk is full" in text:
        error = StoreUnavailableError(
            f"The disk of {path!r} is full. Nothing of this transaction was written; everything acknowledged before "
            f"is kept. Free some space and go on with invoke(None, config)."
        )
    elif any(word in text for word in _UNAVAILABLE):
        error = StoreUnavailableError(
            f"The database {path!r} cannot be opened or written ({problem}). Its folder must exist and, with the "
            f"file, be writable by this user; check permissions and mounts, or choose another path."
        )
    elif any(word in text for word in _FORMAT):
        error = StoreFormatError(
            f"{path!r} is not a sound Bide database ({problem}). Bide did not change it. Choose another path, or "
            f"restore the file from a backup."
        )
    else:
        error = StoreError(f"The database {path!r} refused: {str(problem).rstrip('.')}.")
    error.__cause__ = problem
    return error
