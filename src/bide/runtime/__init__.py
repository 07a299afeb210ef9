"""The runtime: one application object over one store, and workers that drive what is ready.

app          Bide: start, wake, deliver, cancel, get, list, follow; `inbox` and `scheduling` are parts of it
registered   the graphs that an application knows       starts      what may be said about a run, read at the door
worker       claims runs; `driving` drives one          tending     looks at the clock
views        what is shown of threads, runs and waits   reading     rows turned into that; `threads`, `words`
explaining   why a fact did or did not wake somebody    following   a thread's log, live
"""

from __future__ import annotations

from bide.runtime.app import Bide
from bide.runtime.worker import Worker

__all__ = ["Bide", "Worker"]
