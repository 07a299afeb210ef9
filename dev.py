#!/usr/bin/env python3
"""The two commands of this repository, and a few small ones.

    python3 dev.py run [args]     set up what a user of the library gets, then run the demo
    python3 dev.py test [args]    set up everything, then run every check; with arguments: only pytest, with these
    python3 dev.py bench [args]   run the benchmarks beside the rivals, and write docs/benchmarks.md
    python3 dev.py fmt            put the code into its one format
    python3 dev.py lock           choose the newest versions that fit and write them to the lock files
    python3 dev.py clean          remove .venv and every cache
    python3 dev.py help           show this

All of it lives in .venv, which this file makes, repairs and owns. It needs the standard library alone, and its
syntax stays readable by Python 3.8, so that an old python3 gets a sentence and not a SyntaxError.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from dataclasses import dataclass
from typing import Callable, Sequence

from tools.javascript import CLIENTS, bring_clients, lock_clients
from tools.needs import SYSTEM_NEEDS, provide
from tools.terminal import ROOT, CommandFailed, Problem, become, quietly, say, stream
from tools.venv import EVERYTHING, MEASURED, RUNTIME, Venv, bring_uv, discard, make_usable, one_at_a_time, pins, set_up

OLDEST_PYTHON = (3, 11)
# This file calls them, so they are pinned with the rest.
BUILD_TOOLS = ("editables", "pip", "uv")
CACHES = (".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", "build", "dist")


@dataclass(frozen=True)
class Check:
    """One thing that must hold, as a program of .venv and its arguments."""

    name: str
    command: tuple[str, ...]

    @property
    def repeat(self) -> str:
        """What to type to run it alone."""
        return ".venv/bin/" + " ".join(shlex.quote(word) for word in self.command)


@dataclass(frozen=True)
class Result:
    """How a check ended: its exit code, or None if it was not started."""

    check: Check
    code: int | None
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """The word for the summary."""
        return {None: "not run", 0: "ok"}.get(self.code, "FAILED")


# Fast first. Within a stage everything runs; a stage is started only when the one before it holds.
STAGES = (
    (
        Check("lint", ("ruff", "check", ".")),
        Check("format", ("ruff", "format", "--check", ".")),
        Check("types", ("mypy", "--strict", "src")),
        Check("layers", ("lint-imports", "--no-logo")),
    ),
    (Check("tests", ("python", "-m", "pytest", "-m", "not slow")),),
    (Check("slow tests", ("python", "-m", "pytest", "-m", "slow", "-n", "2")),),
)


def run_check(venv: Venv, check: Check) -> Result:
    """Run one check with its output in full view."""
    say(f"→ {check.name}: {' '.join(check.command)}")
    started = time.monotonic()
    code = stream([venv.tool(check.command[0]), *check.command[1:]], venv.environment())
    result = Result(check, code, time.monotonic() - started)
    say(f"  {result.seconds:.1f} s, {result.verdict}")
    return result


def run_stages(venv: Venv, stages: Sequence[Sequence[Check]]) -> list[Result]:
    """Run stage after stage until one fails; the checks after it are listed as not run."""
    results: list[Result] = []
    for stage in stages:
        holds = all(result.code == 0 for result in results)
        results += [run_check(venv, check) if holds else Result(check, None) for check in stage]
    return results


def summary(results: Sequence[Result]) -> str:
    """Return the table of all checks, and for each failed one the command that repeats it alone."""
    rows = [f"  {result.check.name:<12}{result.seconds:>8.1f} s   {result.verdict}" for result in results]
    rows.append(f"  {'together':<12}{sum(result.seconds for result in results):>8.1f} s")
    failed = [result for result in results if result.verdict == "FAILED"]
    rows += ["\nEvery check holds."] if all(result.code == 0 for result in results) else []
    rows += [f"\n{one.check.name} failed (exit code {one.code}). Repeat it alone: {one.check.repeat}" for one in failed]
    return "\n".join(["", *rows])


# --- the commands -----------------------------------------------------------------------------------------------------


def run(venv: Venv, arguments: Sequence[str]) -> int:
    """Run the demo on what a user of the library has."""
    set_up(venv, RUNTIME)
    become([venv.tool("python"), "-m", "bide.demo", *arguments], venv.environment())


def test(venv: Venv, arguments: Sequence[str]) -> int:
    """Run every check, or pytest alone with the given arguments."""
    for need in SYSTEM_NEEDS:
        provide(need)
    set_up(venv, EVERYTHING)
    bring_clients(venv)
    if arguments:
        os.chdir(str(ROOT))
        become([venv.tool("python"), "-m", "pytest", *arguments], venv.environment())
    results = run_stages(venv, STAGES)
    say(summary(results))
    return 0 if all(result.code == 0 for result in results) else 1


def bench(venv: Venv, arguments: Sequence[str]) -> int:
    """Run the benchmarks, which bring the rivals and start a PostgreSQL of their own."""
    set_up(venv, MEASURED)
    os.chdir(str(ROOT))
    become([venv.tool("python"), "benchmarks/run.py", *arguments], venv.environment())


def fmt(venv: Venv) -> int:
    """Format the code and repair what ruff can repair."""
    set_up(venv, EVERYTHING)
    codes = [stream([venv.tool("ruff"), *what, "."], venv.environment()) for what in (["check", "--fix"], ["format"])]
    return max(codes)


def lock(venv: Venv) -> int:
    """Write constraints.txt and package-lock.json anew: versions for every platform, and not one address."""
    with one_at_a_time(venv.root):
        make_usable(venv)
        with venv.changing():
            bring_uv(venv)
    command = [venv.tool("uv"), "pip", "compile", "pyproject.toml", "-", "--all-extras", "--universal"]
    command += ["--python-version", ".".join(map(str, OLDEST_PYTHON)), "--no-annotate", "--no-header"]
    chosen = pins(quietly("choosing versions", command, venv.environment(), given="\n".join(BUILD_TOOLS)))
    header = "# Versions only, made by `python3 dev.py lock`. No address, no hash: any index may serve them.\n"
    (venv.root / "constraints.txt").write_text(header + "\n".join(chosen) + "\n", encoding="utf-8")
    say(f"  {len(chosen)} versions in constraints.txt")
    set_up(venv, EVERYTHING)
    say(f"  {lock_clients(venv)} versions in {CLIENTS / 'package-lock.json'}")
    return 0


def clean(venv: Venv) -> int:
    """Remove everything that was made here and can be made again."""
    made = [*venv.root.glob(".venv*"), *(venv.root / name for name in CACHES), venv.root / CLIENTS / "node_modules"]
    made += [folder for part in ("src", "tests", "benchmarks") for folder in (venv.root / part).rglob("__pycache__")]
    for folder in made:
        discard(folder)
    say("→ removed .venv and the caches")
    return 0


def show_help(venv: Venv) -> int:
    """Show what this file can do."""
    say((__doc__ or "").strip())
    return 0


COMMANDS_WITH_ARGUMENTS: dict[str, Callable[[Venv, Sequence[str]], int]] = {"run": run, "test": test, "bench": bench}
COMMANDS: dict[str, Callable[[Venv], int]] = {"fmt": fmt, "lock": lock, "clean": clean, "help": show_help}


def refusal(version: Sequence[int], platform_name: str = os.name) -> str:
    """Say in one sentence why this cannot run here; nothing if it can."""
    if tuple(version[:2]) < OLDEST_PYTHON:
        wanted, found = ".".join(map(str, OLDEST_PYTHON)), ".".join(map(str, version[:3]))
        return f"Bide needs Python {wanted} or newer and this is Python {found}: try `python{wanted} dev.py`."
    if platform_name == "nt":
        return "dev.py needs a POSIX system: on Windows, run it inside WSL."
    return ""


def dispatch(arguments: Sequence[str]) -> int:
    """Call the command that the first argument names."""
    name, rest = (arguments[0], list(arguments[1:])) if arguments else ("help", [])
    venv = Venv(ROOT)
    if name in COMMANDS_WITH_ARGUMENTS:
        return COMMANDS_WITH_ARGUMENTS[name](venv, rest)
    if name in COMMANDS and not rest:
        return COMMANDS[name](venv)
    known = ", ".join([*COMMANDS_WITH_ARGUMENTS, *COMMANDS])
    raise Problem(f"`dev.py {' '.join(arguments)}` is not a command; there are: {known}. See `python3 dev.py help`.")


def main(arguments: Sequence[str]) -> int:
    """Run one command; every expected failure ends in a sentence and a code that is not 0."""
    reason = refusal(sys.version_info)
    if reason:
        print(reason, file=sys.stderr)
        return 1
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(errors="replace")  # an ASCII terminal shows ? for an arrow and goes on
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return dispatch(arguments)
    except Problem as problem:
        print(f"\n{problem}", file=sys.stderr)
    except CommandFailed as failed:
        print(f"\n{failed.output}\n\nThe last step failed ({failed}).", file=sys.stderr)
    except PermissionError as error:
        print(f"\nNo permission: {error}. Run dev.py as the user who owns this folder.", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
