"""Values to bytes and back: with our codec, or with the serializer that the user gave.

packed   = length of the tag, the tag, the bytes        as LangGraph's serializers give them: a tag and bytes
packed   = 0, the bytes                                 our codec's, which nearly all are
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from bide.codec import Codec
from bide.errors import CorruptDataError, UnknownTypeError, UnstorableValueError
from bide.interop.langgraph.theirs import LangGraphRegistry

OURS = "bide"
SMALL = 256
"""Up to so many bytes a value travels in the checkpoint's own row."""

Packed = bytes | list[bytes]
"""A value as bytes; or a list, its elements each for itself, so that only what changed need be written."""


class CodecSerializer:
    """Our codec as a serializer of LangGraph: data only; nothing is imported or called when it is read."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        self.codec = Codec(LangGraphRegistry(types))

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the value as bytes, under our tag."""
        return OURS, self.write(obj, "value")

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value; what another serializer wrote is left to it."""
        tag, body = data
        return self.read(tag, body, "value")

    def write(self, value: object, path: str) -> bytes:
        """Return the value as bytes, or say which part of it cannot be stored, and what to do."""
        try:
            return self.codec.encode(value, path)
        except UnstorableValueError as refusal:
            raise _advised(refusal) from None

    def read(self, tag: str, body: bytes, path: str) -> Any:
        """Return the value that was written."""
        if tag != OURS:
            raise UnknownTypeError(
                f"Cannot read {path}: it was written by another serializer, as {tag!r}. Give the saver the one that "
                f"it was written with: BideSaver(…, serde=…)."
            )
        return self.codec.decode(body, path)


def _advised(refusal: UnstorableValueError) -> UnstorableValueError:
    """Say what to do about a value that cannot be stored: the schema of a LangGraph graph is not read here."""
    what, told_what_to_do, _ = str(refusal).partition(" Make it a dataclass")
    if not told_what_to_do:
        return refusal
    return UnstorableValueError(
        f"{what} Dataclasses, pydantic models, Enums and NamedTuples can be, once they have a name: "
        f"BideSaver(…, types=[Order, …]), or @checkpointable('a-name') above the class. For others, keep them out of "
        f"state, or give the saver LangGraph's own serializer: BideSaver(…, serde=JsonPlusSerializer()).",
        path=refusal.path,
    )


class Packer:
    """Packs and unpacks with one serializer."""

    __slots__ = ("_serde",)

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde

    def pack(self, value: object, path: str) -> bytes:
        """Return a value as bytes; `path` is what an error calls it."""
        if isinstance(self._serde, CodecSerializer):
            return b"\0" + self._serde.write(value, path)
        tag, body = self._serde.dumps_typed(value)
        if tag == OURS:
            return b"\0" + body
        name = tag.encode()
        return b"%c%b%b" % (len(name), name, body)

    def pack_parts(self, value: object, path: str) -> Packed:
        """Return a value as bytes, or a list that is not small as those of its elements."""
        if type(value) is not list:
            return self.pack(value, path)
        elements = [self.pack(element, f"{path}[{number}]") for number, element in enumerate(value)]
        return elements if sum(map(len, elements)) > SMALL else self.pack(value, path)

    def unpack(self, packed: Packed, path: str) -> Any:
        """Return the value that was packed."""
        if isinstance(packed, list):
            return [self.unpack(element, f"{path}[{number}]") for number, element in enumerate(packed)]
        if not packed:
            raise CorruptDataError(f"Cannot read {path}: there are no bytes.")
        end = 1 + packed[0]
        tag = packed[1:end].decode("utf-8", "replace") if packed[0] else OURS
        if isinstance(self._serde, CodecSerializer):
            return self._serde.read(tag, packed[end:], path)
        return self._serde.loads_typed((tag, packed[end:]))
