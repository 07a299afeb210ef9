"""The codec: any storable value to bytes and back, equal and of the same types."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from bide.codec.decode import read
from bide.codec.encode import CanonicalWriter, CarefulWriter, FastWriter
from bide.codec.paths import path_of, path_of_cycle
from bide.codec.refusal import NestedTooDeep, Refused
from bide.codec.registry import Registry
from bide.codec.wire import FORMAT_VERSION, MAX_PLAIN_DEPTH, MAX_TYPED_DEPTH, array_header
from bide.errors import CodecError, CorruptDataError, UnknownTypeError, UnstorableValueError

_WHAT_TO_DO = (
    "Make it a dataclass in the state's schema, register its class with @checkpointable('a-name'), or keep it out of "
    "state with UntrackedValue."
)

_LONGEST_MESSAGE = 1000


class Codec:
    """Turns values into bytes and back.

    Plain data, the usual types of the standard library and chat messages always work; dataclasses, pydantic models,
    Enums and NamedTuples work once their class is registered. What would not come back equal is refused when it is
    written. Reading builds registered classes from their fields and does nothing else.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry if registry is not None else Registry()

    def encode(self, value: object, path: str = "value") -> bytes:
        """Return the value as bytes; `path` is what error messages call it."""
        try:
            return FORMAT_VERSION + FastWriter(self.registry).write(value)
        except (TypeError, NestedTooDeep, Refused):
            return FORMAT_VERSION + self._write_carefully(value, path)

    def decode(self, data: bytes, path: str = "value") -> object:
        """Return the value that was encoded; `path` is what error messages call it."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise CorruptDataError(f"Cannot read {path}: a {type(data).__name__} was given, not bytes.")
        if data[:1] != FORMAT_VERSION:
            raise CorruptDataError(f"Cannot read {path}: {_why_not(bytes(data[:1]))}.")
        try:
            return read(bytes(data[1:]), self.registry)
        except CodecError as error:
            raise _at(path, error) from error.__cause__
        except MemoryError:  # says something about this machine, and nothing about the bytes
            raise
        except Exception as error:  # damaged bytes fail in a hundred ways, and all of them mean this
            raise CorruptDataError(f"Cannot read {path}: the bytes are damaged ({_cut(repr(error))}).") from error

    def decode_list(self, elements: Sequence[bytes], path: str = "value") -> list[Any]:
        """Return the values of elements that were encoded one by one; far quicker than decoding each."""
        if any(element[:1] != FORMAT_VERSION for element in elements):
            return [self.decode(element, f"{path}[{index}]") for index, element in enumerate(elements)]
        joined = array_header(len(elements)) + b"".join([element[1:] for element in elements])
        values = self.decode(FORMAT_VERSION + joined, path)
        if type(values) is not list or len(values) != len(elements):
            raise CorruptDataError(f"Cannot read {path}: its elements do not end where they should.")
        return values

    def digest(self, value: object) -> str:
        """Return a short fingerprint that is the same for equal values.

        The order of dicts and sets does not count. What cannot be stored counts by its type only.
        """
        try:
            body = CanonicalWriter(self.registry).write(value)
        except (NestedTooDeep, RecursionError):
            body = type(value).__qualname__.encode("utf-8", "surrogatepass")
        return blake2b(body, digest_size=16).hexdigest()

    def _write_carefully(self, value: object, path: str) -> bytes:
        try:
            return CarefulWriter(self.registry).write(value)
        except Refused as refused:
            raise _refusal(_place(refused.value, value, path), refused.reason) from None
        except (NestedTooDeep, RecursionError):
            raise _too_deep(value, path) from None
        except Exception as error:  # a property or an overridden method of some value raised
            raise _refusal(path, f"taking it apart failed with {error!r}") from error


def _place(wanted: object, value: object, path: str) -> str:
    try:
        return path_of(wanted, value, path)
    except Exception:  # noqa: BLE001 - looking for the place calls reprs and properties; the refusal matters more
        return path


def _refusal(path: str, reason: str) -> UnstorableValueError:
    return UnstorableValueError(f"Cannot store {path}: {reason}. {_WHAT_TO_DO}", path=path)


def _too_deep(value: object, path: str) -> UnstorableValueError:
    cycle = path_of_cycle(value, path)
    if cycle is not None:
        return UnstorableValueError(
            f"Cannot store {cycle}: it contains itself. Refer to it by an id instead of nesting it.", path=cycle
        )
    return UnstorableValueError(
        f"Cannot store {path}: it nests too deep, with more than {MAX_PLAIN_DEPTH} lists and dicts or more than "
        f"{MAX_TYPED_DEPTH} typed values within each other, or too many of both. Make it flatter, for example a list "
        f"whose entries refer to each other by id.",
        path=path,
    )


def _why_not(version: bytes) -> str:
    if not version:
        return "there are no bytes"
    return f"its format is version {version[0]}, and this release of Bide reads {FORMAT_VERSION[0]}"


def _at(path: str, error: CodecError) -> CodecError:
    """Return the same error with the path in its message."""
    kind = next(cls for cls in (UnknownTypeError, CorruptDataError, CodecError) if isinstance(error, cls))
    return kind(f"Cannot read {path}: {_cut(str(error))}.")


def _cut(message: str) -> str:
    """Return a message that names something of the stored bytes, which may be a name of a million letters."""
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
