"""Pages that speak to a server: what they tell a reader to serve is served, beside the folder in which they run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ADDRESS = "http://127.0.0.1:2024"
"""Where a server is that was started without another word; in tests it is at any port."""
SERVE = re.compile(r"^bide serve (?P<file>\w+\.py):(?P<name>\w+)", re.MULTILINE)
SECONDS = 60


@contextmanager
def served(page: str, source: str, folder: Path) -> Iterator[str]:
    """Do what the page says: save this source under the name that it gives, and serve it; give the address."""
    told = SERVE.search(page)
    assert told is not None, "the page speaks to a server, and does not say how to start one"
    place = folder / "served"
    place.mkdir()
    (place / told["file"]).write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "bide.cli", "serve", f"{told['file']}:{told['name']}", "--port", "0", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BIDE_")}
    log = place / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            while line and not line.startswith('{"serving"'):
                line = process.stdout.readline()
            assert line, log.read_text()
            yield str(json.loads(line)["serving"]["url"])
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)
