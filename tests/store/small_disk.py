"""A disk of our own that is small enough to be filled, for every user.

Root, and whoever may make namespaces, mounts a small tmpfs where nobody else sees it. There a write fails as on any
full disk, for the database, its log and its index alike. For others the system refuses to let files grow.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

PROGRAM = Path(__file__).parent / "programs" / "full_disk.py"
SIZE = 4 * 1024 * 1024
PAGE = 4096


@cache
def own_mounts() -> Sequence[str] | None:
    """The words that let a program have mounts of its own, or None if this user may not."""
    for words in (["unshare", "--mount"], ["unshare", "--mount", "--user", "--map-root-user"]):
        if shutil.which("unshare") and _works([*words, "mount", "-t", "tmpfs", "none", "/mnt"]):
            return words
    return None


def _works(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def run_on_small_disk(kind: str, folder: Path, *arguments: Any) -> Any:
    """Run the program on a small disk that is at `folder`, and return what it found."""
    words = own_mounts() if kind == "tmpfs" else None
    kind = "limit" if words is None else kind
    command = [*(words or []), sys.executable, str(PROGRAM), kind, str(folder), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROGRAM.parents[3]), *filter(None, sys.path)])}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


class SmallDisk(Protocol):
    """A disk, as the program sees it."""

    def fill(self, pages: int, growing: Path | None = None) -> None:
        """Leave room for so many pages, for any file or, where it matters, for the one that grows now."""

    def free(self) -> None:
        """Make room again."""


class Tmpfs:
    """A filesystem in memory, filled by a file that has no other use."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder)], check=True)
        self.folder = folder
        self.ballast = folder / "ballast"

    def fill(self, pages: int, growing: Path | None = None) -> None:
        room = os.statvfs(self.folder)
        with self.ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, max(1, (room.f_bavail - pages) * room.f_frsize))

    def free(self) -> None:
        self.ballast.unlink(missing_ok=True)


class Limit:
    """No file may be longer than the longest one is now, and some pages more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self, pages: int, growing: Path | None = None) -> None:
        files = [file for file in self.folder.rglob("*") if file.is_file()] if growing is None else [growing]
        longest = max((file.stat().st_size for file in files), default=0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (longest + pages * PAGE, self.before[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
