"""The protocol of claim, lease, fence, wait and wake holds in every state that there is; Spin looks at all of them.

The model is docs/model/protocol.pml. A search that finds nothing shows little by itself, so the model has flags that
break it as a careless programmer would, and for each of them Spin must find the promise that is broken.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.model.checker import MODEL, break_formula, search_formula, search_promises

Scene = tuple[str, ...]
# Together they would be one search of a minute; what one adds to another is the same with fewer faults.
SCENES = [("FAULTS=2",), ("FAULTS=1", "CANCEL"), ("FAULTS=1", "SECOND_RUN"), ("FAULTS=0", "CANCEL", "SECOND_RUN")]
OLDER_EPOCH, TWO_WRITERS = "(holding[me]==runs[r].epoch)", "writer[r]==me"
BROKEN_PROMISES = {
    # what a programmer forgot: the promise that breaks, as Spin prints it
    "NO_EPOCH": OLDER_EPOCH,
    "FENCE_WITHOUT_LOCK": OLDER_EPOCH,
    "NO_CLAIM_CAS": TWO_WRITERS,
    "INPUT_NOT_CONSUMED": "(applied[0]<=1)",
    "INPUT_TAKEN_BY_CLAIM": "(applied[r]==1)",
    "JOURNAL_AFTER_EFFECT": "(effects<=1)",
    "NO_ANSWER_CAS": "(winners[1]<=1)",
    "OWNER_NOT_CLEARED": "(runs[0].status==4)==(runs[0].owner!=3)",  # running ⇔ leased
    "LOCKS_OUT_OF_ORDER": "invalid end state",  # a deadlock
}
LOST_WAKES = [
    "NO_CORRELATION_LOCK",
    "NO_LOOK_BACK",
    "PENDING_NOT_SWEPT",
    "REGISTER_AFTER_COMMIT",
    "WAKE_IGNORES_RUNNING",
    "LOAD_BEFORE_CLAIM",
]
WITH_A_SECOND_RUN = ["NO_THREAD_LOCK", "START_IGNORES_LIVE"]


# --- the true model ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES, ids=" ".join)
def test_every_promise_holds_in_every_state_and_nobody_waits_for_a_lock_for_ever(tmp_path: Path, scene: Scene):
    verdict = search_promises(tmp_path, *scene)

    assert verdict.complete, verdict
    assert not verdict.broken, verdict


@pytest.mark.slow
def test_run_whose_event_is_stored_and_whose_wait_is_registered_ends(tmp_path: Path):
    verdict = search_formula(tmp_path, "no_lost_wake", "FAULTS=1")

    assert verdict.complete, verdict
    assert not verdict.broken, verdict


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES, ids=" ".join)
def test_every_run_ends_whatever_crashes_and_stalls(tmp_path: Path, scene: Scene):
    verdict = search_formula(tmp_path, "every_run_ends", *scene)

    assert verdict.complete, verdict
    assert not verdict.broken, verdict


@pytest.mark.slow
def test_every_line_of_the_model_has_a_part_in_some_story(tmp_path: Path):
    with_cancel = search_promises(tmp_path, "FAULTS=1", "CANCEL")
    with_a_second_run = search_promises(tmp_path, "FAULTS=1", "SECOND_RUN")

    idle = with_cancel.unreached & with_a_second_run.unreached

    assert [line.rpartition(", ")[2] for line in idle] == ['"-end-"', '"-end-"']  # stalls and reaper go on for ever


# --- the broken ones --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("flag", BROKEN_PROMISES)
def test_broken_promise_is_found(tmp_path: Path, flag: str):
    verdict = search_promises(tmp_path, flag, "FAULTS=1")

    assert BROKEN_PROMISES[flag] in verdict.broken, verdict


@pytest.mark.slow
@pytest.mark.parametrize("flag", LOST_WAKES)
def test_lost_wake_is_found_and_no_unfair_scheduler_is_to_blame(tmp_path: Path, flag: str):
    verdict = break_formula(tmp_path, "no_lost_wake", flag, "FAULTS=1")

    assert verdict.broken == "acceptance cycle", verdict


@pytest.mark.slow
def test_queued_run_that_is_left_behind_is_found(tmp_path: Path):
    verdict = break_formula(tmp_path, "every_run_ends", "NO_THREAD_LOCK", "SECOND_RUN", "FAULTS=0")

    assert verdict.broken == "acceptance cycle", verdict


@pytest.mark.slow
def test_second_live_run_is_found(tmp_path: Path):
    verdict = search_promises(tmp_path, "START_IGNORES_LIVE", "SECOND_RUN", "FAULTS=0")

    assert re.search(r"\(runs\[0\]\.status.*\|\|.*!.*\(runs\[1\]\.status", verdict.broken), verdict


# --- model, tests and page speak of the same --------------------------------------------------------------------------


def test_every_flag_of_the_model_has_a_test_and_a_place_in_the_readme():
    flags = set(re.findall(r"^#ifn?def (\w+)", MODEL.read_text(encoding="utf-8"), re.MULTILINE))
    readme = (MODEL.parent / "README.md").read_text(encoding="utf-8")

    assert flags == {*BROKEN_PROMISES, *LOST_WAKES, *WITH_A_SECOND_RUN, "CANCEL", "SECOND_RUN", "FAULTS"}
    assert not [flag for flag in flags if f"`{flag}" not in readme]


def test_every_promise_of_the_model_has_a_place_in_the_readme():
    model = MODEL.read_text(encoding="utf-8")
    readme = (MODEL.parent / "README.md").read_text(encoding="utf-8").replace(r"\|", "|")  # as a table must write it

    promises = re.findall(r"^ +(assert\(.*\));?$", model, re.MULTILINE) + re.findall(r"^ltl (\w+)", model, re.MULTILINE)

    assert len(promises) > 8
    assert not [promise for promise in promises if f"`{promise}`" not in readme]
