"""How much is tried: as much as fits into every run of the tests, or so many times more (`BIDE_FAULTS=20`)."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("BIDE_FAULTS", "1"))
TIMEOUT = 300 * TIMES
