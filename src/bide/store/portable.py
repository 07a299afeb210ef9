"""A portable file: records one after the other, sealed, with a checksum over all of it at the end.

    file    = magic (9 bytes), version (2), 0 plain or 1 encrypted (1), the file's own id (16), records, checksum (32)
    record  = length (4), sealed: length of the head (4), head, then what was taken out of it
    head    = MessagePack: [what, [values], [[position, length, 1 if it is text], …]]

Numbers are big-endian. Bytes, and texts that are long, stand behind the head in the order in which they are listed, so
that what has to be parsed is always small. Each record is sealed with the file's id and its own number: none can be
moved, left out or taken from another file. The last one says how many there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple, NoReturn

from ormsgpack import packb, unpackb

from bide.errors import CodecError, ExportFormatError
from bide.store.seal import Checksums, Seal, place_of

MAGIC = b"\x89BIDE\r\n\x1a\n"
"""Not a text, and damaged by whatever takes it for one."""
VERSION = 3
LARGEST_HEAD = 256 * 1024
LONG = 1024
"""Texts of more characters stand behind the head."""
BODIES = 3
"""No record holds more bodies: those of a wait are its question, its answer, and what it needs."""
SEALED_BY = 512
"""No seal adds more bytes than this."""

_FIXED = len(MAGIC) + 2 + 1 + 16
_DIGEST = 32
_END = "end"


class Record(NamedTuple):
    """One record: what it is, and its values."""

    what: str
    values: list[Any]


class PortableWriter:
    """Writes records to a file."""

    def __init__(self, file: BinaryIO, seal: Seal) -> None:
        self._file = file
        self._seal = seal
        self._id = os.urandom(16)
        self._check = blake2b(digest_size=_DIGEST)
        self._count = 0
        self._put(MAGIC + VERSION.to_bytes(2) + bytes([not isinstance(seal, Checksums)]) + self._id)

    def add(self, what: str, values: list[Any]) -> None:
        """Write one record."""
        kept, places, outside = list(values), [], []
        for position, value in enumerate(values):
            if isinstance(value, bytes) or (isinstance(value, str) and len(value) > LONG):
                body = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
                kept[position] = None
                places.append([position, len(body), int(isinstance(value, str))])
                outside.append(body)
        head = packb([what, kept, places])
        sealed = self._seal.close(_place(self._id, self._count), b"".join([len(head).to_bytes(4), head, *outside]))
        self._put(len(sealed).to_bytes(4) + sealed)
        self._count += 1

    def finish(self) -> None:
        """Write the end."""
        self.add(_END, [self._count])
        self._file.write(self._check.digest())

    def _put(self, data: bytes) -> None:
        self._check.update(data)
        self._file.write(data)


class PortableReader:
    """Reads the records of a file, from its beginning; whatever is wrong with it is an `ExportFormatError`."""

    def __init__(self, file: BinaryIO, seal: Seal, largest: int) -> None:
        self._file = file
        self._seal = seal
        self._largest = largest
        self._longest = BODIES * largest + LARGEST_HEAD + SEALED_BY

    def records(self) -> Iterator[Record]:
        """Give the records. All of them are sound only when this has come to its end."""
        file = self._file
        file.seek(0, os.SEEK_END)
        size = file.tell()
        file.seek(0)
        check = blake2b(digest_size=_DIGEST)
        id_ = self._begin(check)
        count = 0
        while True:
            record = self._record(check, size - _DIGEST, _place(id_, count))
            if record.what == _END:
                break
            yield record
            count += 1
        if record.values != [count] or file.tell() != size - _DIGEST or file.read() != check.digest():
            refuse("its end does not fit the rest")

    def _begin(self, check: Any) -> bytes:
        fixed = self._file.read(_FIXED)
        if not fixed.startswith(MAGIC) or len(fixed) < _FIXED:
            refuse("it does not begin as one does", "Choose a file that export_thread() has written.")
        check.update(fixed)
        version, kind = int.from_bytes(fixed[len(MAGIC) : len(MAGIC) + 2]), fixed[len(MAGIC) + 2]
        if version > VERSION:
            refuse(f"it was written by a newer Bide (version {version}, this one knows {VERSION})", "Upgrade bide.")
        if 0 < version < VERSION:
            refuse(
                f"it was written by an older Bide (version {version}, this one reads {VERSION})",
                "Import it with that one, and export it again with this one.",
            )
        if version != VERSION or kind > 1:
            refuse("its header is damaged")
        if kind == 1 and isinstance(self._seal, Checksums):
            refuse(
                "it is encrypted, and no keys were given",
                "Give those of the store that wrote it: import_thread(path, encryption=Encryption(…)).",
            )
        if kind == 0 and not isinstance(self._seal, Checksums):
            self._seal = Checksums()
        return fixed[-16:]

    def _record(self, check: Any, end: int, place: str) -> Record:
        start = self._file.read(4)
        length = int.from_bytes(start)
        if len(start) < 4 or self._file.tell() + length > end:
            refuse("it is cut off, or damaged")
        if length > self._longest:
            _refuse_size(length)
        sealed = self._file.read(length)
        check.update(start + sealed)
        try:
            record = _unpacked(self._seal.open(place, sealed))
        except (CodecError, ValueError, TypeError, KeyError, IndexError) as problem:
            raise ExportFormatError(
                f"This file cannot be imported: one of its records is damaged. {problem} Nothing was imported."
            ) from problem
        for value in record.values:
            if isinstance(value, bytes) and len(value) > self._largest:
                _refuse_size(len(value))
        return record


def refuse(why: str, advice: str = "Export the thread again, or take another copy of the file.") -> NoReturn:
    """Say why a file is not imported."""
    raise ExportFormatError(f"This file cannot be imported: {why}. Nothing was imported. {advice}")


def _refuse_size(size: int) -> NoReturn:
    refuse(
        f"it holds a value of {size} bytes, and this store takes less",
        "If it is a file of yours, open the store with a higher limit: Store.open(…, largest_value=…).",
    )


def _place(id_: bytes, number: int) -> str:
    return place_of("export", id_.hex(), number)


def _unpacked(body: bytes) -> Record:
    length = int.from_bytes(body[:4])
    if length > LARGEST_HEAD or len(body) < 4 + length:
        raise ValueError("Its head is too long.")
    what, values, places = unpackb(body[4 : 4 + length])
    if type(what) is not str or type(values) is not list or type(places) is not list:
        raise ValueError("It is no record.")
    at = 4 + length
    for position, size, is_text in places:
        if type(size) is not int or type(position) is not int or not 0 <= size <= len(body) - at or position < 0:
            raise ValueError("What it speaks of is not there.")
        part = body[at : at + size]
        values[position] = part.decode("utf-8", "surrogatepass") if is_text else part
        at += size
    if at != len(body):
        raise ValueError("It is longer than it says.")
    return Record(what, values)
