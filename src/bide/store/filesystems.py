"""Which filesystem a path is on, and whether a SQLite store can live there.

SQLite in WAL mode needs two things that a network filesystem does not give between machines: locks that everybody
honours, and memory that everybody shares. It does not notice; the database is damaged one day. So it is refused when it
is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from bide.errors import StoreUnavailableError

MOUNTS = "/proc/self/mountinfo"

NETWORK = re.compile(
    "nfs4?|cifs|smb3|smbfs|afs|afpfs|auristorfs|beegfs|ceph|coda|davfs|glusterfs|gpfs|lustre|orangefs|panfs|pvfs2|webdav"
)
SHARED_FOLDER = re.compile("vboxsf|vmhgfs|prl_fs|drvfs|osxfs|grpcfuse")
"""What a virtual machine shows of its host. Host and guest do not see each other's locks."""
FUSE = re.compile(r"fuse(\..*)?")
LOCAL_FUSE = re.compile(
    r"fuse\.(bindfs|cryfs|encfs|fuse2fs|fuse-overlayfs|gocryptfs|mergerfs|ntfs-3g|overlayfs|securefs|unionfs|veracrypt)"
)
"""FUSE can be anything, and most of what comes by it is far away: only what is known to be a local disk is let in."""


class Mount(NamedTuple):
    """One filesystem in the tree of all."""

    number: int
    parent: int
    place: str
    kind: str
    options: str


def check_local(path: str) -> None:
    """Refuse a path, given without links, on a filesystem that would damage the database."""
    mounts = read_mounts()
    # The file itself may be a mount of its own, as containers do it; its log is made beside it, in the folder.
    for place in (path, os.path.dirname(path)):
        mount = mount_of(place, mounts)
        why = None if mount is None else objection(mount)
        if mount is not None and why is not None:
            raise StoreUnavailableError(
                f"{path!r} is on a {mount.kind!r} filesystem (mounted at {mount.place!r}), {why}. There SQLite's locks "
                f"and its shared memory do not work between machines, and the database would be damaged. Nothing was "
                f"made. Choose a path on a local disk, or a PostgreSQL store: Store.open('postgresql://…')."
            )


def objection(mount: Mount) -> str | None:
    """Say what is wrong with a filesystem, or None."""
    if NETWORK.fullmatch(mount.kind):
        return "which is a network filesystem"
    if SHARED_FOLDER.fullmatch(mount.kind) or (mount.kind == "9p" and not _is_sandbox(mount)):
        return "which is a folder of the host, shown to a virtual machine"
    if FUSE.fullmatch(mount.kind) and not LOCAL_FUSE.fullmatch(mount.kind):
        return "which a program provides by FUSE and is not known to be a local disk"
    if "remote" in mount.options.split(","):
        return "which this system calls a remote one"
    return None


def _is_sandbox(mount: Mount) -> bool:
    """gVisor shows its container's own disk as 9p, over a file descriptor, and keeps locks and memory itself."""
    options = re.split("[,;]", mount.options)
    return "trans=fd" in options and not any(option.startswith("aname=drvfs") for option in options)


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """Find the filesystem that a path is on, by walking down the tree as the system does.

    Not simply the longest place that fits: a mount on a parent folder hides what was mounted below it before.
    """
    numbers = {mount.number for mount in mounts}
    found = None
    below = [mount for mount in mounts if mount.parent not in numbers or mount.parent == mount.number]
    while covering := [mount for mount in below if _covers(mount.place, path)]:
        found = min(covering, key=lambda mount: len(mount.place))
        below = [mount for mount in mounts if mount.parent == found.number != mount.number]
    return found


def _covers(place: str, path: str) -> bool:
    return place == "/" or path == place or path.startswith(place + "/")


def read_mounts() -> list[Mount]:
    """Ask the system what is mounted; empty where it does not say."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as table:
            return parse_mountinfo(table.read())
    except OSError:
        return parse_mount_program(_ask_mount_program())


def parse_mountinfo(text: str) -> list[Mount]:
    """Read Linux's table: number, parent, device, root, place, options, tags …, a dash, kind, source, options."""
    mounts = []
    for line in text.splitlines():
        mounted, dash, filesystem = line.partition(" - ")
        fields, rest = mounted.split(" "), filesystem.split(" ")
        if dash and len(fields) >= 6:
            options = rest[2] if len(rest) > 2 else ""
            mounts.append(Mount(int(fields[0]), int(fields[1]), _plain(fields[4]), rest[0], options))
    return mounts


def _plain(place: str) -> str:
    """Undo the octal numbers that stand for blanks and the like; they count bytes, not letters."""
    raw = place.encode("utf-8", "surrogateescape")
    raw = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), raw)
    return raw.decode("utf-8", "surrogateescape")


def _ask_mount_program() -> str:
    import subprocess  # only systems without /proc need it, and it would slow down every `import bide`

    try:
        told = subprocess.run(["/sbin/mount"], capture_output=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(told.stdout)


def parse_mount_program(text: str) -> list[Mount]:
    """Read what `mount` prints on macOS and BSD: `source on place (kind, local, …)`. What is not local is remote.

    There is no tree in it, so one is made: each hangs below the longest place that holds it.
    """
    mounts: list[Mount] = []
    found = [re.fullmatch(r".* on (/.*) \((\w+)(.*)\)", line) for line in text.splitlines()]
    lines = sorted(((match[1], match[2], match[3]) for match in found if match), key=lambda line: len(line[0]))
    for number, (place, kind, more) in enumerate(lines, 1):
        above = [mount.number for mount in mounts if _covers(mount.place, place)]
        options = "" if ", local" in more else "remote"
        mounts.append(Mount(number, above[-1] if above else 0, place, kind, options))
    return mounts
