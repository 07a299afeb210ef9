"""A process that drives a graph of LangGraph dies by SIGKILL at a write, and another one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bide.interop.langgraph import BideSaver
from tests.interop.graphs import CONFIG, asking
from tests.interop.programs.talk import LONG, drive

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parent / "programs" / "talk.py"
# Between two statements, and at the ends of a transaction that no other one can have joined.
POINTS = [
    *("saver_put:begun", "saver_put:saver_put_checkpoint", "saver_put:committed"),
    *("saver_put:saver_put_value@2", "saver_put:saver_put_checkpoint@3", "saver_put:saver_put_checkpoint@5"),
    *("saver_writes:saver_put_write", "saver_writes:saver_put_write@3", "saver_writes:saver_replace_write"),
    *("saver_writes:saver_put_write@5", "saver_writes:committed"),
]


@pytest.mark.parametrize("point", POINTS)
def test_the_thread_ends_as_if_nothing_had_happened(lasting_url: str, point: str) -> None:
    killed = subprocess.run(
        [sys.executable, str(PROGRAM), lasting_url],
        env={**os.environ, "BIDE_FAILPOINT": point},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, f"did not die: {killed.stderr or killed.stdout}"

    ended = drive(lasting_url)

    assert ended == {"log": [LONG, "prepared", "answered yes"], "answer": "yes"}
    with BideSaver(lasting_url) as saver:
        history = list(asking().compile(checkpointer=saver).get_state_history(CONFIG))  # type: ignore[arg-type]
    assert [state.values["log"] for state in history[::-1]][-1] == ended["log"]
    assert history[-1].parent_config is None, "the line of checkpoints goes back to the first"
