"""What a run found out: kept as data beside the page, so that table and plot can be drawn again from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.plot import plot_of
from benchmarks.harness.table import Entry, table_text

BEGIN, END = "<!-- measured: written by `python3 dev.py bench` -->", "<!-- end of what was measured -->"
PAGE, DATA, PLOT = "benchmarks.md", "benchmarks.json", "benchmarks.svg"


@dataclass(frozen=True)
class Report:
    """One run: what it ran on, and every line of the table."""

    machine: Mapping[str, str]
    entries: tuple[Entry, ...]

    def text(self) -> str:
        """Return what the terminal shows."""
        facts = "\n".join(f"{what}: {value}" for what, value in self.machine.items())
        return f"{facts}\n\n{table_text(self.entries)}"

    def markdown(self) -> str:
        """Return the part of the page that every run writes anew."""
        facts = "\n".join(f"- {what}: {value}" for what, value in self.machine.items())
        plot = f"![How many times Bide's time others take]({PLOT})"
        return f"{BEGIN}\n\n{plot}\n\n{facts}\n\n{table_text(self.entries)}\n\n{END}"

    def as_json(self) -> str:
        """Return everything for a machine to read: a line for each line of the table."""
        lines = ",\n".join("    " + json.dumps(entry.as_json(), ensure_ascii=False) for entry in self.entries)
        facts = json.dumps(self.machine, indent=2, ensure_ascii=False).replace("\n", "\n  ")
        return f'{{\n  "machine": {facts},\n  "lines": [\n{lines}\n  ]\n}}\n'


def read_report(path: Path) -> Report:
    """Read what a run has written."""
    told = json.loads(path.read_text(encoding="utf-8"))
    return Report(told["machine"], tuple(Entry.from_json(line) for line in told["lines"]))


def page_with(page: str, report: Report) -> str:
    """Return the page with a new table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"The page has no place for the table: it needs the lines {BEGIN!r} and {END!r}.")
    return before + report.markdown() + after


def write_report(folder: Path, report: Report) -> None:
    """Write the page's table, the plot and the data into the folder of the page."""
    page = folder / PAGE
    page.write_text(page_with(page.read_text(encoding="utf-8"), report), encoding="utf-8")
    (folder / PLOT).write_text(plot_of(report.entries), encoding="utf-8")
    (folder / DATA).write_text(report.as_json(), encoding="utf-8")
