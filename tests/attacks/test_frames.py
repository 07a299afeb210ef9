"""Tens of thousands of hostile frames are read in a process that reports every import, call, file and socket.

Each of them gives a value that can be written and comes back, or an error with a type; nothing else happens.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.attacks.child import report_of, shared_report
from tests.attacks.corpus import FAMILIES

pytestmark = pytest.mark.slow

TYPED = {"CorruptDataError", "UnknownTypeError", "CodecError", "value"}

FEWEST = {
    "pickles": 9_000,
    "extensions": 9_000,
    "nested_extensions": 2_000,
    "names": 10_000,
    "langgraph_names": 1_000,
    "chat_messages": 3_000,
    "constructors": 700,
    "scalars": 2_500,
    "containers": 600,
    "texts_and_numbers": 700,
    "bombs": 150,
    "truncations": 700,
    "flips": 7_000,
    "mixtures": 4_000,
    "noise": 1_000,
    "langgraph": 14_000,
}
"""How many frames each family has at least: a corpus that has shrunk proves less than it says."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What came of every frame."""
    return shared_report(tmp_path_factory, "read_frames.py")


@pytest.mark.parametrize("family", [*FAMILIES, "noise", "langgraph"])
def test_hostile_frames_run_nothing_and_give_a_value_or_a_typed_error(report, family):
    outcomes, violations = report[family]["outcomes"], report[family]["violations"]

    assert violations == []
    assert set(outcomes) <= TYPED
    assert sum(outcomes.values()) >= FEWEST[family]


def test_no_truncated_frame_is_read(report):
    assert report["truncations"]["outcomes"].keys() == {"CorruptDataError"}


def test_constructor_dicts_come_back_as_the_dicts_that_they_are(report):
    assert report["constructors"]["outcomes"]["value"] >= 100


@pytest.mark.parametrize(
    ("act", "event"),
    [("import", "import"), ("eval", "exec"), ("open", "open"), ("process", "os.posix_spawn")],
)
def test_the_watch_would_have_seen_it(report, act, event):
    assert any(alarm.startswith(event) for alarm in report["control"][act])


def test_only_a_message_of_langchain_loads_langchain_and_its_name_is_in_our_code():
    found = report_of("import_langchain.py")

    assert found["other frames"] == []
    assert found["unloaded"]
    assert found["a message"] > 0
