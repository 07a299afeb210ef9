"""The virtual environment and the packages in it. Readable by Python 3.8, like dev.py."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from tools.needs import apt_install
from tools.terminal import CommandFailed, Problem, clean_environment, quietly, say


@dataclass(frozen=True)
class Profile:
    """One of the three things that can be installed, and what to tell the person who waits for it."""

    name: str
    target: str
    contents: str
    satisfied_by: tuple[str, ...]


RUNTIME = Profile(
    "run", ".[cli,server]", "the library, its command line and its server", satisfied_by=("run", "bench", "test")
)
MEASURED = Profile(
    "bench",
    ".[cli,postgres,server]",
    "the library, its server and its PostgreSQL driver",
    satisfied_by=("bench", "test"),
)
EVERYTHING = Profile("test", ".[dev]", "the library and the tools of its tests", satisfied_by=("test",))


@dataclass(frozen=True)
class Venv:
    """The virtual environment of one copy of the repository, and the notes in it that say what was done."""

    root: Path

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.root / ".venv"

    @property
    def cut_short(self) -> Path:
        """A file that exists only while something is being changed: found later, it tells of a kill in the middle."""
        return self.path / ".bide-changing"

    @property
    def origin(self) -> Path:
        """A file that says which Python made this, and for which folder."""
        return self.path / ".bide-origin"

    def tool(self, name: str) -> str:
        """Return the path of a program in it."""
        return str(self.path / "bin" / name)

    def stamp(self, name: str) -> Path:
        """Return the file that says for which key a profile was installed."""
        return self.path / f".bide-stamp-{name}"

    def fault(self) -> str:
        """Say why it cannot be used as it is; nothing if it can."""
        if not self.path.is_dir():
            return "there is none yet"
        if self.cut_short.exists():
            return "the last set-up was cut short"
        if text_of(self.origin) != expected_origin(self.root):
            return "it was made by another Python, or for another folder"
        if not os.access(self.tool("python"), os.X_OK):
            return "its Python is gone"
        return ""

    def has(self, profile: Profile) -> bool:
        """Tell whether a profile is installed as the files of today ask for it."""
        key = stamp_key(self.root)
        return not self.fault() and any(text_of(self.stamp(name)) == key for name in profile.satisfied_by)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Mark a change, so that a kill in the middle of it is seen the next time."""
        self.cut_short.touch()
        yield
        self.cut_short.unlink()

    def environment(self) -> dict[str, str]:
        """Return the environment in which its programs find each other."""
        env = clean_environment()
        env["VIRTUAL_ENV"] = str(self.path)
        env["PATH"] = str(self.path / "bin") + os.pathsep + env.get("PATH", os.defpath)
        env["PIP_DISABLE_PIP_VERSION_CHECK"] = env["PIP_NO_INPUT"] = "1"
        # Behind a company's certificate authority uv, unlike pip, trusts the system's certificates only when asked.
        env.setdefault("UV_SYSTEM_CERTS", "1")
        # A service account may have no home, or none that it can write; uv gives up there, where pip goes on.
        if not can_write(Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME", "/nonexistent"), ".cache"))):
            env.setdefault("UV_NO_CACHE", "1")
        return env


def text_of(path: Path) -> str:
    """Return what a small file says; nothing if there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def can_write(folder: Path) -> bool:
    """Tell whether a folder can be written, or made where it is missing."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    return nearest.is_dir() and os.access(str(nearest), os.W_OK)


def expected_origin(root: Path) -> str:
    """Describe the .venv that belongs here; one that was copied with its folder would run the old folder's code."""
    return f"Python {platform.python_version()} in {root}\n"


def stamp_key(root: Path) -> str:
    """Return a digest of everything that decides what is installed."""
    digest = hashlib.sha256(platform.python_version().encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update(hashlib.sha256((root / name).read_bytes()).digest())
    return digest.hexdigest()


def set_up(venv: Venv, profile: Profile) -> None:
    """Make sure that a profile is installed; costs next to nothing when it is."""
    if not (venv.root / "constraints.txt").exists():
        raise Problem("constraints.txt is missing: take it from the repository, or run `python3 dev.py lock`.")
    if venv.has(profile):
        return
    with one_at_a_time(venv.root):
        if venv.has(profile):  # the one we waited for has done it
            return
        make_usable(venv)
        with venv.changing():
            install(venv, profile)
        venv.stamp(profile.name).write_text(stamp_key(venv.root), encoding="utf-8")


@contextlib.contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Keep two terminals from repairing the same .venv under each other's hands."""
    import fcntl  # not on Windows, where main() has already said so

    handle = os.open(str(root), os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("→ waiting for another dev.py that is setting up")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def make_usable(venv: Venv) -> None:
    """Make .venv, or make it again if it is broken."""
    fault = venv.fault()
    if not fault:
        return
    discard(venv.path)
    venv.path.mkdir()
    with venv.changing():
        make(venv, fault)
        venv.origin.write_text(expected_origin(venv.root), encoding="utf-8")


def make(venv: Venv, why: str) -> None:
    """Make .venv in the first way that works: as usual, with the system's pip, or after installing python3-venv."""
    # Called from inside an activated .venv, the Python to build with is the one behind it.
    python = getattr(sys, "_base_executable", sys.executable)
    env = clean_environment()
    usual = [python, "-m", "venv", str(venv.path)]
    try:
        quietly(f"making .venv ({why})", usual, env)
        return
    except CommandFailed:
        say("  this Python cannot put pip into it (Debian keeps that in python3-venv); trying with the system's pip")
    try:
        quietly("making .venv without pip", [*usual, "--without-pip"], env)
        command = [python, "-m", "pip", "--python", venv.tool("python"), "install", *constraints(venv), "pip"]
        quietly("installing pip into it", command, env)
        return
    except CommandFailed as failed:
        say(f"  that did not work either ({failed})")
    apt_install(
        "python3-venv", ("python3-venv",), "Install python3-venv (Debian, Ubuntu: `apt-get install python3-venv`)."
    )
    try:
        quietly("making .venv", usual, env)
    except CommandFailed as failed:
        raise Problem(f"{failed.output}\n\n{python} cannot make a virtual environment; see above.") from failed


def discard(folder: Path) -> None:
    """Remove a folder; renamed first, so that a kill in the middle leaves no half of it under its own name."""
    trash = folder.with_name(folder.name + ".trash")
    shutil.rmtree(str(trash), ignore_errors=True)
    if folder.exists():
        folder.rename(trash)
        shutil.rmtree(str(trash))


# --- packages ---------------------------------------------------------------------------------------------------------


def constraints(venv: Venv) -> list[str]:
    """Return the arguments that hold an installer to our versions."""
    return ["-c", "constraints.txt"] if (venv.root / "constraints.txt").exists() else []


def install(venv: Venv, profile: Profile) -> None:
    """Install a profile: with uv when it can be had and works, with pip otherwise."""
    try:
        install_with_uv(venv, profile)
    except CommandFailed as failed:
        say(failed.output)
        say(f"  uv did not manage ({failed}): going on with pip")
        install_with_pip(venv, profile)


def install_with_uv(venv: Venv, profile: Profile) -> None:
    """Install a profile with uv; raises CommandFailed for whatever reason it does not work."""
    bring_uv(venv)
    command = [venv.tool("uv"), "pip", "install", "--python", venv.tool("python"), *constraints(venv)]
    command += ["--build-constraints", "constraints.txt", "-e", profile.target]
    quietly(f"installing {profile.contents} with uv (about 10 s)", command, venv.environment())


def bring_uv(venv: Venv) -> None:
    """Install uv into .venv, once."""
    if not Path(venv.tool("uv")).exists():
        command = [venv.tool("python"), "-m", "pip", "install", *constraints(venv), "uv"]
        quietly("installing uv (about 5 s)", command, venv.environment())


def install_with_pip(venv: Venv, profile: Profile) -> None:
    """Install a profile with pip."""
    pip = [venv.tool("python"), "-m", "pip", "install", *constraints(venv)]
    try:
        quietly("updating pip", [*pip, "-U", "pip"], venv.environment())
    except CommandFailed as failed:
        say(f"  pip stays as it is ({failed}): slower, not wrong")
    try:
        title = f"installing {profile.contents} with pip (about a minute)"
        quietly(title, [*pip, "-e", profile.target], venv.environment())
    except CommandFailed as failed:
        raise Problem(f"{failed.output}\n\nThe packages could not be installed; can pip reach its index?") from failed


def pins(compiled: str) -> list[str]:
    """Return the `name==version` lines of a compiled list: no index, no address, no path, no hash."""
    return [line for line in compiled.splitlines() if re.match(r"[A-Za-z0-9._-]+==[^\s@]+( ; .+)?$", line)]
