"""The runtime: one application object over one store, and workers that drive what is ready.

app          Bide: start, wake, deliver, cancel, get, list, follow
registered   the graphs that an application knows       worker      claims and drives
views        what is shown of threads, runs and waits   tending     looks at the clock
explain      why a fact did or did not wake somebody    following   a thread's log, live
"""

from __future__ import annotations

from bide.runtime.app import Bide
from bide.runtime.worker import Worker

__all__ = ["Bide", "Worker"]
