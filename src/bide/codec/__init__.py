"""Values to bytes and back: data only, typed, versioned. Its parts:

    registry   which classes may be stored, and under which names (`annotations` finds them in a schema)
    encode     values to bytes (`paths` says where a refused one sits)
    decode     bytes to values
    shapes     how instances of registered classes are taken apart and put together, with `enums`, `models`,
               `subclasses`; `chat`, `scalars` and `containers` are the types that need no registration
    wire       the bytes

Other layers use the names exported here.
"""

from bide.codec.annotations import types_in
from bide.codec.codec import Codec
from bide.codec.registry import Registry, checkpointable

__all__ = ["Codec", "Registry", "checkpointable", "types_in"]
