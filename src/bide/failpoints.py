"""Places where a test may kill the process, to prove that nothing is lost there.

A failpoint stands at every write boundary of the store. Off, it costs one comparison. Armed by environment:

    BIDE_FAILPOINT="commit:committed"      die by SIGKILL at the first visit of that point
    BIDE_FAILPOINT="commit:committed@3"    … at the third visit
    BIDE_FAILPOINT_TRACE="trace.txt"       do not die; append the name of every point that is passed
"""

from __future__ import annotations

import os
import signal

_ARMED = os.environ.get("BIDE_FAILPOINT", "")
_TRACE = os.environ.get("BIDE_FAILPOINT_TRACE", "")
_visits: dict[str, int] = {}

ON = bool(_ARMED or _TRACE)
"""Whether any failpoint is armed; hot paths look at this first."""


def failpoint(name: str) -> None:
    """Die here if the environment says so."""
    if not ON:
        return
    visit = _visits[name] = _visits.get(name, 0) + 1
    if _TRACE:
        with open(_TRACE, "a", encoding="utf-8") as trace:
            trace.write(f"{name}@{visit}\n")
    if _ARMED in (f"{name}@{visit}", name):
        os.kill(os.getpid(), signal.SIGKILL)
