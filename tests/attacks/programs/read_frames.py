"""Read every hostile frame under watch and with little memory; print what came of it as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bide.codec import Codec
from bide.errors import CodecError
from bide.interop.langgraph.packing import CodecSerializer
from tests.attacks import trapped
from tests.attacks.corpus import FAMILIES, golden_frames
from tests.attacks.watch import Watch, alarms_of, limit_memory

FOR_THEIRS = ("names", "langgraph_names", "nested_extensions", "constructors", "containers")
MEMORY = 256 * 1024 * 1024
LONGEST_MESSAGE = 1_500


class Attack:
    """Reads frames, and keeps what came of them."""

    def __init__(self, watch: Watch, codec: Codec) -> None:
        self._watch = watch
        self._codec = codec
        self.outcomes: Counter[str] = Counter()
        self.violations: list[str] = []

    def read(self, frame: bytes) -> None:
        """Read one frame, and write down whatever must not be."""
        trapped.sprung.clear()
        outcome, wrong = self._outcome(frame)
        wrong += [f"alarm: {alarm}" for alarm in self._watch.alarms]
        wrong += [f"trap: {trap}" for trap in trapped.sprung]
        if self._watch.calls > 2_000 + 10 * len(frame):
            wrong.append(f"{self._watch.calls} calls for {len(frame)} bytes")
        self.outcomes[outcome] += 1
        self.violations += [f"{frame[:80].hex()} ({len(frame)} bytes): {what}" for what in wrong]

    def _outcome(self, frame: bytes) -> tuple[str, list[str]]:
        try:
            with self._watch.on():
                value = self._codec.decode(frame, "state['x']")
        except CodecError as error:
            return type(error).__name__, _wrong_with(str(error))
        except BaseException as error:  # noqa: BLE001 - anything else is what this looks for
            return "other", [f"{type(error).__name__}: {error}"[:300]]
        return "value", self._differences(value)

    def _differences(self, value: Any) -> list[str]:
        """What is wrong with a value that was read: it must be one that can be written, and comes back."""
        try:
            written = self._codec.encode(value)
        except CodecError:
            return []  # said when it is written, with a type
        was, comes_back = (self._codec.digest(one) for one in (value, self._codec.decode(written)))
        trapped.sprung.clear()  # writing may look at attributes
        return [] if comes_back == was else [f"came back as another value: {value!r}"[:300]]


def _wrong_with(message: str) -> list[str]:
    if "state['x']" not in message:
        return [f"does not say where: {message[:300]}"]
    return [f"a message of {len(message)} letters"] if len(message) > LONGEST_MESSAGE else []


def attacked(watch: Watch, codec: Codec, frames: Any) -> dict[str, Any]:
    """Read all frames of a family."""
    attack = Attack(watch, codec)
    for frame in frames:
        attack.read(frame)
    return {"outcomes": attack.outcomes, "violations": attack.violations[:20]}


def noise(watch: Watch, codec: Codec) -> dict[str, Any]:
    """Read whatever Hypothesis thinks of."""
    attack = Attack(watch, codec)

    @settings(max_examples=3_000, deadline=None, database=None, derandomize=True)
    @given(
        st.binary(max_size=200), st.sampled_from([b"", b"\x01", b"\x01\x91", b"\x01\xc7\x20\x04", b"\x01\xc7\x20\x06"])
    )
    def read(data: bytes, start: bytes) -> None:
        attack.read(start + data)

    read()
    return {"outcomes": attack.outcomes, "violations": attack.violations[:20]}


def control(watch: Watch) -> dict[str, list[str]]:
    """What the watch says of things that must never happen."""
    return {
        "import": alarms_of(watch, lambda: __import__("this_module_is_not_there")),
        "eval": alarms_of(watch, lambda: eval("1 + 1")),
        "open": alarms_of(watch, lambda: open("/dev/null", encoding="ascii").close()),
        "process": alarms_of(watch, lambda: __import__("os").posix_spawn("/bin/true", ["true"], {})),
    }


def main() -> None:
    """Warm up, limit the memory, and attack."""
    watch, codec = Watch(), trapped.trapped_codec()
    theirs = CodecSerializer(trapped.CLASSES).codec
    for golden in golden_frames():
        codec.decode(golden)  # what is loaded on first use, such as time zones, is loaded now
    frames = {name: list(family()) for name, family in FAMILIES.items()}
    limit_memory(MEMORY)
    report: dict[str, Any] = {name: attacked(watch, codec, found) for name, found in frames.items()}
    report["noise"] = noise(watch, codec)
    report["langgraph"] = attacked(watch, theirs, [frame for name in FOR_THEIRS for frame in frames[name]])
    report["control"] = control(watch)
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
