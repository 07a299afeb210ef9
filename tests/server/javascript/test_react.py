"""Pages with `useStream`, the new and the old one, rendered without a browser: words, questions, reloads, stops."""

from __future__ import annotations

import pytest

from tests.server.javascript.conftest import Script

# Servers and Node are started, on machines that may have much else to do.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

GREETED = ["human: hello", "ai: You said hello"]
AGAIN = ["human: again", "ai: You said again"]
MORE = ["human: more", "ai: You said more"]


def test_page_shows_words_goes_on_after_a_reload_and_answers_questions(script: Script) -> None:
    seen = script("react")

    assert seen["first"] == GREETED
    assert seen["second"] == GREETED + AGAIN
    assert seen["third"] == GREETED + AGAIN + MORE
    assert not seen["shrunk"], "what was said stays shown while the thread is told again"
    assert seen["beginning"] == "ai: Once upon"

    assert seen["asked"]["action_requests"][0]["name"] == "send_mail"
    assert seen["answered"] == ["human: tell ada", "ai: I would send a mail", "ai: It is done"]
    assert seen["decision"] == {"decisions": [{"type": "approve"}]}
    assert seen["both"] == {"where": "Rome", "when": "May"}


def test_page_works_until_its_own_run_is_over_and_stops_it(script: Script) -> None:
    seen = script("react_stop")

    assert seen["before"] == {"isOver": False, "shown": "works"}
    assert seen["after"] == "rests"
    assert (seen["created"], seen["completed"]) == (2, "success")
    assert seen["stopped"] == "interrupted"


def test_older_page_edits_asks_rejoins_after_a_reload_and_stops(script: Script) -> None:
    seen = script("legacy_react")

    assert seen["named"]
    assert seen["said"] == GREETED
    assert seen["edited"] == ["human: goodbye", "ai: You said goodbye"]
    assert seen["beginning"].startswith("ai: Once upon")

    assert seen["asked"]["action_requests"][0]["name"] == "send_mail"
    assert seen["decision"] == {"decisions": [{"type": "reject", "message": "no"}]}

    assert seen["kept"] == seen["run"]
    assert seen["rejoined"] == ["first plain", "passed", "last"]
    assert (seen["forgotten"], seen["runs"]) == (None, 1)
    assert seen["stopped"] == "interrupted"
