"""The demo does what it says, says when it does not, and never hangs."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bide.demo.audit import Evidence, audit
from bide.demo.crew import Crew, Death, Files, ServerFailed
from bide.demo.inbox import length
from bide.demo.outside import calls_in, write_down

WIDTH = 80

pytestmark = pytest.mark.timeout(400)  # each story starts three servers, on a machine that may be busy


def run_demo(folder: Path, *words: str, typed: str | None = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as a user does; its files are made in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "bide.demo", *words],
        input=typed,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "TMPDIR": str(folder), **env},
    )


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """One run of `--yes`, looked at by several tests."""
    return run_demo(tmp_path_factory.mktemp("told"), "--yes")


# ── The story ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_story_kills_two_servers_and_everything_goes_on(told):
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stderr == ""
    assert len(re.findall(r"✗ kill -9 +process \d+ is gone", told.stdout)) == 2
    assert len(re.findall(r"↻ read +a book about \w+  \(same key as before: no second effect\)", told.stdout)) == 3
    assert "Killed in the middle: nothing was lost, and nothing was done twice." in told.stdout


def test_story_shows_who_waits_for_what_and_until_when(told):
    first, without_a_worker, bank, last = re.findall(r"\nInbox (.*?)\n\n", told.stdout, flags=re.DOTALL)

    assert re.search(r"refund-1 +you: Refund 120 EUR to Grace\? +\d+ s +in 24 h", first)
    assert re.search(r"quote-1 +an e-mail from ada@example.org +\d+ s +in 48 h", first)
    assert re.search(r"research-1 +its 3 readers", first)
    assert "quote-1" not in without_a_worker
    assert re.search(r"quote-1 +the webhook 'payments' +\d+ s +in 14 d", bank)
    assert "nobody waits for anything" in last


def test_story_explains_why_a_mail_woke_nobody_and_refuses_a_forged_call(told):
    assert "subject 'Out of office' does not match the pattern 'Re: *quote-1'" in told.stdout
    assert "not the bank: 401, nothing was stored" in told.stdout
    assert "quote-1 is paid (duplicate)" in told.stdout


@pytest.mark.slow
def test_nobody_to_click_means_the_whole_story_with_a_note_and_no_hanging(tmp_path):
    done = run_demo(tmp_path, typed="")

    assert done.returncode == 0
    assert "nobody is there to click: telling the whole story" in done.stdout
    assert "Killed in the middle" in done.stdout


# ── The tour ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Visit:
    """A visitor at a terminal, with the demo on it."""

    def __init__(self, folder: Path, **env: str) -> None:
        self._person, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bide.demo"],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(folder), "TERM": "xterm", **env},
        )
        os.close(terminal)
        self.shown = ""

    def until(self, pattern: str) -> re.Match[str]:
        """Read along until something is shown."""
        while not (found := re.search(pattern, self.shown)):
            ready, _, _ = select.select([self._person], [], [], 90)
            assert ready, f"{pattern} is not shown:\n{self.shown}"
            self.shown += os.read(self._person, 4096).decode().replace("\r\n", "\n")
        return found

    def leave(self, how: int = signal.SIGINT) -> int:
        """End the demo; return its exit code."""
        self.process.send_signal(how)
        try:
            while part := os.read(self._person, 4096):
                self.shown += part.decode()
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(self._person)
        return self.process.wait(60)


def typed_at(url: str, line: str) -> None:
    """Do what a line of the tour says, without a shell."""
    words = shlex.split(line)
    headers = dict(words[number + 1].split(": ") for number, word in enumerate(words) if word == "-H")
    body = words[words.index("--json") + 1].encode()
    request = urllib.request.Request(words[1], body, {**headers, "content-type": "application/json"})
    assert words[1].startswith(url)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


@pytest.mark.slow
def test_visitor_types_what_the_tour_shows_kills_the_server_and_sees_all_go_on(tmp_path):
    visit = Visit(tmp_path, NO_COLOR="1")
    url = visit.until(r"Open +(http://127\.0\.0\.1:\d+)/")[1]
    mail = visit.until(r"\n +(curl \S+/deliveries --json '.*')\n")[1]
    bank = visit.until(r"\n +(curl \S+/hooks/payments .*)\n")[1]
    pid = int(visit.until(r"; kill -9 (\d+)\n")[1])
    visit.until(r"a book about moods")

    os.kill(pid, signal.SIGKILL)
    visit.until(rf"process {pid} is gone(?s:.)*process \d+ serves, and works")
    typed_at(url, mail)
    visit.until(r"order +3 teapots")
    typed_at(url, bank)
    visit.until(r"✓ quote-1 +3 teapots, for they wrote: “Yes, please!” and paid")
    with urllib.request.urlopen(f"{url}/", timeout=60) as inbox:
        assert b"Refund 120 EUR to Grace?" in inbox.read()

    assert visit.leave() == 0
    assert "Next: the first lines of README.md" in visit.shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_server_does_not_outlive_the_demo_however_that_ends(tmp_path, how):
    visit = Visit(tmp_path)
    pid = int(visit.until(r"kill -9 (\d+)")[1])
    server = os.pidfd_open(pid)

    code = visit.leave(how)
    ended, _, _ = select.select([server], [], [], 60)
    os.close(server)

    assert ended
    assert code == (-signal.SIGKILL if how is signal.SIGKILL else 0)


# ── How it looks ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_output_for_a_pipe_is_plain_and_fits_the_screen(told):
    own_lines = [line for line in told.stdout.splitlines() if "bide.db" not in line]

    assert "\x1b" not in told.stdout
    assert [line for line in own_lines if len(line) > WIDTH] == []


@pytest.mark.slow
@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_person_at_a_terminal_sees_colours_unless_they_are_unwanted(tmp_path, no_color, is_coloured):
    visit = Visit(tmp_path, NO_COLOR=no_color)
    visit.until("Ctrl-C leaves")

    assert visit.leave() == 0
    assert ("\x1b[" in visit.shown) is is_coloured


@pytest.mark.slow
def test_ascii_terminal_shows_the_story_too(tmp_path):
    done = run_demo(tmp_path, "--yes", PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert "? refund-1" in done.stdout


def test_reader_who_leaves_early_gets_no_traceback(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "bide.demo", "--yes"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as demo:
        assert demo.stdout is not None
        demo.stdout.close()
        complaints = demo.stderr.read() if demo.stderr is not None else ""

    assert complaints == ""
    assert demo.returncode == 141
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (timedelta(seconds=0.4), "0 s"),
        (timedelta(seconds=90), "90 s"),
        (timedelta(minutes=5), "5 min"),
        (timedelta(hours=48), "48 h"),
        (timedelta(days=14), "14 d"),
        (timedelta(seconds=-3), "0 s"),
    ],
)
def test_lengths_of_time_are_said_as_people_say_them(passed, said):
    noon = datetime(2027, 1, 1, tzinfo=UTC)

    assert length(noon + passed, noon) == said


# ── Its files ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_nothing_is_left_behind_unless_asked_for(tmp_path):
    run_demo(tmp_path, "--yes")
    assert list(tmp_path.iterdir()) == []

    kept = run_demo(tmp_path, "--yes", "--keep")
    (folder,) = tmp_path.iterdir()
    assert {"bide.db", "bide.db.ledger.jsonl"} <= {path.name for path in folder.iterdir()}
    assert f"Kept: {folder / 'bide.db'}" in kept.stdout


@pytest.mark.slow
def test_own_database_is_used_again_and_what_an_earlier_visitor_left_does_not_disturb(tmp_path):
    path = tmp_path / "mine.db"

    codes = [run_demo(tmp_path, "--yes", "--db", str(path)).returncode for _ in range(2)]

    assert codes == [0, 0]
    done = [call.what for call in calls_in(f"{path}.ledger.jsonl") if call.has_effect]
    assert (done.count("mail"), done.count("order"), done.count("publish")) == (2, 2, 2)


def test_path_that_cannot_be_used_is_told_before_anything_starts(tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("not a database\n")

    done = run_demo(tmp_path, "--yes", "--db", str(note))

    assert done.returncode == 1
    assert "The demo could not go on:" in done.stderr
    assert "is not a database" in done.stderr
    assert "Traceback" not in done.stderr
    assert note.read_text() == "not a database\n"


# ── Its own checks can fail ────────────────────────────────────────────────────────────────────────────────────────


def honest_evidence(tmp_path: Path) -> Evidence:
    """What a good run leaves behind, with a ledger made by real calls."""
    ledger = str(tmp_path / "ledger.jsonl")
    made = ["mail", "read 1", "read 2", "read 3", "read 1", "read 2", "read 3", "order", "pay", "publish"]
    waited = ["run.ready", "run.started", "run.waiting", "wait.answered", "run.done"]
    taken_over = ["run.ready", "run.started", "run.reaped", "run.done"]
    return Evidence(
        deaths=[Death(1, -9), Death(2, -9)],
        calls=[write_down(ledger, what.split()[0], "something", what) for what in made],
        outcomes={
            "quote": "they wrote: “Yes, please!” and paid",
            "refund": "120 EUR back",
            "research": "published: it",
        },
        logs={
            **dict.fromkeys(("refund", "research"), waited),
            "quote": [*waited[:-1], "run.waiting", *waited[-2:]],
            **dict.fromkeys(("research/1", "research/2", "research/3"), taken_over),
        },
        hooks=["forged", "delivered", "duplicate"],
        open_waits=0,
    )


def test_honest_run_passes_every_check(tmp_path):
    findings = audit(honest_evidence(tmp_path))

    assert len(findings) == 7
    assert [finding.problem for finding in findings if finding.problem] == []


def paid_twice(evidence: Evidence) -> Evidence:
    pay = next(call for call in evidence.calls if call.what == "pay")
    return replace(evidence, calls=[*evidence.calls, pay._replace(key="other")])


def never_ordered(evidence: Evidence) -> Evidence:
    return replace(evidence, calls=[call for call in evidence.calls if call.what != "order"])


def finished_step_made_again(evidence: Evidence) -> Evidence:
    mail = next(call for call in evidence.calls if call.what == "mail")
    return replace(evidence, calls=[*evidence.calls, mail._replace(has_effect=False)])


def mail_not_heard(evidence: Evidence) -> Evidence:
    return replace(evidence, outcomes={**evidence.outcomes, "quote": "no answer in two days"})


def thread_without_an_end(evidence: Evidence) -> Evidence:
    return replace(evidence, logs={**evidence.logs, "quote": ["run.ready", "run.waiting"]})


def wait_answered_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, logs={**evidence.logs, "refund": ["wait.answered", "wait.answered", "run.done"]})


def question_left_open(evidence: Evidence) -> Evidence:
    return replace(evidence, open_waits=1)


def payment_counted_twice(evidence: Evidence) -> Evidence:
    return replace(evidence, hooks=["forged", "delivered", "delivered"])


def forged_call_believed(evidence: Evidence) -> Evidence:
    return replace(evidence, hooks=["delivered", "duplicate"])


def server_that_ended_by_itself(evidence: Evidence) -> Evidence:
    return replace(evidence, deaths=[Death(1, -9), Death(2, 0)])


def nobody_to_take_over(evidence: Evidence) -> Evidence:
    return replace(evidence, logs={**evidence.logs, "research/1": ["run.ready", "run.done"]})


LIES: dict[Callable[[Evidence], Evidence], str] = {
    paid_twice: "'pay' happened 2 times",
    never_ordered: "'order' happened 0 times",
    finished_step_made_again: "'mail': 1",
    mail_not_heard: "No thread knows of 'Yes, please!'",
    thread_without_an_end: "The log of quote does not end with run.done",
    wait_answered_twice: "answered: 5, not 4",
    question_left_open: "Still open: 1",
    payment_counted_twice: "The webhook was told ['forged', 'delivered', 'delivered']",
    forged_call_believed: "The webhook was told ['delivered', 'duplicate']",
    server_that_ended_by_itself: "died by SIGKILL: 1, not 2",
    nobody_to_take_over: "taken over: 2, not 3",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_check_notices(tmp_path, lie):
    findings = audit(lie(honest_evidence(tmp_path)))

    assert LIES[lie] in " ".join(finding.problem for finding in findings)


def test_server_that_ends_by_itself_is_told_with_its_last_words(tmp_path):
    crew = Crew(Files(str(tmp_path), str(tmp_path / "ledger.jsonl")))

    with pytest.raises(ServerFailed, match=r"ended by itself \(exit code 1\).*Error"):
        crew.hire(0.0)
    crew.dismiss()


def test_ledger_answers_a_known_key_with_the_first_receipt(tmp_path):
    ledger = str(tmp_path / "ledger.jsonl")

    first, second = (write_down(ledger, "pay", "Grace", "key") for _ in range(2))

    assert first.has_effect
    assert not second.has_effect
    assert second.receipt == first.receipt
