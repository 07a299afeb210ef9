"""What the tests need from the system: looked for first, installed only if missing.

A browser or a mail server is one entry more in SYSTEM_NEEDS. Readable by Python 3.8, like dev.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping, Sequence

from tools.terminal import CommandFailed, Problem, clean_environment, quietly

# A caller's short PATH must hide neither apt-get from us nor dpkg's own tools from dpkg.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Need:
    """Something that the tests use for real, how to find it, and how to get it."""

    name: str
    find: Callable[[], str | None]
    packages: tuple[str, ...]
    advice: str


def find_postgres(environ: Mapping[str, str] = os.environ, installed: Path = Path("/usr/lib/postgresql")) -> str | None:
    """Return where a PostgreSQL is: the DSN of a server to use, or the folder of the programs to start one."""
    if environ.get("BIDE_TEST_PG_DSN"):
        return environ["BIDE_TEST_PG_DSN"]
    folders = sorted(installed.glob("*/bin"), key=lambda folder: version_of(folder.parent.name), reverse=True)
    pg_config = shutil.which("pg_config", path=environ.get("PATH"))
    if pg_config:
        printed = subprocess.run(
            [pg_config, "--bindir"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        folders.append(Path(os.fsdecode(printed.stdout).strip() or "/nowhere"))
    # pg_config and the client's programs come without a server: only initdb proves that there is one.
    return next((str(folder) for folder in folders if (folder / "initdb").exists()), None)


def find_pgbouncer(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return where PgBouncer is; Debian puts it where only administrators look."""
    return shutil.which("pgbouncer", path=environ.get("PATH", "") + os.pathsep + SYSTEM_PATH)


def find_spin(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return where the model checker Spin is; a tool for WebAssembly has the same name, so it is asked who it is."""
    spin = shutil.which("spin", path=environ.get("PATH"))
    return spin if spin and "Spin Version" in said_by([spin, "-V"]) else None


def find_c_compiler(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return where gcc is, which Spin calls by this name; without the headers of the C library it is of no use."""
    gcc = shutil.which("gcc", path=environ.get("PATH"))
    return gcc if gcc and "printf" in said_by([gcc, "-E", "-include", "stdio.h", "-x", "c", os.devnull]) else None


def find_faketime(installed: Path = Path("/usr/lib")) -> str | None:
    """Return where libfaketime is, which gives a process a wall clock of its own."""
    return next((str(found) for found in sorted(installed.glob("*/faketime/libfaketimeMT.so.1"))), None)


def find_ip(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return where the program is that makes networks."""
    return shutil.which("ip", path=environ.get("PATH", "") + os.pathsep + SYSTEM_PATH)


def find_chromium(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return where a Chromium is that belongs to the system: Playwright drives it, and brings none of its own."""
    return shutil.which("chromium", path=environ.get("PATH")) or shutil.which(
        "chromium-browser", path=environ.get("PATH")
    )


def said_by(command: Sequence[str]) -> str:
    """Return what a program prints, whatever it thinks of the question."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    return os.fsdecode(done.stdout)


def version_of(name: str) -> tuple[int, ...]:
    """Return a version as numbers, so that 15 is newer than 9.6."""
    return tuple(int(number) for number in re.findall(r"\d+", name))


POSTGRES = Need(
    name="PostgreSQL",
    find=find_postgres,
    packages=("postgresql",),
    advice="Install the PostgreSQL server (Debian, Ubuntu: `apt-get install postgresql`), "
    "or set BIDE_TEST_PG_DSN to a server on which the tests may create databases.",
)
PGBOUNCER = Need(
    name="PgBouncer",
    find=find_pgbouncer,
    packages=("pgbouncer",),
    advice="Install the connection pooler for PostgreSQL (Debian, Ubuntu: `apt-get install pgbouncer`).",
)
SPIN = Need(
    name="Spin",
    find=find_spin,
    packages=("spin",),
    advice="Install the model checker Spin (Debian, Ubuntu: `apt-get install spin`; others: spinroot.com).",
)
C_COMPILER = Need(
    name="gcc",
    find=find_c_compiler,
    packages=("gcc", "libc6-dev"),
    advice="Install gcc and the headers of the C library (Debian, Ubuntu: `apt-get install gcc libc6-dev`).",
)
FAKETIME = Need(
    name="libfaketime",
    find=find_faketime,
    packages=("libfaketime",),
    advice="Install libfaketime, which gives a process a wrong clock (Debian, Ubuntu: `apt-get install libfaketime`).",
)
IPROUTE = Need(
    name="iproute2",
    find=find_ip,
    packages=("iproute2",),
    advice="Install iproute2, with which the tests make a network that they can cut (Debian, Ubuntu: "
    "`apt-get install iproute2`); they make it as root.",
)
CHROMIUM = Need(
    name="Chromium",
    find=find_chromium,
    packages=("chromium",),
    advice="Install the browser Chromium (Debian, Ubuntu: `apt-get install chromium`).",
)
SYSTEM_NEEDS = (POSTGRES, PGBOUNCER, SPIN, C_COMPILER, FAKETIME, IPROUTE, CHROMIUM)


def provide(need: Need) -> None:
    """Make sure that the system has something; install it only if it is missing, fail if it cannot be had."""
    if need.find():
        return
    apt_install(need.name, need.packages, need.advice)
    if not need.find():
        raise Problem(f"{need.name} is still not found after its installation. {need.advice}")


def apt_install(name: str, packages: Sequence[str], advice: str) -> None:
    """Install Debian packages as root or with a sudo that does not ask; otherwise say what is to be installed."""
    apt = as_administrator("apt-get")
    if apt is None:
        raise Problem(f"{name} is missing and cannot be installed from here. {advice}")
    try:
        quietly("updating the list of Debian packages", [*apt, "update"], clean_environment())
        title = f"installing {name} with apt-get (about 30 s)"
        quietly(title, [*apt, "install", "-y", "--no-install-recommends", *packages], clean_environment())
    except CommandFailed as failed:
        raise Problem(f"{failed.output}\n\n{name} is missing, and apt-get could not install it. {advice}") from failed


def as_administrator(program: str) -> list[str] | None:
    """Return the command that runs a system program with the rights to change the system, if there is a way."""
    path = os.environ.get("PATH", "") + os.pathsep + SYSTEM_PATH
    found, sudo = shutil.which(program, path=path), shutil.which("sudo", path=path)
    if found is None or (os.geteuid() != 0 and sudo is None):
        return None
    # RUNLEVEL=1: a package that brings a service must not start it; our tests start their own.
    settings = ["env", f"PATH={path}", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    return [*([] if os.geteuid() == 0 else [str(sudo), "-n"]), *settings, found]
