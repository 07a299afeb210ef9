"""From samples to the table: what, ours, the rival, the ratio, the budget, met or missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.harness.groups import Budget, Group, Line
from benchmarks.harness.rounds import Findings, Measured

DOUBT = "?"
HEADINGS = ("what", "ours", "beside", "theirs", "ratio", "of CPU", "budget", "verdict")


@dataclass(frozen=True)
class Entry:
    """One line of the table, with numbers. `best` is the least of all samples, `usual` their median."""

    group: str
    what: str
    unit: str
    ours: str
    ours_best: float | None
    ours_usual: float | None
    rival: str | None
    rival_best: float | None
    rival_usual: float | None
    ratio: float | None
    cpu_ratio: float | None
    """The ratio of processor time, which a busy machine disturbs less."""
    budgets: tuple[tuple[str, str], ...]
    """What was promised, and the verdict."""
    problem: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return what the table shows."""
        return (
            self.what,
            amount(self.ours_best, self.ours_usual, self.unit),
            self.rival or "",
            amount(self.rival_best, self.rival_usual, self.unit) if self.rival else "",
            ratio_text(self.ratio),
            ratio_text(self.cpu_ratio),
            ", ".join(text for text, _ in self.budgets),
            ", ".join(verdict for _, verdict in self.budgets),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the entry for a machine to read."""
        return asdict(self) | {"budgets": [{"budget": text, "verdict": verdict} for text, verdict in self.budgets]}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Entry:
        """Return the entry that was written so."""
        budgets = tuple((budget["budget"], budget["verdict"]) for budget in told["budgets"])
        return cls(**{**told, "budgets": budgets})


def entries_of(group: Group, found: Findings) -> list[Entry]:
    """Compare what a group has measured."""
    return [_entry(group, line, found) for line in group.lines]


def _entry(group: Group, line: Line, found: Findings) -> Entry:
    ours, theirs = _pair(line, line.metric, found)
    ratio = _ratio(ours, theirs)
    problems = [found.problems[name] for name in (line.ours, line.rival) if name in found.problems]
    return Entry(
        group=group.name,
        what=line.what,
        unit=next((measured.unit for measured in (ours, theirs) if measured is not None), ""),
        ours=line.ours,
        ours_best=None if ours is None else ours.best,
        ours_usual=None if ours is None else ours.usual,
        rival=line.rival,
        rival_best=None if theirs is None else theirs.best,
        rival_usual=None if theirs is None else theirs.usual,
        ratio=ratio,
        cpu_ratio=_ratio(*_pair(line, f"{line.metric}_cpu", found)),
        budgets=tuple((budget.text, verdict(budget, ours, theirs)) for budget in line.budgets),
        problem="; ".join(problems),
    )


def _pair(line: Line, metric: str, found: Findings) -> tuple[Measured | None, Measured | None]:
    ours, theirs = found.metrics.get(line.ours, {}), found.metrics.get(line.rival or "", {})
    return ours.get(metric), theirs.get(metric)


def _ratio(ours: Measured | None, theirs: Measured | None) -> float | None:
    return None if ours is None or theirs is None or theirs.best <= 0 else ours.best / theirs.best


def verdict(budget: Budget, ours: Measured | None, theirs: Measured | None) -> str:
    """Say whether a budget is kept; one whose work is still to come is not called missed.

    A question mark says that the samples are too far apart for either word to be worth much.
    """
    value = _ratio(ours, theirs) if not budget.unit else (None if ours is None else ours.best)
    if value is None:
        return "not measured"
    asked = (ours,) if budget.unit else (ours, theirs)
    doubt = DOUBT if any(measured is not None and measured.is_noisy for measured in asked) else ""
    if value <= budget.most:
        return "met" + doubt
    return ("later" if budget.is_later else "missed") + doubt


def amount(best: float | None, usual: float | None, unit: str) -> str:
    """Write a number with its unit, and the median behind it where the two differ."""
    if best is None or usual is None:
        return "–"
    shown, median = short(best), short(usual)
    return f"{shown} {unit}" + (f" ({median})" if median != shown else "")


def short(value: float) -> str:
    """Write three digits of a number; the rest is noise."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio_text(ratio: float | None) -> str:
    """Write a ratio as people say it: 1/12 of theirs, 1.4 times theirs."""
    if ratio is None:
        return ""
    return f"1/{1 / ratio:.1f}" if 0 < ratio < 0.95 else f"{ratio:.2f} ×"


def table_text(entries: Sequence[Entry]) -> str:
    """Draw the table, readable as it is and as Markdown."""
    rows = [HEADINGS, *(entry.cells() for entry in entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [_row(row, widths) for row in rows]
    if any(verdict.endswith(DOUBT) for entry in entries for _, verdict in entry.budgets):
        lines.append("\n? The median is more than twice the least sample: measure again on a quieter machine.")
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
