"""What a run is given to begin with, as bytes: an input, a Command, or nothing."""

from __future__ import annotations

from typing import Any

from bide.codec import Codec
from bide.errors import CorruptDataError
from bide.types import UNSET, Command


def write_given(codec: Codec, given: Any) -> bytes:
    """Write down what a run begins with; it may be stored for days before anybody reads it."""
    if not isinstance(given, Command):
        return codec.encode(["input", given], "input")
    resume = [] if given.resume is UNSET else [given.resume]
    return codec.encode(["command", given.update, list(given.targets), resume], "Command")


def read_given(codec: Codec, stored: bytes) -> Any:
    """Read what a run begins with."""
    said: Any = codec.decode(stored, "input")
    match said:
        case ["input", given]:
            return given
        case ["command", update, goto, [*resume]]:
            return Command(update=update, goto=goto, resume=resume[0] if resume else UNSET)
    raise CorruptDataError("What the run was started with cannot be read: it is neither an input nor a Command.")
