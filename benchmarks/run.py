"""Measure Bide beside its rivals, in one run: `python3 dev.py bench`. See docs/benchmarks.md."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
