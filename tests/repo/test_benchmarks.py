"""The benchmarks run: every case of ours in its short form, without rivals and without a network.

How long something takes is never asked here: a test that fails on a busy machine proves nothing.
"""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from benchmarks.harness.groups import AHEAD, Group, Line, Subject, at_most, part
from benchmarks.harness.plan import GROUPS
from benchmarks.harness.rivals import NAMED, REFERENCE
from benchmarks.harness.rivals import RIVALS as INSTALLED
from benchmarks.harness.rounds import CASES, CaseFailed, Findings, Measured, read_metrics, run_case, run_group
from benchmarks.harness.server import SETTINGS, Server
from benchmarks.harness.table import entries_of, table_text
from tests.repo.source_files import ROOT

SUBJECTS = {
    f"{group.name}, {subject.name}": (group, subject) for group in GROUPS.values() for subject in group.subjects
}
OURS = {name: found for name, found in SUBJECTS.items() if not found[1].is_rival}
RIVALS = {name: found for name, found in SUBJECTS.items() if found[1].is_rival}

ALONE = Group("alone", (), (Line("a step", "step", "ours", "theirs", (part(10), AHEAD, at_most(5, "µs"))),))
PROMISED = "≤ 1/10, ≤ 1 ×, ≤ 5 µs"


def cells_of(ours: list[float], theirs: list[float], group: Group = ALONE) -> tuple[str, ...]:
    """What the table shows for these samples."""
    metrics = {"ours": ours, "theirs": theirs}
    found = Findings({name: {"step": Measured("µs", samples)} for name, samples in metrics.items() if samples})
    return entries_of(group, found)[0].cells()


@pytest.mark.parametrize("name", OURS)
def test_case_of_ours_runs_and_prints_every_metric_that_the_table_shows(name, tmp_path, request):
    group, subject = OURS[name]
    shown = {line.metric for line in group.lines if subject.name in (line.ours, line.rival)}
    server = Server(request.getfixturevalue("postgres_dsn")) if subject.is_on_postgres else None

    metrics = run_case(sys.executable, subject, server=server, quick=True, scratch=tmp_path)

    assert shown <= metrics.keys()
    assert all(math.isfinite(sample) for measured in metrics.values() for sample in measured.samples)


@pytest.mark.parametrize("name", RIVALS)
def test_case_of_a_rival_is_a_program_that_does_not_know_us(name):
    tree = ast.parse((CASES / RIVALS[name][1].script).read_text(encoding="utf-8"))

    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert "bide" not in modules


@pytest.mark.parametrize("name", GROUPS)
def test_lines_of_a_group_speak_of_its_subjects(name):
    group = GROUPS[name]
    subjects = {subject.name for subject in group.subjects}

    spoken_of = {subject for line in group.lines for subject in (line.ours, line.rival) if subject is not None}
    needed = {subject.needs[1] for subject in group.subjects if subject.needs is not None}

    assert spoken_of | needed <= subjects
    assert len(subjects) == len(group.subjects)


def test_command_prints_the_table_and_writes_it_for_machines(tmp_path):
    file = tmp_path / "told.json"
    command = [sys.executable, "benchmarks/run.py", "--ours", "--quick", "--only", "engine", "--json", str(file)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| a step, no store +\| [\d.]+ µs", done.stdout, re.MULTILINE)
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["machine"].keys() >= {"machine", "software", "load"}
    assert [(line["what"], line["budgets"]) for line in told["lines"]] == [
        ("a step, no store", [{"budget": "≤ 1/10", "verdict": "not measured"}])
    ]


def test_subjects_take_turns_and_what_one_measured_is_given_to_the_next(tmp_path):
    group = GROUPS["sqlite"]
    told: list[str] = []

    found = run_group(group, 2, None, told.append, quick=True, scratch=tmp_path)

    ours, raw = "Bide, SQLite", "one row, one commit"
    assert told == [f"sqlite, round {number}: {name}" for number in (1, 2) for name in (ours, raw)]
    laps = {name: len(found.metrics[name]["step"].samples) for name in (ours, raw)}
    assert laps == {ours: 4, raw: 4}, "two laps in each round"
    assert not found.problems


def test_case_on_postgres_is_not_run_without_a_server(tmp_path):
    group = GROUPS["postgres"]

    found = run_group(group, 1, None, lambda text: None, quick=True, scratch=tmp_path)

    assert not found.metrics
    assert found.problems["Bide, PostgreSQL"] == "it needs a PostgreSQL, and none was started"


def test_case_on_postgres_gets_a_database_of_its_own_that_is_gone_afterwards(postgres_dsn):
    server = Server(postgres_dsn)
    databases = "SELECT count(*) FROM pg_database WHERE datname = %s"

    with server.empty_database() as url, server.connected() as connection:
        name = urlsplit(url).path.removeprefix("/")
        while_it_lasted = connection.execute(databases, (name,)).fetchone()

    with server.connected() as connection:
        afterwards = connection.execute(databases, (name,)).fetchone()
    assert (while_it_lasted, afterwards) == ((1,), (0,))


def test_address_of_a_database_carries_what_the_server_was_reached_with():
    server = Server("host=/run/pg port=5433 user=bide password='a b' dbname=postgres")

    assert server.url("bench_1") == "postgresql://bide:a%20b@/bench_1?host=/run/pg&port=5433"


def test_server_of_the_benchmarks_waits_for_its_disk():
    assert {SETTINGS[name] for name in ("fsync", "full_page_writes", "synchronous_commit")} == {"on"}


def test_subject_that_fails_is_named_with_its_reason_and_not_asked_again(tmp_path):
    broken = Subject("broken", "loop_bide.py", ("--store", "stone"))
    told: list[str] = []

    found = run_group(Group("bad", (broken,), ()), 3, None, told.append, scratch=tmp_path)

    assert "invalid choice: 'stone'" in found.problems["broken"]
    assert told == ["bad, round 1: broken"]


@pytest.mark.parametrize(
    "printed",
    ["", "12.5", "{}", '{"metrics": {}}', '{"metrics": {"step": {"unit": "µs", "samples": []}}}', '{"metrics": [1]}'],
)
def test_case_that_prints_anything_but_metrics_is_refused(printed):
    with pytest.raises(CaseFailed):
        read_metrics(printed)


def test_least_sample_counts_and_the_median_is_shown_behind_it():
    cells = cells_of([30.0, 2.0, 4.0], [50.0, 80.0, 25.0])

    assert cells[:5] == ("a step", "2.00 µs (4.00)", "theirs", "25.0 µs (50.0)", "1/12.5")
    assert cells[5:] == ("", PROMISED, "met, met, met")


def test_budget_that_is_not_kept_is_called_missed():
    assert cells_of([30.0], [20.0])[4:] == ("1.50 ×", "", PROMISED, "missed, missed, missed")


def test_verdict_on_samples_that_are_far_apart_carries_a_question_mark():
    assert cells_of([2.0, 5.0], [25.0, 25.0])[-1] == "met, met, met"
    assert cells_of([2.0, 9.0], [25.0, 25.0])[-1] == "met?, met?, met?"
    assert cells_of([20.0, 20.0], [10.0, 99.0])[-1] == "missed?, missed?, missed"


def test_budget_without_a_rival_to_compare_with_is_not_called_met():
    assert cells_of([3.0], [])[-1] == "not measured, not measured, met"


def test_budget_whose_work_is_still_to_come_is_called_later():
    line = Line("a step", "step", "ours", None, (at_most(2, "µs", is_later=True),))

    assert cells_of([3.0], [], Group("later", (), (line,)))[-1] == "later"
    assert cells_of([1.0], [], Group("later", (), (line,)))[-1] == "met"


def test_table_is_markdown_with_columns_in_line():
    entries = entries_of(ALONE, Findings({"ours": {"step": Measured("µs", [1.0])}}))

    lines = table_text(entries).splitlines()

    assert len({len(line) for line in lines}) == 1
    assert re.fullmatch(r"\|(-+\|)+", lines[1])


def test_rivals_are_pinned_by_version_and_nothing_else():
    lines = [line for home in (INSTALLED, REFERENCE) for line in home.pins.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]

    assert "langgraph==1.2.20" in lines
    assert {line.split("==")[0] for line in lines} >= set(NAMED)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[\w.]+", line) for line in lines)
