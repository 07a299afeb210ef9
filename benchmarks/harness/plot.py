"""The plot: for each line of the table a bar that says how many times ours the others take, on a logarithmic axis.

Everybody's 1 is Bide. A bar to the right is somebody who takes longer or writes more, a bar to the left somebody who
takes less. It is an SVG of its own, with its own background, so that it reads the same on a bright and a dark page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.sax.saxutils import escape

from benchmarks.harness.table import DOUBT, Entry, short

WIDTH, MARGIN, LABELS, NOTES = 1000, 32, 352, 190
BAR, BAR_STEP, ROW_GAP, SECTION_GAP = 14, 19, 8, 30
TOP = 164
"""Where the first section begins: below the heading, the colours and the axis."""
LARGER = {"µs": ("ms", 1000), "ms": ("s", 1000), "B": ("KB", 1024)}
STOPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
SECTIONS = {
    "Bide": "Without a store",
    "Bide, MemorySaver": "In memory",
    "Bide, SQLite": "On SQLite (synchronous=FULL)",
    "Bide, PostgreSQL": "On PostgreSQL (fsync=on)",
}
TITLE = "Bide beside the others: how many times its time, or bytes, they take"
EXPLANATION = "A bar to the right: Bide is ahead. A bar to the left: the other one is. The axis is logarithmic."
DOUBTS = f"{DOUBT} Samples far apart: the machine was busy, so take that number with care."
SLOWER, FASTER = "← Bide is slower, or writes more", "Bide is faster, or writes less →"
COLOURS = {"LangGraph": "langgraph", "DBOS": "dbos", "Burr": "burr", "bare SQL": "raw"}
STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; font-size: 13px }
  text { fill: #24292f }
  .card { fill: #ffffff; stroke: #d0d7de } .title { font-size: 19px; font-weight: 600 }
  .times { font-weight: 600; fill: #24292f }
  .section { font-weight: 600; font-size: 14px } .muted { fill: #656d76; font-size: 12px }
  .grid { stroke: #eaeef2 } .one { stroke: #24292f; stroke-width: 1.5 } .rule { stroke: #d0d7de }
  .langgraph { fill: #d97706 } .dbos { fill: #2f6fde } .burr { fill: #0f8f6b } .raw { fill: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .card { fill: #0d1117; stroke: #30363d } .muted { fill: #8d96a0 }
    .times { fill: #e6edf3 } .grid { stroke: #1f252d } .one { stroke: #e6edf3 } .rule { stroke: #30363d }
    .langgraph { fill: #f0a03c } .dbos { fill: #6ba1ff } .burr { fill: #3fbf95 } .raw { fill: #7d8590 }
  }
"""


@dataclass(frozen=True)
class Axis:
    """From a ratio to a place."""

    least: float
    most: float

    @classmethod
    def around(cls, ratios: Sequence[float]) -> Axis:
        """Return an axis on which all of them have room, and 1 as well."""
        least = max((stop for stop in STOPS if stop <= min([*ratios, 0.9])), default=STOPS[0])
        most = min((stop for stop in STOPS if stop >= max([*ratios, 1.1])), default=STOPS[-1])
        return cls(least, most)

    @property
    def stops(self) -> list[float]:
        """The ratios that the axis names."""
        return [stop for stop in STOPS if self.least <= stop <= self.most]

    def place(self, ratio: float) -> float:
        """Return where a ratio lies, from the left edge of the picture."""
        left, right = MARGIN + LABELS, WIDTH - MARGIN - NOTES
        shown = min(max(ratio, self.least), self.most)
        share = (math.log(shown) - math.log(self.least)) / (math.log(self.most) - math.log(self.least))
        return round(left + share * (right - left), 1)


def is_drawn(entry: Entry) -> bool:
    """Tell whether a line of the table has a bar: it compares two amounts, and neither is nothing."""
    return bool(entry.ratio and entry.rival and entry.ours in SECTIONS)


def times_ours(entry: Entry) -> float:
    """Return how many times ours the other one takes."""
    return 1 / (entry.ratio or 1.0)


def is_doubtful(entry: Entry) -> bool:
    """Tell whether one of the two amounts may be luck, as the table does."""
    pairs = ((entry.ours_best, entry.ours_usual), (entry.rival_best, entry.rival_usual))
    return any(best is not None and usual is not None and usual > 2 * best for best, usual in pairs)


def times_text(entry: Entry) -> str:
    """Write that number as the plot shows it."""
    return f"{short(times_ours(entry))} ×{DOUBT if is_doubtful(entry) else ''}"


def human(amount: float, unit: str) -> str:
    """Write an amount in the unit in which it has at most four digits before the point."""
    while unit in LARGER and amount >= 10_000:
        unit, size = LARGER[unit]
        amount /= size
    return f"{short(amount)} {unit}"


def label_of(what: str) -> str:
    """Return the name of a row: its section says where it was measured."""
    return re.sub(r",? on (SQLite|PostgreSQL)", "", what)


def maker_of(rival: str) -> str:
    """Return whom a subject belongs to: its first word, or bare SQL for what belongs to nobody."""
    name = rival.split(",")[0]
    return name if name in COLOURS else "bare SQL"


def plot_of(entries: Sequence[Entry]) -> str:
    """Draw the plot of a table."""
    drawn = [entry for entry in entries if is_drawn(entry)]
    axis = Axis.around([times_ours(entry) for entry in drawn])
    body: list[str] = []
    y = TOP
    for ours, title in SECTIONS.items():
        of_section = [entry for entry in drawn if entry.ours == ours]
        if of_section:
            body += _section(title, y)
            y += SECTION_GAP
            for what, row in groupby(of_section, key=lambda entry: entry.what):
                bars = list(row)
                body += _row(axis, what, bars, y)
                y += BAR_STEP * len(bars) + ROW_GAP
            y += SECTION_GAP - ROW_GAP
    height = y + 8
    return "\n".join([*_head(height), *_axis(axis, height), *body, "</svg>"]) + "\n"


def _head(height: float) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" role="img" aria-labelledby="title">'
    )
    yield f'<title id="title">{TITLE}</title>'
    yield f"<style>{STYLE}</style>"
    yield f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="10"/>'
    yield _text(MARGIN, 42, TITLE, "title")
    yield _text(MARGIN, 64, EXPLANATION, "muted")
    x = MARGIN
    for maker, colour in COLOURS.items():
        yield f'<rect class="{colour}" x="{x}" y="78" width="12" height="12" rx="2"/>'
        yield _text(x + 18, 88.5, maker, "muted")
        x += 18 + 8 * len(maker) + 20
    yield _text(x + 12, 88.5, DOUBTS, "muted")


def _axis(axis: Axis, height: float) -> Iterator[str]:
    top, bottom = TOP - 22, height - 20
    for stop in axis.stops:
        x = axis.place(stop)
        yield f'<line class="{"one" if stop == 1 else "grid"}" x1="{x}" y1="{top}" x2="{x}" y2="{bottom:g}"/>'
        if stop == 1:
            yield _text(x, top - 7, "Bide = 1", "times", anchor="middle")
            yield _text(x - 10, top - 26, SLOWER, "muted", anchor="end")
            yield _text(x + 10, top - 26, FASTER, "muted")
        elif math.log10(stop).is_integer():
            yield _text(x, top - 7, f"{stop:,g} ×", "muted", anchor="middle")


def _section(title: str, y: float) -> Iterator[str]:
    yield _text(MARGIN, y + 14, title, "section")
    yield f'<line class="rule" x1="{MARGIN}" y1="{y + 22}" x2="{MARGIN + LABELS - 16}" y2="{y + 22}"/>'


def _row(axis: Axis, what: str, bars: Sequence[Entry], y: float) -> Iterator[str]:
    """Draw what was measured with our own amount, and a bar for each of the others."""
    yield _text(MARGIN, y + 12, label_of(what))
    ours = human(bars[0].ours_best or 0.0, bars[0].unit)
    yield _text(MARGIN + LABELS - 16, y + 12, ours, "muted", anchor="end")
    for number, entry in enumerate(bars):
        yield from _bar(axis, entry, y + number * BAR_STEP)


def _bar(axis: Axis, entry: Entry, y: float) -> Iterator[str]:
    one, end = axis.place(1), axis.place(times_ours(entry))
    left, width = min(one, end), max(abs(end - one), 1.5)
    maker = maker_of(entry.rival or "")
    yield f'<rect class="{COLOURS[maker]}" x="{left}" y="{y:g}" width="{width:.1f}" height="{BAR}" rx="2"/>'
    x, amount = max(end, one) + 7, human(entry.rival_best or 0.0, entry.unit)
    times = f'<tspan class="times">{times_text(entry)}</tspan>'
    yield f'<text x="{x:g}" y="{y + 11.5:g}" class="muted">{times} {escape(maker)}, {escape(amount)}</text>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    attributes = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:g}" y="{y:g}"{attributes}>{escape(text)}</text>'
