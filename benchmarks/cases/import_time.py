"""What `import <module>` adds to the start of Python: both are started in turn, and the best bare start is taken off."""

from __future__ import annotations

import subprocess
import sys

from case import metric, report, settings, took


def start(program: str) -> float:
    return took(lambda: subprocess.run([sys.executable, "-c", program], check=True)).wall


def main() -> None:
    asked = settings()
    program = f"import {asked.module}"
    start(program)  # compiles what was never imported before
    starts = [(start("pass"), start(program)) for _ in range(asked.amount(3, 1))]
    bare = min(without for without, _ in starts)
    report(import_time=metric("ms", [(full - bare) * 1000 for _, full in starts]))


if __name__ == "__main__":
    main()
