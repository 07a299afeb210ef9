"""What a store does for whoever runs it: count, check, copy, move, let go. Each part is loaded when it is called."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pathlib import Path

    from bide.store.findings import Verification
    from bide.store.importing import ImportedThread
    from bide.store.retention import Horizon, Pruned
    from bide.store.seal import Seal
    from bide.store.stats import StoreStats
    from bide.store.store import Store
    from bide.waits.durations import Duration


class LookedAfter:
    """The part of a `Store` that looks after what is in it."""

    @property
    def _itself(self) -> Store:
        return cast("Store", self)

    def stats(self) -> StoreStats:
        """Count what there is: threads by status, waits, checkpoints, bytes. `str()` of it is a table."""
        from bide.store.stats import read_stats  # as below: only those who ask pay for it

        return read_stats(self._itself)

    def verify(
        self,
        thread_id: str | None = None,
        *,
        deep: bool = True,
        most: int = 1000,
        progress: Callable[[int, str], None] | None = None,
    ) -> Verification:
        """Look whether what is stored is whole and makes sense: one thread, or everything; nothing is changed.

        `deep` opens every body, too. At most so many problems are listed. `progress` is told after each thread how many
        there were, and its id. A thread that is not there is an `UnknownThreadError`.
        """
        from bide.store.verify import verify

        return verify(self._itself, thread_id, deep=deep, most=most, progress=progress)

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Copy a SQLite store into a new file while it is in use, and return where that is.

        Everything that was acknowledged before is in the copy, which is a store of its own. There is a whole copy under
        that name or none. `progress` is told how many pages are copied, and how many there are.
        """
        from bide.store.backup import back_up

        return back_up(self._itself.database, path, overwrite=overwrite, progress=progress)

    def export_thread(
        self,
        thread_id: str,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        encrypt: bool | None = None,
    ) -> None:
        """Write a thread to one file that any Bide store can import. It is encrypted if the store is.

        A file that is there already is left as it is, unless `overwrite` says otherwise.
        """
        from bide.store.export import export_thread

        export_thread(self._itself, str(thread_id), path, overwrite=overwrite, encrypt=encrypt)

    def import_thread(
        self,
        path: str | os.PathLike[str],
        thread_id: str | None = None,
        *,
        replace: bool = False,
        encryption: Seal | None = None,
        owner: str | None = None,
    ) -> ImportedThread:
        """Bring in a thread that `export_thread` wrote: under its own id or another one, all of it or nothing.

        `encryption` holds the keys of the file, if they are not this store's. If this life of the thread was here
        before, the copy is another one: its questions and checkpoints have new ids. It belongs to the store's own
        `owner`, unless another is named.
        """
        from bide.store.importing import import_thread

        return import_thread(self._itself, path, thread_id, replace=replace, encryption=encryption, owner=owner)

    def reseal(self, most: int | None = None) -> int:
        """Seal anew what is not sealed with the current key, so that older keys are no longer needed.

        Returns how many bodies were written; with `most`, it stops after so many, and is called again until it is 0.
        What cannot be opened is left, and raised when all the rest is done: `UnknownKeyError` if a key is missing,
        `CorruptDataError` if it is damaged.
        """
        from bide.store.reseal import reseal

        return reseal(self._itself, most)

    def prune(
        self,
        *,
        keep_last: int | None = None,
        older_than: Duration | None = None,
        horizon: Horizon | None = None,
        ttl: Duration | None = None,
        deliveries: Duration | None = None,
        thread_id: str | None = None,
    ) -> Pruned:
        """Let old checkpoints and threads go now, of one thread or of all, and say how much went.

        What may go is said as in `Retention`, facts from outside only where `deliveries` says for how long; `horizon`
        is a moment or the id of a checkpoint, before which checkpoints go. Without any of these, the policy that the
        store was opened with holds. Where a thread stands, what it waits for, and where a branch of its history began
        always stay.
        """
        from bide.store.upkeep import prune  # only those who let go pay for it

        return prune(
            self._itself,
            thread_id,
            keep_last=keep_last,
            older_than=older_than,
            horizon=horizon,
            ttl=ttl,
            deliveries=deliveries,
        )
