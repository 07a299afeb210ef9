"""What `import <module>` adds to the start of Python: both are started in turn, the best bare start is taken off."""

from __future__ import annotations

import os
import subprocess
import sys

from case import Took, report, settings, timing, took

# Told not to write compiled files, Python would compile every module anew at each start: nobody's users do that.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def start(program: str) -> Took:
    """Start Python with a program and wait for its end; the processor's time is that of the child."""
    before = os.times()
    wall = took(lambda: subprocess.run([sys.executable, "-c", program], check=True, env=ENVIRON)).wall
    after = os.times()
    return Took(wall, after.children_user + after.children_system - before.children_user - before.children_system)


def main() -> None:
    asked = settings()
    program = f"import {asked.module}"
    start(program)  # compiles what was never imported before
    starts = [(start("pass"), start(program)) for _ in range(asked.amount(3, 1))]
    wall, cpu = min(bare.wall for bare, _ in starts), min(bare.cpu for bare, _ in starts)
    samples = [Took(full.wall - wall, full.cpu - cpu) for _, full in starts]
    report(**timing("import_time", "ms", samples))


if __name__ == "__main__":
    main()
