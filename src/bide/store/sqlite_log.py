"""The write-ahead log of a SQLite file: how long it is, and how it is kept short."""

from __future__ import annotations

import sqlite3

WAL_LIMIT = 256
"""How many pages the log may hold. A log that is begun anew is written over, and an fsync of blocks that a file already
has takes about half as long as one of blocks that it gains (105 against 200 µs here): small is fast."""
CUT_BEYOND = 16 * WAL_LIMIT
"""Beyond this many pages the log is not only copied but cut, for which those who read an old state must have left."""
WAIT_FOR_READERS_MS = 100
LOOK_EVERY = 16


class Log:
    """The log of one file. Everything here happens inside the gate, right after a commit."""

    def __init__(self, path: str, writer: sqlite3.Connection) -> None:
        self.path = path + "-wal"
        self.writer = writer
        self.cut_beyond = CUT_BEYOND
        self._commits = 0
        # After a reader that stayed for long, the file is longer than it will ever need to be again.
        writer.execute(f"PRAGMA journal_size_limit = {CUT_BEYOND * 4096}")

    def tend(self) -> None:
        """Copy the log into the database when it has grown; look only now and then."""
        self._commits += 1
        if self._commits % LOOK_EVERY:
            return
        try:
            if self.holds_more_than(WAL_LIMIT):
                self._shorten()
        except (OSError, sqlite3.Error):
            # What was committed is in the log; a checkpoint is housekeeping and is tried again.
            return

    def holds_more_than(self, pages: int) -> bool:
        """Whether the log has so many pages of its present round: its file does not shrink when it begins anew.

        The log is looked at, and not its index: whoever opens and closes the index drops the locks that SQLite has on
        it for this whole process, and the log may be thrown away under those who read it. The log itself has no locks.
        """
        with open(self.path, "rb", buffering=0) as log:
            header = log.read(32)
            page_size, round_ = int.from_bytes(header[8:12]), header[16:24]
            log.seek(32 + pages * (24 + page_size))
            return len(header) == 32 and log.read(16)[8:] == round_

    def _shorten(self) -> None:
        if not self.holds_more_than(self.cut_beyond):
            self.writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            return
        # Somebody has always been reading, so that the log could never begin anew. Nobody writes now: whoever begins to
        # read needs no log once it is copied, and the others are waited for, a moment.
        before = self.writer.execute("PRAGMA busy_timeout").fetchone()[0]
        self.writer.execute(f"PRAGMA busy_timeout = {WAIT_FOR_READERS_MS}")
        try:
            is_busy = self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            self.writer.execute(f"PRAGMA busy_timeout = {before}")
        # One who reads for minutes must not make every writer wait again and again.
        self.cut_beyond = self.cut_beyond * 2 if is_busy else CUT_BEYOND
