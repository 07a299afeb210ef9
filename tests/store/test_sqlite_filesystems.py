"""Which places a SQLite store refuses: those where its locks are not honoured by everybody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bide.store.filesystems
from bide import Store
from bide.errors import StoreUnavailableError
from bide.store.filesystems import Mount, mount_of, objection, parse_mount_program, parse_mountinfo
from tests.store.small_disk import own_mounts

ROOT = Path(__file__).parents[2]

SERVER = r"""
21 27 0:20 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
25 27 0:24 / /run rw,nosuid,nodev shared:14 - tmpfs tmpfs rw,size=803192k,mode=755
27 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
31 27 0:27 / /net rw,relatime shared:17 - nfs4 nas.example.com:/export/people rw,vers=4.2,hard,proto=tcp,addr=10.0.0.2
33 31 8:17 / /net/ada/local rw,relatime shared:19 - xfs /dev/sdb1 rw,attr2,inode64
35 27 0:30 / /mnt/my\040share rw,relatime shared:21 - cifs //nas/share rw,vers=3.1.1,cache=strict
36 27 0:31 / /mnt/tab\011and\134slash rw,relatime - fuse.sshfs ada@host:/srv rw,user_id=1000,group_id=1000
37 27 0:30 /deep/inside /srv/bound rw,relatime shared:21 - cifs //nas/share rw,vers=3.1.1,cache=strict
38 27 8:2 /var/lib/bide /mnt/my\040disk rw,relatime shared:1 - ext4 /dev/sda2 rw
39 27 0:40 / /mnt/grün rw,relatime - nfs nas:/grün rw,vers=3
"""
CONTAINER = r"""
812 640 0:97 / / rw,relatime - overlay overlay rw,lowerdir=/l/A:/l/B,upperdir=/u,workdir=/w
813 812 0:101 / /proc rw,nosuid - proc proc rw
814 812 0:102 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
820 812 8:1 /volumes/data/_data /data rw,relatime - ext4 /dev/sda1 rw
821 812 0:60 /claims/7 /shared rw,relatime - nfs4 10.1.2.3:/claims rw,vers=4.1
822 820 0:60 /claims/7/one.db /data/one.db rw,relatime - nfs4 10.1.2.3:/claims rw,vers=4.1
"""
HIDDEN = r"""
1 1 0:2 / / rw - rootfs rootfs rw
27 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw
40 27 0:30 / /srv/a/b rw,relatime - nfs nas:/b rw
41 27 8:3 / /srv/a rw,relatime - ext4 /dev/sda3 rw
42 27 0:33 / /opt rw,relatime - ext4 /dev/sda4 rw
43 42 0:34 / /opt rw,relatime - nfs nas:/opt rw
44 41 0:35 / /srv/a/c rw,relatime - ceph mon:/ rw
"""
CHROOT = r"""
50 7 8:9 / /data rw,relatime - ext4 /dev/sdc1 rw
51 7 0:44 / /net rw,relatime - lustre mgs@tcp:/fs rw
"""


@pytest.mark.parametrize(
    ("table", "path", "place", "kind"),
    [
        (SERVER, "/var/lib/bide/bide.db", "/", "ext4"),
        (SERVER, "/net/ada/bide.db", "/net", "nfs4"),
        (SERVER, "/nettles/bide.db", "/", "ext4"),
        (SERVER, "/net/ada/local/bide.db", "/net/ada/local", "xfs"),
        (SERVER, "/run/bide.db", "/run", "tmpfs"),
        (SERVER, "/mnt/my share/bide.db", "/mnt/my share", "cifs"),
        (SERVER, "/mnt/tab\tand\\slash/bide.db", "/mnt/tab\tand\\slash", "fuse.sshfs"),
        (SERVER, "/srv/bound/bide.db", "/srv/bound", "cifs"),
        (SERVER, "/mnt/my disk/bide.db", "/mnt/my disk", "ext4"),
        (SERVER, "/mnt/grün/bide.db", "/mnt/grün", "nfs"),
        (CONTAINER, "/app/bide.db", "/", "overlay"),
        (CONTAINER, "/data/bide.db", "/data", "ext4"),
        (CONTAINER, "/shared/bide.db", "/shared", "nfs4"),
        (CONTAINER, "/data/one.db", "/data/one.db", "nfs4"),
        (HIDDEN, "/bide.db", "/", "ext4"),
        (HIDDEN, "/srv/a/b/bide.db", "/srv/a", "ext4"),
        (HIDDEN, "/srv/a/c/bide.db", "/srv/a/c", "ceph"),
        (HIDDEN, "/opt/bide.db", "/opt", "nfs"),
        (CHROOT, "/data/bide.db", "/data", "ext4"),
        (CHROOT, "/net/bide.db", "/net", "lustre"),
    ],
)
def test_filesystem_of_a_path_is_found_in_the_table_of_mounts(table, path, place, kind):
    found = mount_of(path, parse_mountinfo(table))

    assert found is not None
    assert (found.place, found.kind) == (place, kind)


@pytest.mark.parametrize("table", ["", "nonsense\n", "1 2 3\n", "27 1 8:2 / / rw,relatime"])
def test_table_that_says_nothing_refuses_nothing(table):
    assert mount_of("/var/lib/bide.db", parse_mountinfo(table)) is None


def mounted(kind: str, options: str = "rw") -> Mount:
    return Mount(2, 1, "/there", kind, options)


@pytest.mark.parametrize(
    "mount",
    [
        *map(mounted, ["nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs"]),
        *map(mounted, ["fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.ceph-fuse"]),
        *map(mounted, ["fuse", "fuse.never-heard-of-it", "vboxsf", "vmhgfs", "fuse.vmhgfs-fuse", "prl_fs"]),
        mounted("9p", "rw,trans=virtio,version=9p2000.L"),
        mounted("9p", r"rw,aname=drvfs;path=C:\;uid=1000;symlinkroot=/mnt/,trans=fd,rfd=8,wfd=8"),
    ],
    ids=str,
)
def test_filesystem_that_others_share_is_objected_to(mount):
    assert objection(mount) is not None


@pytest.mark.parametrize(
    "mount",
    [
        *map(mounted, ["ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs", "ramfs", "apfs", "ntfs3", "vfat"]),
        *map(mounted, ["ecryptfs", "fuseblk", "fuse.fuse-overlayfs", "fuse.gocryptfs", "virtiofs"]),
        mounted("9p", "rw,trans=fd,rfdno=4,wfdno=4,aname=/,dfltuid=4294967294,cache=remote_revalidating"),
    ],
    ids=str,
)
def test_filesystem_of_this_machine_is_not_objected_to(mount):
    assert objection(mount) is None


# ── Where there is no /proc ────────────────────────────────────────────────────────────────────────────────────────

MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse, protect, root data)
//ada@nas._smb._tcp.local/share on /Volumes/share (smbfs, nodev, nosuid, mounted by ada)
/dev/disk5s1 on /Volumes/share/my (old) disk (apfs, local, nodev, nosuid)
ada@host:/srv on /Volumes/ada/far (macfuse, nodev, nosuid, synchronous, mounted by ada)
"""


@pytest.mark.parametrize(
    ("path", "is_refused"),
    [
        ("/Volumes/ada/bide.db", False),
        ("/System/Volumes/Data/bide.db", False),
        ("/Volumes/share/bide.db", True),
        ("/Volumes/share/my (old) disk/bide.db", False),
        ("/Volumes/ada/far/bide.db", True),
    ],
)
def test_mount_program_tells_what_is_local(path, is_refused):
    found = mount_of(path, parse_mount_program(MACOS))

    assert found is not None
    assert (objection(found) is not None) == is_refused


def test_system_that_tells_nothing_refuses_nothing(path, monkeypatch):
    monkeypatch.setattr(bide.store.filesystems, "MOUNTS", str(path.with_name("no such table")))
    monkeypatch.setattr(bide.store.filesystems, "_ask_mount_program", lambda: "")

    with Store.open(f"sqlite:///{path}") as store:
        assert store.threads() == []


# ── Opening ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the table of mounts calls a share; the rest of the disk is local."""
    folder = tmp_path / "share"
    folder.mkdir()
    table = tmp_path / "mountinfo"
    table.write_text(f"27 1 8:2 / / rw - ext4 /dev/sda2 rw\n31 27 0:27 / {folder} rw - nfs4 nas:/share rw,vers=4.2\n")
    monkeypatch.setattr(bide.store.filesystems, "MOUNTS", str(table))
    return folder


def check_refused(path: Path) -> None:
    with pytest.raises(
        StoreUnavailableError, match=r"'nfs4'.*network filesystem.*local disk, or a PostgreSQL"
    ) as refusal:
        Store.open(f"sqlite:///{path}")
    assert "locks" in str(refusal.value)
    assert not path.exists()


def test_store_on_a_share_is_refused_and_nothing_is_made(share):
    check_refused(share / "bide.db")

    assert list(share.iterdir()) == []


def test_link_to_a_share_is_refused(share, tmp_path):
    (tmp_path / "link").symlink_to(share)
    (tmp_path / "bide.db").symlink_to(share / "bide.db")

    check_refused(tmp_path / "link" / "bide.db")
    check_refused(tmp_path / "bide.db")


def test_link_from_a_share_to_a_local_disk_is_let_in(share, tmp_path):
    (share / "bide.db").symlink_to(tmp_path / "bide.db")

    with Store.open(f"sqlite:///{share / 'bide.db'}") as store:
        assert store.database.path == str(tmp_path / "bide.db")


def test_existing_store_that_was_moved_to_a_share_is_refused_and_left_as_it_was(share, path):
    Store.open(f"sqlite:///{path}").close()
    moved = share / "bide.db"
    shutil.move(path, moved)
    before = moved.read_bytes()

    with pytest.raises(StoreUnavailableError, match="network filesystem"):
        Store.open(f"sqlite:///{moved}")

    assert [moved.read_bytes(), os.listdir(share)] == [before, ["bide.db"]]


def test_memory_is_never_on_a_share(share, monkeypatch):
    monkeypatch.chdir(share)

    with Store.open(":memory:") as store:
        assert store.threads() == []


OPEN = "import sys; from bide import Store; store = Store.open(sys.argv[1]); print(store.threads()); store.close()"


def test_real_mount_in_memory_is_found_and_let_in(tmp_path):
    """Seen through a second, bound mount as well. Who may not mount opens a store in the folder as it is."""
    disk, bound = tmp_path / "disk", tmp_path / "bound here"
    disk.mkdir()
    bound.mkdir()
    mount = 'mount -t tmpfs none "$1" && mount --bind "$1" "$2" && grep -c " tmpfs " /proc/self/mountinfo >&2 && '
    words = (
        [*own_mounts(), "sh", "-c", mount + 'shift && exec "$2" -c "$3" "sqlite:///$1/bide.db"'] if own_mounts() else []
    )
    command = [*words, "sh", str(disk), str(bound), sys.executable, OPEN] if words else [sys.executable, "-c", OPEN]

    ended = subprocess.run(
        command if words else [*command, f"sqlite:///{disk / 'bide.db'}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.stdout == "[]\n", ended.stderr
    assert bool(words) != (disk / "bide.db").exists()
