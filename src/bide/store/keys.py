"""Keys as people write them down, and what is derived from them. Nothing here ever shows a key."""

from __future__ import annotations

import binascii
import hmac
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping

from bide.errors import EncryptionError

KEY_BYTES = 32
CHECK_BYTES = 4

Key = bytes | str
"""32 bytes, or their text in base64 or hexadecimal."""


class DerivedKeys:
    """What one key is used for: each use has a key of its own, so that none tells anything about another."""

    __slots__ = ("_rows", "check", "correlations", "fingerprints", "id")

    def __init__(self, key_id: str, key: bytes) -> None:
        self.id = key_id.encode()
        self.check = derive(key, b"bide: key check")[:CHECK_BYTES]
        self.fingerprints = derive(key, b"bide: fingerprints")
        self.correlations = derive(key, b"bide: correlations")
        self._rows = derive(key, b"bide: rows")

    def for_rows(self, salt: bytes) -> bytes:
        """Return the key that encrypts the rows with this salt."""
        return derive(self._rows, salt)

    def __repr__(self) -> str:
        return f"DerivedKeys({self.id.decode()!r})"


def derive(key: bytes, purpose: bytes) -> bytes:
    """Return a key that only who has `key` can make, and that does not lead back to it (HMAC-SHA256)."""
    return hmac.digest(key, purpose, "sha256")


def new_key() -> str:
    """Return a new random key as base64."""
    return b64encode(os.urandom(KEY_BYTES)).decode()


def derived_keys(keys: Mapping[str, Key]) -> dict[bytes, DerivedKeys]:
    """Read the keys, by the bytes of their ids."""
    if not isinstance(keys, Mapping) or not keys:
        raise EncryptionError(
            "Encryption needs keys by their ids: keys={'2026-a': key}. Encryption.generate_key() makes a key."
        )
    derived = {}
    for key_id, key in keys.items():
        _check_id(key_id)
        derived[key_id.encode()] = DerivedKeys(key_id, _key_bytes(key_id, key))
    return derived


def keys_in(text: str, variable: str) -> dict[str, Key]:
    """Read "id:key, id:key", as an environment variable holds it."""
    keys: dict[str, Key] = {}
    for number, entry in enumerate(filter(None, map(str.strip, text.split(","))), start=1):
        key_id, colon, key = entry.partition(":")
        if not colon or key_id.strip() in keys:
            # The entry itself may be a key without an id: it must not be shown.
            problem = "has no id" if not colon else "has the same id as one before it"
            raise EncryptionError(
                f"Entry {number} of {variable} {problem}. Write {variable}='2026-b:<key>,2026-a:<older key>': "
                f"the first one encrypts, all of them decrypt."
            )
        keys[key_id.strip()] = key.strip()
    if not keys:
        raise EncryptionError(
            f"{variable} is not set, or is empty: there is no key to encrypt with. Write {variable}='2026-a:<key>', "
            f"with a key that Encryption.generate_key() made."
        )
    return keys


def _check_id(key_id: object) -> None:
    if not isinstance(key_id, str) or not key_id.isascii() or not key_id.isprintable() or not 1 <= len(key_id) <= 64:
        raise EncryptionError(
            f"The id of a key is 1 to 64 printable ASCII characters, such as '2026-a'; this one is a "
            f"{type(key_id).__name__}{' of ' + str(len(key_id)) if isinstance(key_id, str) else ''}. Ids are stored "
            f"beside what they encrypt, so they must not be secret."
        )


def _key_bytes(key_id: str, key: object) -> bytes:
    raw = bytes(key) if isinstance(key, bytes | bytearray) else _decoded(key) if isinstance(key, str) else None
    if raw is None or len(raw) != KEY_BYTES:
        found = f"{len(raw)} bytes" if raw is not None else f"a {type(key).__name__} that is neither"
        raise EncryptionError(
            f"The key {key_id!r} must be {KEY_BYTES} bytes, or their text in base64 or hexadecimal; it is {found}. "
            f"Encryption.generate_key() makes one. A password is not a key."
        )
    return raw


def _decoded(text: str) -> bytes | None:
    text = text.strip()
    try:
        if len(text) == 2 * KEY_BYTES:
            return bytes.fromhex(text)
        plain = text.replace("-", "+").replace("_", "/")
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None  # and nothing of the error, whose message may show the key
