"""Items as the database has them, and how they are read: a row that is damaged is named, never handed out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from bide.clock import Instant
from bide.codec import Codec
from bide.errors import CorruptDataError
from bide.store.bodies import Bodies
from bide.store.namespaces import decode_namespace, decode_text
from bide.store.places import item_place

_MENDING = "Write it again with put(), take it away with delete(), or restore the database from a backup."


class Row(NamedTuple):
    """An item as the database has it."""

    namespace: bytes
    key: bytes
    ttl: int | None
    expires_at: Instant | None
    created_at: Instant
    updated_at: Instant
    body: bytes


def read_row(found: tuple[Any, ...]) -> Row:
    """Take what the database gave; SQLite keeps anything in any column, so a damaged file may hold anything."""
    row = Row(*found)
    is_sound = isinstance(row.key, bytes) and all(
        isinstance(number, int) or (number is None and position < 2) for position, number in enumerate(row[2:6])
    )
    if not is_sound:
        raise CorruptDataError(f"Cannot read {_place_of(row)}: its row is damaged. {_MENDING}")
    return row


def value_of(row: Row, codec: Codec, bodies: Bodies) -> dict[str, Any]:
    """Return the value, or say which item it is that cannot be read."""
    try:
        value = codec.decode(bodies.seal.open(item_place(row.namespace, row.key), row.body), _place_of(row))
    except CorruptDataError as problem:
        raise CorruptDataError(f"Cannot read {_place_of(row)}. {problem} {_MENDING}") from problem
    if not isinstance(value, dict):
        raise CorruptDataError(f"Cannot read {_place_of(row)}: it holds no dict but {value!r:.40}. {_MENDING}")
    return value


def fields_of(row: Row, codec: Codec, bodies: Bodies) -> dict[str, Any]:
    """Return what an item is made of."""
    value = value_of(row, codec, bodies)
    try:
        created_at, updated_at = (datetime.fromtimestamp(at / 1000, UTC) for at in (row.created_at, row.updated_at))
        key = decode_text(row.key)
    except (ValueError, OverflowError, OSError) as problem:
        raise CorruptDataError(f"Cannot read {_place_of(row)}: its row is damaged ({problem}). {_MENDING}") from problem
    namespace = decode_namespace(row.namespace)
    return {"value": value, "key": key, "namespace": namespace, "created_at": created_at, "updated_at": updated_at}


def _place_of(row: Row) -> str:
    key = row.key.decode("utf-8", "backslashreplace") if isinstance(row.key, bytes) else row.key
    return f"item {key!r} of namespace {decode_namespace(row.namespace)!r}"


def newest_first(row: Row) -> tuple[int, bytes, bytes]:
    """Return what to sort rows by: those written last come first, then namespace and key decide."""
    return -row.updated_at, row.namespace, row.key
