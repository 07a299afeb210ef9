"""What goes round every stored body, so that it comes back as it was written, from where it was written, or not at all.

    sealed     = kind byte, the rest
    kind 1     = 8 bytes of checksum, the body                    plain: `Checksums`
    kind 2     = what `bide.store.encryption` says                encrypted: `Encryption`
    kind 3     = a sealed reference, of kind 1 or 2               the body is too large and lies elsewhere
    the others = written by a newer Bide, or damaged

A seal covers the body and its *place*: the table and the key of its row. So a body that was copied into another row
does not open there. A checksum tells accidents; only encryption tells forgeries.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NoReturn, Protocol

from bide.errors import CorruptDataError, UnknownKeyError

PLAIN, ENCRYPTED, REFERENCE = b"\x01", b"\x02", b"\x03"

_SUM = 8
_HEAD = 1 + _SUM
_JOINED = tuple("/".join(["%s"] * count) for count in range(1, 16))


class Seal(Protocol):
    """What closes bodies before they are stored, and opens them when they are read."""

    hides: bool
    """Whether nobody without a key can read what was closed: then nothing of it may lie beside it either."""

    def close(self, place: str, body: bytes) -> bytes:
        """Return what is stored for a body at this place."""

    def open(self, place: str, sealed: bytes) -> bytes:
        """Return the body that was stored at this place, or raise a `CorruptDataError` that names the place."""

    def fingerprint(self, body: bytes) -> bytes:
        """Return 32 bytes that are the same for equal bodies: the address of a large value."""

    def correlation(self, key: str) -> str:
        """Return what is written for a key by which waits and facts find each other: no more of it than may be seen."""

    def correlations(self, key: str) -> tuple[str, ...]:
        """Return all that may have been written for such a key; what `correlation` writes today comes last."""

    def is_current(self, sealed: bytes) -> bool:
        """Whether `close` would write it this way today; if not, it is to be closed again."""


class Checksums:
    """The seal of a store without encryption: bytes that were damaged or moved are noticed."""

    hides = False

    def __init__(self) -> None:
        self._new = blake2b(digest_size=_SUM).copy  # a copy costs less than a new one, and every step pays it

    def close(self, place: str, body: bytes) -> bytes:
        """Return the body behind its checksum."""
        check = self._new()
        check.update(b"%b\0%b" % (place.encode("utf-8", "surrogatepass"), body))
        return b"\x01%b%b" % (check.digest(), body)

    def open(self, place: str, sealed: bytes) -> bytes:
        """Return the body, if its checksum is that of this body at this place."""
        if type(sealed) is not bytes or sealed[:1] != PLAIN:
            refuse(place, sealed)
        body = sealed[_HEAD:]
        check = self._new()
        check.update(b"%b\0%b" % (place.encode("utf-8", "surrogatepass"), body))
        if check.digest() != sealed[1:_HEAD]:
            raise CorruptDataError(
                f"What is stored at {place} is damaged: its checksum does not fit. It was changed or cut off on disk, "
                f"or copied here from another row. Nothing of it was used."
            )
        return body

    def fingerprint(self, body: bytes) -> bytes:
        """Return a hash of the body."""
        return blake2b(body, digest_size=32).digest()

    def correlation(self, key: str) -> str:
        """Return the key: whoever reads it can read the bodies as well."""
        return key

    def correlations(self, key: str) -> tuple[str, ...]:
        """Return the key."""
        return (key,)

    def is_current(self, sealed: bytes) -> bool:
        """Whether it is plain, with a checksum."""
        return sealed.removeprefix(REFERENCE).startswith(PLAIN)


def place_of(table: str, *parts: object) -> str:
    """Return the identity of a row as text: its table and the parts of its key, as in "journal/thread-7/task-1/3".

    Different keys give different places, whatever text is in them: a part that holds "/" or "%" is escaped as in URLs.
    The parts of one table always have the same types in the same order, so 1 and "1" never meet.
    """
    place = _JOINED[len(parts)] % (table, *parts) if len(parts) < len(_JOINED) else "%"
    if "%" in place or place.count("/") != len(parts):
        return "/".join(str(part).replace("%", "%25").replace("/", "%2F") for part in (table, *parts))
    return place


def close_reference(seal: Seal, place: str, reference: bytes) -> bytes:
    """Return what is stored at a place whose body lies elsewhere."""
    return REFERENCE + seal.close(_aside(place), reference)


def open_reference(seal: Seal, place: str, sealed: bytes) -> bytes:
    """Return the reference that `close_reference` stored."""
    if not is_reference(sealed):
        refuse(place, sealed)
    return seal.open(_aside(place), sealed[1:])


def is_reference(sealed: bytes) -> bool:
    """Whether the body lies elsewhere."""
    return type(sealed) is bytes and sealed[:1] == REFERENCE


def _aside(place: str) -> str:
    # Without a place of its own, a reference whose first byte was taken away would open as if it were the body.
    return f"{place}#reference"


def refuse(place: str, sealed: object) -> NoReturn:
    """Raise what is to be said of something that no seal here has closed."""
    if not isinstance(sealed, bytes):
        raise CorruptDataError(f"What is stored at {place} is damaged: there is a {type(sealed).__name__}, not bytes.")
    if not sealed:
        raise CorruptDataError(f"What is stored at {place} is damaged: there are no bytes.")
    if sealed[:1] == ENCRYPTED:
        raise UnknownKeyError(
            f"What is stored at {place} is encrypted, and this store was opened without keys. "
            f"Open it with Store.open(…, encryption=Encryption(…)) and the key that it was written with."
        )
    raise CorruptDataError(
        f"What is stored at {place} is of kind {sealed[0]}, which this release of Bide does not know: "
        f"it is damaged, or was written by a newer release."
    )
