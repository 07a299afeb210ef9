"""Somebody at a terminal: what they type, and what they see."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from bide import Store
from bide.cli.commands import app

BEGINNING = int(datetime(2026, 3, 2, 9, 0, tzinfo=UTC).timestamp() * 1000)
HERE = Path(__file__).parent


@dataclass
class Terminal:
    """A folder with a shop in it, a clock that stands still, and a window of a certain width."""

    folder: Path
    now: int = BEGINNING
    environment: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shutil.copy(HERE / "shop.py", self.folder / "shop.py")
        self.environment = {
            "BIDE_APP": str(self.folder / "shop.py:app"),
            "BIDE_STORE": None,
            "SHOP_STORE": f"sqlite:///{self.folder}/shop.db",
            "COLUMNS": "100",
            "NO_COLOR": None,
            "FORCE_COLOR": None,
            "TERM": "xterm-256color",
            "TZ": "UTC",
            "USER": "ann",
            "LOGNAME": "ann",
            **self.environment,
        }
        # A shop that was in use before: whoever only looks makes no database.
        Store.open(f"sqlite:///{self.folder}/shop.db").close()

    def type(self, *words: str, stdin: str | None = None, **environment: str | None) -> Result:
        """Type a command; every one finds the program as a new process would."""
        known = {"SHOP_NOW": str(self.now), **self.environment, **environment}
        try:
            return CliRunner().invoke(app, list(words), input=stdin, env=known)
        finally:
            sys.modules.pop("shop", None)

    def see(self, *words: str, **more: Any) -> str:
        """Type a command that works, and return what is seen."""
        result = self.type(*words, **more)
        assert result.exit_code == 0, f"{words}: {result.exit_code}\n{result.output}\n{result.exception!r}"
        return str(result.stdout)

    def ask(self, *words: str, **more: Any) -> Any:
        """Type a command that works, with --json, and return the document."""
        return json.loads(self.see(*words, "--json", **more))

    def fail(self, *words: str, **more: Any) -> tuple[int, str]:
        """Type a command that fails; return its exit code, and what it says, wherever the lines break."""
        result = self.type(*words, **more)
        assert result.exit_code != 0, f"{words} worked: {result.output}"
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        return int(result.exit_code), " ".join(str(result.stderr).split())

    # ── What the shop does ─────────────────────────────────────────────────────────────────────────────────────────

    def start(self, graph: str, thread_id: str, input: Mapping[str, Any] | None = None) -> None:
        """Start a thread, and let it come to rest."""
        self.see("start", graph, json.dumps(input or {}), "--thread", thread_id)
        self.work()

    def work(self, **environment: str | None) -> None:
        """Let a worker do what there is to do."""
        self.see("worker", "--until-idle", **environment)

    def wait_of(self, thread_id: str) -> str:
        """Return the id of the only wait of a thread."""
        (found,) = self.ask("waits", "--thread", thread_id)["waits"]
        return str(found["id"])

    def pass_time(self, **lengths: int) -> None:
        """Let time pass."""
        units = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
        self.now += sum(units[unit] * number for unit, number in lengths.items())
