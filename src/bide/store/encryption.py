"""AES-256-GCM round every stored body: `Store.open(url, encryption=Encryption(keys={"2026-a": key}))`.

    sealed = kind (2), length of the key's id, the id, 4 bytes of key check, 16 bytes of salt, 12 bytes of nonce,
             the encrypted body, 16 bytes of tag

The tag covers the body, everything before the salt, and the row's place: its table and its key. So no row can be put
in the place of another, nor be made to look as if another key had written it.

One key must not encrypt more than 2³² messages with random nonces. So no row is encrypted with the key itself: every
`Encryption` draws a salt, derives a key from it, and draws another salt after 65,536 rows.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

from bide.errors import CorruptDataError, EncryptionError, UnknownKeyError
from bide.store.keys import CHECK_BYTES, DerivedKeys, Key, derived_keys, keys_in, new_key
from bide.store.seal import ENCRYPTED, PLAIN, REFERENCE, Checksums, refuse

_SALT = 16
_NONCE = 12
_TAG = 16
_HASH = 16
_ROWS_PER_SALT = 1 << 16
_SALTS_KEPT = 4096


class Encryption:
    """Encrypts everything that threads, waits, items and caches hold, and refuses what was not encrypted so.

    `keys` are the keys by their ids, each 32 bytes or their text in base64 or hexadecimal. `current` names the one
    that encrypts; the others still decrypt. With `required=False` rows that were written without encryption are read
    too: for the time in which a store is being encrypted, and no longer.
    """

    hides = True

    def __init__(self, keys: Mapping[str, Key], current: str | None = None, *, required: bool = True) -> None:
        self._cipher, self._invalid = _aes_gcm()
        self._keys = derived_keys(keys)
        self._current = self._keys[_current_id(self._keys, current)]
        self._head = ENCRYPTED + bytes([len(self._current.id)]) + self._current.id + self._current.check
        self._plain = None if required else Checksums()
        self._opening = lru_cache(_SALTS_KEPT)(self._cipher_for)
        self._rows_left = 0
        self._closing: tuple[bytes, Any] = (b"", None)

    @staticmethod
    def generate_key() -> str:
        """Return a new random key, as the base64 text of its 32 bytes. Keep it where passwords are kept."""
        return new_key()

    @classmethod
    def from_env(cls, variable: str = "BIDE_ENCRYPTION_KEYS", *, required: bool = True) -> Encryption:
        """Read the keys from an environment variable: "2026-b:<key>,2026-a:<older key>". The first one encrypts."""
        keys = keys_in(os.environ.get(variable, ""), variable)
        return cls(keys, next(iter(keys)), required=required)

    @property
    def required(self) -> bool:
        """Whether rows that are not encrypted are refused."""
        return self._plain is None

    def close(self, place: str, body: bytes) -> bytes:
        """Return the body encrypted for this place."""
        if self._rows_left <= 0:
            self._draw_salt()
        self._rows_left -= 1
        start, cipher = self._closing
        nonce = os.urandom(_NONCE)
        return b"%b%b%b" % (start, nonce, cipher.encrypt(nonce, body, _bound_to(self._head, place)))

    def open(self, place: str, sealed: bytes) -> bytes:
        """Return the body, if it was encrypted for this place with a key that is known here."""
        if type(sealed) is not bytes or sealed[:1] != ENCRYPTED:
            return self._open_plain(place, sealed)
        salt_at = 2 + sealed[1] + CHECK_BYTES if len(sealed) > 1 else 2
        nonce_at = salt_at + _SALT
        if len(sealed) < nonce_at + _NONCE + _TAG:
            raise CorruptDataError(f"What is stored at {place} is damaged: it was cut off. Nothing of it was used.")
        head = sealed[:salt_at]
        cipher = self._opening(self._key(place, head), sealed[salt_at:nonce_at])
        body_at = nonce_at + _NONCE
        try:
            body: bytes = cipher.decrypt(sealed[nonce_at:body_at], sealed[body_at:], _bound_to(head, place))
        except self._invalid:
            raise CorruptDataError(
                f"What is stored at {place} does not open with its key {head[2:-CHECK_BYTES].decode()!r}: it was "
                f"changed or cut off on disk, or copied here from another row. Nothing of it was used."
            ) from None
        return body

    def fingerprint(self, body: bytes) -> bytes:
        """Return a hash that only who has the current key can compare with a guess."""
        return hmac.digest(self._current.fingerprints, body, "sha256")

    def correlation(self, key: str) -> str:
        """Return a hash that only who has the current key can make."""
        return _hashed(self._current, key)

    def correlations(self, key: str) -> tuple[str, ...]:
        """Return the hashes under all keys, the current one last; before them the key itself, where plain rows are."""
        older = [_hashed(known, key) for known in self._keys.values() if known is not self._current]
        plain = [] if self._plain is None else [key]
        return (*plain, *older, self.correlation(key))

    def is_current(self, sealed: bytes) -> bool:
        """Whether it is encrypted with the current key."""
        return sealed.removeprefix(REFERENCE).startswith(self._head)

    def _draw_salt(self) -> None:
        # Threads may do this at the same time: one salt more does no harm, and a few rows too many under one neither.
        salt = os.urandom(_SALT)
        self._closing = self._head + salt, self._cipher_for(self._current, salt)
        self._rows_left = _ROWS_PER_SALT

    def _cipher_for(self, key: DerivedKeys, salt: bytes) -> Any:
        return self._cipher(key.for_rows(salt))

    def _key(self, place: str, head: bytes) -> DerivedKeys:
        key_id, check = head[2:-CHECK_BYTES], head[-CHECK_BYTES:]
        key = self._keys.get(key_id)
        name = key_id.decode("ascii", "backslashreplace")
        if key is None:
            raise UnknownKeyError(
                f"What is stored at {place} was encrypted with the key {name!r}, and the keys given are "
                f"{', '.join(map(repr, self._names()))}. Give that key too: Encryption(keys={{{name!r}: …, …}}). "
                f"If there never was a key of this name, the row is damaged.",
                key_id=name,
            )
        if not hmac.compare_digest(key.check, check):
            raise UnknownKeyError(
                f"What is stored at {place} was encrypted with a key {name!r}, but not with the one that was given "
                f"under this name. Give the key that it was written with, and new keys new names. If there never was "
                f"another key of this name, the row is damaged.",
                key_id=name,
            )
        return key

    def _open_plain(self, place: str, sealed: bytes) -> bytes:
        if self._plain is not None:
            return self._plain.open(place, sealed)
        if type(sealed) is bytes and sealed[:1] == PLAIN:
            _refuse_plain(place)
        refuse(place, sealed)

    def _names(self) -> list[str]:
        return sorted(key_id.decode() for key_id in self._keys)

    def __repr__(self) -> str:
        names, current = self._names(), self._current.id.decode()
        return f"Encryption(keys={names}, current={current!r}, required={self.required})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("An Encryption holds keys, so it is neither copied nor written anywhere.")


def _hashed(known: DerivedKeys, key: str) -> str:
    return hmac.digest(known.correlations, key.encode("utf-8", "surrogatepass"), "sha256")[:_HASH].hex()


def _bound_to(head: bytes, place: str) -> bytes:
    return head + place.encode("utf-8", "surrogatepass")


def _refuse_plain(place: str) -> NoReturn:
    raise CorruptDataError(
        f"What is stored at {place} is not encrypted, and this store takes only what is: somebody may have put it "
        f"there. If it was written before the store was encrypted, open the store with Encryption(…, required=False) "
        f"until all of it has been written anew."
    )


def _current_id(keys: Mapping[bytes, DerivedKeys], current: str | None) -> bytes:
    if current is None and len(keys) == 1:
        return next(iter(keys))
    names = ", ".join(repr(key_id.decode()) for key_id in keys)
    if current is None:
        raise EncryptionError(f"There are several keys ({names}): say which one encrypts, with current=….")
    found = current.encode("utf-8", "surrogatepass") if isinstance(current, str) else b""
    if found not in keys:
        raise EncryptionError(f"current={current!r} is none of the keys that were given: {names}.")
    return found


def _aes_gcm() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise EncryptionError(
            "Encryption needs the package 'cryptography', which is not installed: pip install \"bide[crypto]\""
        ) from error
    return AESGCM, InvalidTag
