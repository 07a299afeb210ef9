"""Thousands of random lives of a thread: whatever is put, forked, pruned, copied and deleted, the rest reads as it was.

Three savers work on one store, so that each finds the others' rows where it remembers its own, or nothing. Rows are put
together after a few, so that every life has many such groups.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from bide.errors import ThreadDeletedError
from bide.interop.langgraph import BideSaver
from bide.interop.langgraph.values import Remembered
from bide.store import lists
from tests.interop.graphs import checkpoint

LIVES = 60
OPERATIONS = 120


class Life:
    """One random life of a few threads, and what must be read from them."""

    def __init__(self, seed: int, url: str) -> None:
        self.chance = random.Random(seed)
        first = BideSaver(url)
        forgetful = BideSaver(first.store)
        forgetful._remembered = Remembered(1000)
        self.savers = [first, BideSaver(first.store), forgetful]
        self.expected: dict[str, dict[str, dict[str, Any]]] = {}
        self.runs: dict[tuple[str, str], str] = {}
        self.clock = 0

    def saver(self) -> BideSaver:
        return self.chance.choice(self.savers)

    def live_and_check(self) -> None:
        operations = [self.put] * 20 + [self.put_late, self.prune, self.delete_run, self.copy, self.delete]
        for _ in range(OPERATIONS):
            self.chance.choice(operations)()
            self.check(self.chance.choice(self.threads()) if self.expected else None)
        for thread_id in self.threads():
            self.check(thread_id)
        self.savers[0].close()

    def threads(self) -> list[str]:
        return sorted(self.expected)

    def put(self) -> None:
        """Go on from the newest checkpoint, or from any other, or begin a thread."""
        thread_id = self.chance.choice(["a", "b"])
        known = self.expected.setdefault(thread_id, {})
        parent = None
        if known:
            parent = max(known) if self.chance.random() < 0.8 else self.chance.choice(sorted(known))
        self._put(thread_id, parent, self._changed(known.get(parent or "", {})))

    def _changed(self, values: dict[str, Any]) -> dict[str, Any]:
        changed = {**values, "count": self.clock}
        log = list(values.get("log", []))
        for _ in range(self.chance.randint(0, 2)):
            where = self.chance.choice([len(log), len(log), self.chance.randint(0, len(log))])
            gone = self.chance.choice([0, 0, 0, 1])
            log[where : where + gone] = [f"{self.clock} {'x' * self.chance.randint(1, 200)}"]
        if self.chance.random() < 0.05:
            log = log[len(log) // 2 :]
        changed["log"] = log
        if self.chance.random() < 0.1:
            changed["note"] = "n" * self.chance.choice([10, 1000])
        if self.chance.random() < 0.1:
            changed.pop("note", None)
        return changed

    def _put(self, thread_id: str, parent: str | None, values: dict[str, Any]) -> None:
        self.clock += 1
        name, run = f"{self.clock:06}", self.chance.choice(["r1", "r2", "r3"])
        before = self.expected[thread_id].get(parent or "", {})
        made = checkpoint(name, **values)
        # A channel keeps its version while it keeps its value; versions of forks are the same for other values.
        made["channel_versions"] = {key: len(str(value)) for key, value in values.items()}
        new = {key: made["channel_versions"][key] for key in values if before.get(key) != values[key]}
        config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": parent}}
        self.saver().put(config, made, {"run_id": run}, new)
        self.expected[thread_id][name] = values
        self.runs[thread_id, name] = run

    def put_late(self) -> None:
        """Write what a run would whose checkpoint is gone."""
        thread_id = self.chance.choice(["a", "b"])
        config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": "000000"}}
        try:
            self.saver().put_writes(config, [("log", ["late"])], "task")
        except ThreadDeletedError:
            return

    def prune(self) -> None:
        thread_id = self.chance.choice(["a", "b"])
        self.saver().prune([thread_id])
        known = self.expected.get(thread_id)
        if known:
            self.expected[thread_id] = {max(known): known[max(known)]}

    def delete_run(self) -> None:
        run = self.chance.choice(["r1", "r2", "r3"])
        self.saver().delete_for_runs([run])
        for thread_id, known in self.expected.items():
            for name in [name for name in known if self.runs[thread_id, name] == run]:
                del known[name]

    def copy(self) -> None:
        source, target = self.chance.sample(["a", "b"], 2)
        if self.expected.get(source):
            self.saver().delete_thread(target)
            self.saver().copy_thread(source, target)
            self.expected[target] = dict(self.expected[source])
            self.runs |= {(target, name): self.runs[source, name] for name in self.expected[source]}

    def delete(self) -> None:
        thread_id = self.chance.choice(["a", "b"])
        self.saver().delete_thread(thread_id)
        self.expected.pop(thread_id, None)

    def check(self, thread_id: str | None) -> None:
        if thread_id is None:
            return
        found = self.saver().list({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
        read = {one.checkpoint["id"]: one.checkpoint["channel_values"] for one in found}
        assert read == self.expected[thread_id]
        if read:
            name = self.chance.choice(sorted(read))
            one = self.saver().get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_id": name}})
            assert one is not None
            assert one.checkpoint["channel_values"] == read[name]


@pytest.mark.parametrize("seed", range(LIVES))
def test_whatever_happens_the_rest_reads_as_it_was(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_LOOSE", 4)

    Life(seed, ":memory:").live_and_check()


@pytest.mark.parametrize("seed", range(1000, 1003))
def test_whatever_happens_on_a_disk_the_rest_reads_as_it_was(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lists, "MOST_LOOSE", 4)

    Life(seed, f"sqlite:///{tmp_path / 'app.db'}").live_and_check()
