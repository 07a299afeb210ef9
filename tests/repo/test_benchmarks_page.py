"""docs/benchmarks.md, its plot and its data are of one run, and tell of everything that is measured."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness.command import read_arguments
from benchmarks.harness.groups import Line
from benchmarks.harness.plan import GROUPS
from benchmarks.harness.plot import FASTER, SLOWER, Axis, human, is_drawn, label_of, plot_of, times_text
from benchmarks.harness.report import BEGIN, DATA, END, PAGE, PLOT, Report, page_with, read_report, write_report
from benchmarks.harness.rounds import Findings, Measured
from benchmarks.harness.table import Entry, entries_of
from tests.repo.source_files import ROOT

DOCS = ROOT / "docs"
SVG = "{http://www.w3.org/2000/svg}"
WHOLE_LINES = [line for group in GROUPS.values() for line in group.lines]


def entry_of(ours: float, theirs: float, group: str = "engine") -> Entry:
    """The first line of a group, with these amounts."""
    line: Line = GROUPS[group].lines[0]
    metrics = {
        name: {line.metric: Measured("µs", [value])} for name, value in ((line.ours, ours), (line.rival, theirs))
    }
    return entries_of(GROUPS[group], Findings(metrics))[0]


def texts_of(svg: str) -> list[str]:
    """Every text that the plot shows."""
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def bars_of(svg: str) -> list[ElementTree.Element]:
    """The bars, without the card behind them and the squares of the colours' names."""
    return [bar for bar in ElementTree.fromstring(svg).iter(f"{SVG}rect") if bar.get("height") == "14"]


def test_page_names_every_group_and_explains_every_line_of_the_table():
    page = (DOCS / PAGE).read_text(encoding="utf-8")

    unnamed = {name for name in GROUPS if f"`{name}`" not in page}
    unexplained = {line.what for line in WHOLE_LINES if f"**{line.what}**" not in page}

    assert not unnamed
    assert not unexplained


def test_table_plot_and_data_are_of_one_run():
    report = read_report(DOCS / DATA)
    page = (DOCS / PAGE).read_text(encoding="utf-8")

    assert page == page_with(page, report)
    assert (DOCS / PLOT).read_text(encoding="utf-8") == plot_of(report.entries)


def test_last_run_measured_every_line_of_the_plan():
    report = read_report(DOCS / DATA)

    measured = [(entry.group, entry.what, entry.ours, entry.rival) for entry in report.entries]

    planned = [(group.name, line.what, line.ours, line.rival) for group in GROUPS.values() for line in group.lines]
    assert measured == planned
    assert not [entry.what for entry in report.entries if entry.problem]


def test_plot_shows_a_bar_and_the_ratio_of_every_line_that_compares_two_amounts():
    report = read_report(DOCS / DATA)
    drawn = [entry for entry in report.entries if is_drawn(entry)]

    svg = (DOCS / PLOT).read_text(encoding="utf-8")

    texts = texts_of(svg)
    assert len(bars_of(svg)) == len(drawn) > 0
    for entry in drawn:
        assert label_of(entry.what) in texts
        assert any(text.startswith(times_text(entry)) for text in texts)


def test_page_names_no_folder_and_no_host():
    told = (DOCS / DATA).read_text(encoding="utf-8") + (DOCS / PLOT).read_text(encoding="utf-8")

    assert str(ROOT) not in told
    assert str(Path.home()) not in told
    assert "/tmp" not in told


def test_new_run_replaces_what_is_between_the_marks_and_nothing_else(tmp_path):
    (tmp_path / PAGE).write_text(f"Above.\n\n{BEGIN}\nold\n{END}\n\nBelow.\n", encoding="utf-8")
    report = Report({"machine": "an abacus"}, (entry_of(10.0, 200.0),))

    write_report(tmp_path, report)

    page = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert page.startswith("Above.\n\n<!--")
    assert page.endswith("-->\n\nBelow.\n")
    assert "- machine: an abacus\n" in page
    assert "| 1/20.0 |" in page
    assert "old" not in page
    assert read_report(tmp_path / DATA) == report


def test_page_without_a_place_for_the_table_is_not_written():
    with pytest.raises(ValueError, match="no place for the table"):
        page_with("A page about something else.", Report({}, ()))


def test_bar_of_a_slower_one_goes_right_and_that_of_a_faster_one_left():
    slower, faster = bars_of(plot_of([entry_of(10.0, 200.0), entry_of(10.0, 5.0, "sqlite")]))

    one = Axis.around([20.0, 0.5]).place(1)
    assert float(slower.get("x")) == one
    assert float(faster.get("x")) + float(faster.get("width")) == pytest.approx(one, abs=0.2)


def test_both_sides_of_the_axis_say_what_they_mean():
    shown = {"".join(text.itertext()): text for text in ElementTree.fromstring(plot_of([entry_of(10.0, 200.0)])).iter()}

    one = Axis.around([20.0]).place(1)
    assert float(shown[SLOWER].get("x")) < one < float(shown[FASTER].get("x"))
    assert shown[SLOWER].get("text-anchor") == "end"


def test_ratio_whose_samples_are_far_apart_is_marked_as_in_the_table():
    sure = entry_of(10.0, 200.0)
    unsure = replace(sure, rival_usual=401.0)

    assert times_text(sure) == "20.0 ×"
    assert times_text(unsure) == "20.0 ×?"


def test_equal_steps_of_the_axis_are_equal_ratios():
    axis = Axis.around([0.2, 90.0])

    steps = [axis.place(ratio * 10) - axis.place(ratio) for ratio in (0.5, 1, 3, 9)]

    assert steps == pytest.approx([steps[0]] * 4, abs=0.2)


def test_line_without_a_rival_or_with_nothing_to_compare_has_no_bar():
    listing = next(line for line in GROUPS["paused"].lines if line.rival is None)
    alone = entries_of(GROUPS["paused"], Findings({listing.ours: {listing.metric: Measured("ms", [1.0])}}))

    assert not any(is_drawn(entry) for entry in alone)
    assert not is_drawn(entry_of(0.0, 200.0))


@pytest.mark.parametrize(
    ("amount", "unit", "shown"),
    [
        (12.2, "µs", "12.2 µs"),
        (9_999, "µs", "9999 µs"),
        (318_969, "µs", "319 ms"),
        (51_225, "B", "50.0 KB"),
        (7, "×", "7.00 ×"),
    ],
)
def test_amount_is_shown_in_a_unit_in_which_it_is_short(amount, unit, shown):
    assert human(amount, unit) == shown


@pytest.mark.parametrize("part", [["--quick"], ["--ours"], ["--only", "engine"], ["--rounds", "1"]])
def test_part_of_a_run_leaves_the_page_alone_unless_it_is_told_to(part):
    assert read_arguments([]).docs == DOCS
    assert read_arguments(part).docs is None
    assert read_arguments([*part, "--docs", "here"]).docs == Path("here")
