"""Assistants: graphs with a name and a config of their own, and every version that they had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from bide.clock import Instant
from bide.store.bodies import Bodies
from bide.store.database import Row, Transaction
from bide.store.needed import PLAIN
from bide.store.reads import noticing_damage
from bide.store.seal import place_of

if TYPE_CHECKING:
    from bide.store.store import Store

PAGE = 100


class Wording(NamedTuple):
    """What an assistant is at one version: the body of its row."""

    graph: str
    name: str = ""
    description: str | None = None
    config: Mapping[str, Any] = {}
    context: Mapping[str, Any] = {}
    metadata: Mapping[str, Any] = {}


class AssistantRow(NamedTuple):
    """An assistant at one of its versions."""

    assistant_id: str
    owner: str
    version: int
    created_at: Instant
    updated_at: Instant
    """Of an older version, when that was made."""
    wording: Wording


class Assistants:
    """The assistants in a store; each belongs to one owner, and another's is not there."""

    def __init__(self, store: Store) -> None:
        self._database = store.database
        self._bodies = store.bodies
        self._clock = store.clock

    def make(self, owner: str, assistant_id: str, wording: Wording) -> AssistantRow | None:
        """Make an assistant with its first version; None when there is one with this id, whoever it belongs to."""

        def make(tx: Transaction) -> AssistantRow | None:
            now = self._clock.now()
            made = {"assistant_id": assistant_id, "owner": owner, "graph": wording.graph, "now": now}
            if tx.run("insert_assistant", made) == 0:
                return None
            self._write(tx, assistant_id, 1, now, wording)
            return AssistantRow(assistant_id, owner, 1, now, now, wording)

        return self._database.write("assistant", make)

    def get(self, owner: str, assistant_id: str) -> AssistantRow | None:
        """Read an assistant as it is now."""
        key = {"assistant_id": assistant_id, "owner": owner}

        def read(tx: Transaction) -> AssistantRow | None:
            row = tx.one("read_assistant", key)
            return None if row is None else self._read(tx, row)

        return self._database.read(read)

    def all(self, owner: str, graph: str | None = None) -> Iterator[AssistantRow]:
        """Go through the assistants of an owner, or those of one graph, oldest first, a page at a time."""
        since, after = -1, ""
        while True:
            params = {"owner": owner, "since": since, "after": after, "graph": graph or "", "most": PAGE}
            page = self._database.read(lambda tx, params=params: self._page(tx, params))  # type: ignore[misc]
            yield from page
            if len(page) < PAGE:
                return
            since, after = page[-1].created_at, page[-1].assistant_id

    def change(self, owner: str, assistant_id: str, **changed: Any) -> AssistantRow | None:
        """Make a new version with what is changed, and let it be the present one; metadata are merged."""

        def change(tx: Transaction) -> AssistantRow | None:
            row, now = self._held(tx, owner, assistant_id), self._clock.now()
            if row is None:
                return None
            last = cast("Row", tx.one("last_assistant_version", {"assistant_id": assistant_id}))[0]
            merged = {**row.wording.metadata, **changed.get("metadata", {})}
            wording = row.wording._replace(**{**changed, "metadata": merged})
            self._write(tx, assistant_id, last + 1, now, wording)
            self._point(tx, assistant_id, last + 1, wording, now)
            return row._replace(version=last + 1, updated_at=now, wording=wording)

        return self._database.write("assistant", change)

    def choose(self, owner: str, assistant_id: str, version: int) -> AssistantRow | None:
        """Let another of its versions be the present one; None when there is no such assistant or version."""

        def choose(tx: Transaction) -> AssistantRow | None:
            row = self._held(tx, owner, assistant_id)
            stored = tx.one("read_assistant_version", {"assistant_id": assistant_id, "version": version})
            if row is None or stored is None:
                return None
            wording, now = self._wording(tx, assistant_id, version, stored[0]), self._clock.now()
            self._point(tx, assistant_id, version, wording, now)
            return row._replace(version=version, updated_at=now, wording=wording)

        return self._database.write("assistant", choose)

    def versions(self, owner: str, assistant_id: str) -> list[AssistantRow]:
        """Read all versions of an assistant, newest first; none when there is no such assistant."""
        key = {"assistant_id": assistant_id, "owner": owner}
        return self._database.read(lambda tx: [self._read(tx, row) for row in tx.all("list_assistant_versions", key)])

    def delete(self, owner: str, assistant_id: str) -> bool:
        """Delete an assistant with all its versions; return whether there was one."""

        def delete(tx: Transaction) -> bool:
            if tx.run("delete_assistant", {"assistant_id": assistant_id, "owner": owner}) == 0:
                return False
            tx.run("delete_assistant_versions", {"assistant_id": assistant_id})
            return True

        return self._database.write("assistant", delete)

    # ── Rows ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _page(self, tx: Transaction, params: Mapping[str, Any]) -> list[AssistantRow]:
        return [self._read(tx, row) for row in tx.all("list_assistants", params)]

    def _held(self, tx: Transaction, owner: str, assistant_id: str) -> AssistantRow | None:
        """Hold an assistant until the end of the transaction, and read it as whoever held it before has left it."""
        key = {"assistant_id": assistant_id, "owner": owner}
        if tx.one("hold_assistant", key) is None:
            return None
        row = tx.one("read_assistant", key)
        return None if row is None else self._read(tx, row)

    def _read(self, tx: Transaction, row: Row) -> AssistantRow:
        assistant_id, owner, version, created_at, updated_at, body = row
        wording = self._wording(tx, assistant_id, version, body)
        return AssistantRow(assistant_id, owner, version, created_at, updated_at, wording)

    def _wording(self, tx: Transaction, assistant_id: str, version: int, body: bytes) -> Wording:
        return open_wording(self._bodies, tx, version_place(assistant_id, version), body)

    def _write(self, tx: Transaction, assistant_id: str, version: int, now: Instant, wording: Wording) -> None:
        body = PLAIN.encode(wording._asdict(), "assistant")
        closed = self._bodies.close_small(version_place(assistant_id, version), body)
        tx.run(
            "insert_assistant_version", {"assistant_id": assistant_id, "version": version, "now": now, "body": closed}
        )

    def _point(self, tx: Transaction, assistant_id: str, version: int, wording: Wording, now: Instant) -> None:
        said = {"assistant_id": assistant_id, "version": version, "graph": wording.graph, "now": now}
        tx.run("point_assistant", said)


def version_place(assistant_id: str, version: int) -> str:
    """Return the place of one version of an assistant."""
    return place_of("assistant_versions", assistant_id, version)


def open_wording(bodies: Bodies, tx: Transaction, place: str, body: bytes) -> Wording:
    """Read what an assistant is at one version."""
    opened = bodies.open(tx, place, body)
    with noticing_damage(place):
        return Wording(**cast("dict[str, Any]", PLAIN.decode(opened, "assistant")))
