"""Read frames in a process that has not loaded LangChain; print what was imported for them."""

from __future__ import annotations

import json
import sys

from bide.codec import Codec
from tests.attacks.frames import ext, frame, packed
from tests.attacks.watch import Watch, alarms_of


def main() -> None:
    """Read what does not need LangChain, then what does."""
    codec, watch = Codec(), Watch()
    others = [
        frame(ext(6, packed([family, kind, {"content": "x"}, [], None, None])))
        for family in ("bide", "langgraph", "os")
        for kind in ("human", "os.system", "langchain_core.messages")
    ]
    others.append(frame(ext(6, packed(["langchain", "os.system", {}, [], None, None]))))
    before = [alarm for other in others for alarm in alarms_of(watch, lambda data=other: codec.decode(data))]
    message = frame(ext(6, packed(["langchain", "human", {"content": "x"}, [], None, None])))
    unloaded = "langchain_core" not in sys.modules
    during = [alarm for alarm in alarms_of(watch, lambda: codec.decode(message)) if "langchain_core" in alarm]
    json.dump({"other frames": before, "unloaded": unloaded, "a message": len(during)}, sys.stdout)


if __name__ == "__main__":
    main()
