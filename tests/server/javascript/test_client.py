"""The client of `@langchain/langgraph-sdk`, unmodified: every part of it, against a real server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bide.server import Settings
from bide.server.auth.keys import create_key
from bide.server.settings import AuthSettings
from tests.repo.source_files import ROOT
from tests.server.conftest import Serve
from tests.server.javascript.conftest import SCRIPTS, Script, Site, Start, seen_by

# Servers and Node are started, on machines that may have much else to do.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def events(parts: list[Any]) -> list[str]:
    return [part["event"] for part in parts]


def texts(parts: list[Any], event: str) -> list[str]:
    return [part["data"][0]["content"] for part in parts if part["event"] == event]


def test_assistants_are_found_described_versioned_and_deleted(script: Script) -> None:
    seen = script("assistants")

    assert {"chat", "steps", "asking", "nested"} <= set(seen["graphs"])
    assert seen["next"] is None
    assert seen["byName"] == "steps"
    assert "inner:where" in [node["id"] for node in seen["graph"]["nodes"]]
    assert seen["schemas"]["input_schema"]["properties"]["goal"]["type"] == "string"
    assert seen["subgraphs"] == ["inner"]

    assert seen["versions"] == [[2, {"colour": "blue"}], [1, {"colour": "green"}]]
    assert (seen["changed"], seen["latest"]) == (2, {"colour": "green"})
    assert (seen["count"], seen["selected"]) == (1, [{"name": "Green steps"}])
    assert seen["run"] == ["first green", "last"]

    assert seen["again"]["status"] == 409
    assert "There is an assistant" in seen["again"]["text"]
    assert seen["gone"]["status"] == 404


def test_threads_are_made_found_changed_copied_and_deleted(script: Script) -> None:
    seen = script("threads")

    assert seen["made"]["metadata"] == {"team": "js", "graph_id": "steps"}
    assert seen["same"] is True
    assert seen["twice"]["status"] == 409
    assert seen["got"]["status"] == "idle"
    assert seen["got"]["ttl"]["ttl_minutes"] == 60
    assert seen["changed"]["metadata"]["more"] == 1
    assert (seen["minimal"], seen["patched"]) == (None, {})

    assert seen["found"] == [
        {"thread_id": seen["made"]["thread_id"], "status": "idle", "extracted": {"first": "first plain"}}
    ]
    assert seen["count"] == 1
    assert seen["copy"]["isOther"]
    assert seen["copy"]["values"]["goal"] == "sea"
    assert seen["filled"]["steps"] == ["by hand"]

    assert seen["deleted"] is None
    assert seen["gone"]["status"] == 404
    assert "There is no thread" in seen["gone"]["text"]
    assert seen["pruned"] == {"pruned_count": 2}


def test_states_are_read_written_and_gone_on_with_from_the_past(script: Script) -> None:
    seen = script("state")

    assert seen["head"]["values"]["steps"] == ["first plain", "last"]
    assert seen["head"]["next"] == []
    assert seen["nexts"] == [[], ["last"], ["first"]]
    assert (seen["one"], seen["before"], seen["bySource"]) == (1, ["first"], 1)
    assert seen["byId"] == seen["byCheckpoint"] == ["last"]

    assert seen["fork"] == ["first plain", "last"]
    assert seen["written"]
    assert seen["goal"] == "moon"

    assert seen["inside"] == [{"name": "inner", "next": ["where"], "asks": 1}]
    assert seen["resolved"] == {"status": "idle", "next": []}


def test_runs_are_created_joined_listed_and_deleted(script: Script) -> None:
    seen = script("runs")

    assert seen["announced"] is True
    assert seen["created"]["status"] in ("pending", "running", "success")  # a worker may be quick
    assert seen["created"]["metadata"] == "js"
    assert seen["joined"] == ["first green", "last"]
    assert seen["got"] == "success"
    assert seen["waited"] == ["first green", "last", "first plain", "last"]
    assert seen["list"] == [False, True]
    assert seen["successes"] == [["run_id", "status"]] * 2
    assert seen["deleted"] is None
    assert seen["gone"]["status"] == 404

    assert seen["failed"]["text"] == "ValueError: no way"
    assert seen["failure"] == {"error": "ValueError", "message": "no way"}

    assert seen["alone"] == ["first plain", "last"]
    assert seen["stateless"] == {"hasRun": True, "thread": None}
    assert seen["batch"] == 2


def test_streams_tell_every_mode_and_every_word(script: Script) -> None:
    seen = script("streaming")

    told = events(seen["everything"])
    assert (told[0], told[-1]) == ("metadata", "end")
    assert {"values", "updates", "tasks", "checkpoints", "debug", "events"} <= set(told)
    assert {"values|inner:1", "updates|inner:1", "custom|inner:1", "tasks|inner:1"} <= set(told)
    assert all(part["id"] for part in seen["everything"])

    assert "".join(texts(seen["tuples"], "messages")) == "You said hello"
    assert len({part["data"][0]["id"] for part in seen["tuples"] if part["event"] == "messages"}) == 1
    assert texts(seen["growing"], "messages/partial")[-1] == "You said hello"
    assert events(seen["growing"])[:2] == ["metadata", "messages/metadata"]

    tools = [part["data"]["event"] for part in seen["tools"] if part["event"] == "tools"]
    assert tools == ["on_tool_start", "on_tool_end"]
    assert events(seen["failing"]) == ["metadata", "updates", "error", "end"]
    assert seen["failing"][2]["data"] == {"error": "ValueError", "message": "no way"}


def test_questions_are_answered_by_a_run_and_late_answers_refused(script: Script) -> None:
    seen = script("questions")

    question = {"question": "Where?", "goal": "sea"}
    assert {part[0] for part in seen["asked"][-3:-1]} == {"values", "updates"}
    assert [part[1]["__interrupt__"][0]["value"] for part in seen["asked"][-3:-1]] == [question, question]
    assert seen["waiting"]["status"] == "interrupted"
    assert [one["value"] for one in seen["waiting"]["interrupts"]] == [question]
    assert seen["run"] == "success"
    assert seen["answered"][-2][1]["answers"] == {"where": "Rome"}

    assert seen["again"]["status"] == 409
    assert "waits for no answer" in seen["again"]["text"]
    assert seen["unclear"]["status"] == 422
    assert "2 open questions" in seen["unclear"]["text"]
    assert seen["clear"] == {"where": "Rome", "when": "May"}

    assert seen["before"] == ["first plain"]
    assert seen["after"] == ["first plain", "last"]


def test_run_is_left_and_joined_again_behind_the_last_event(script: Script) -> None:
    seen = script("joining")

    assert seen["left"] == ["metadata", "values", "custom", "values", "custom"]
    assert seen["rest"] == ["values", "values", "end"]
    assert seen["isWhole"], "what was seen before and after is what somebody sees who never left"
    assert seen["isSameLater"], "a run that is over is told as it was"
    assert seen["values"] == ["metadata", "values", "end"]
    assert seen["run"] == "success"
    assert seen["strange"]["status"] == 422


def test_runs_are_cancelled_taken_back_and_put_behind(script: Script) -> None:
    seen = script("cancelling")

    assert (seen["cancelled"], seen["status"], seen["again"]) == (None, "interrupted", 404)
    assert seen["waited"] == {}
    assert seen["takenBack"] == 404
    assert (seen["many"], seen["manyStatus"]) == (None, "interrupted")
    assert seen["left"] == "interrupted"

    assert seen["reject"]["status"] == 409
    assert "has a live run" in seen["reject"]["text"]
    assert (seen["behind"], seen["afterwards"]) == ("pending", "success")


def test_crons_are_made_found_changed_and_deleted(script: Script) -> None:
    seen = script("crons")

    assert seen["made"] == {"schedule": "0 9 * * 1", "next": True, "input": {"goal": "sea"}}
    assert seen["thread"]
    assert seen["changed"] == {"enabled": False, "next": None}
    assert (seen["found"], seen["count"]) == ([True], 1)
    assert seen["wrong"]["status"] == 422
    assert (seen["deleted"], seen["gone"]) == (None, 404)


def test_items_are_put_found_listed_and_deleted(script: Script) -> None:
    seen = script("items")

    assert seen["put"] is None
    assert seen["got"]["value"] == {"colour": "green"}
    assert seen["got"]["createdAt"] == seen["got"]["created_at"]
    assert seen["missing"] is None
    assert [item["key"] for item in seen["found"]["items"]] == ["taste"]
    assert seen["none"] == {"items": []}
    assert seen["namespaces"] == {"namespaces": [["js", "users"]]}
    assert seen["words"]["status"] == 422
    assert (seen["deleted"], seen["gone"]) == (None, None)


def test_thread_is_followed_across_its_runs_by_every_protocol(script: Script) -> None:
    seen = script("following")

    for transport in ("sse", "websocket"):
        talk = seen[transport]
        assert talk["texts"] == ["I would send a mail"], transport
        assert (talk["run"], talk["paused"], talk["asked"]) == (True, 2, "send_mail"), transport
        assert talk["said"] == ["tell ada", "I would send a mail", "It is done"], transport
        assert talk["late"] == "no_such_interrupt", transport
    assert seen["follow"] == ["began", "values", "values", "values", "run_done"] * 2


def test_chat_ui_talks_asks_and_resolves(script: Script) -> None:
    seen = script("chat_ui")

    assert seen["info"]
    assert "".join(seen["words"]) == "I would send a mail"
    assert (seen["asked"], seen["inHistory"], seen["listed"]) == ("send_mail", 1, True)
    assert seen["edited"] == {"to": "bob"}
    assert seen["resolved"] == "idle"


def test_agent_inbox_lists_answers_and_ignores(script: Script) -> None:
    seen = script("agent_inbox")

    assert seen["info"]["flags"]["assistants"]
    assert seen["waiting"] == 2
    assert {"action_requests", "review_configs"} <= set(seen["asks"])
    assert "report" in seen["nodes"]
    assert (seen["answered"], seen["ignored"], seen["left"]) == ("idle", "idle", 0)


def test_keys_open_what_is_their_owners_and_nothing_else(start: Start, serve: Serve) -> None:
    server = serve(Settings(auth=AuthSettings("keys")))
    ada, _ = create_key(server.app.store, "ada's", "ada", ["read", "run"])
    bob, _ = create_key(server.app.store, "bob's", "bob", ["read"])

    seen = seen_by(start("keys", url=server.url, ada=ada, bob=bob))

    assert (seen["counted"], seen["found"], seen["others"]) == (1, 1, 0)
    assert seen["foreign"]["status"] == 404
    assert seen["onlyReads"]["status"] == 403
    assert "run" in seen["onlyReads"]["text"]
    assert seen["unknown"]["status"] == 401


def test_example_of_the_docs_says_what_it_does(node: Path, site: Site) -> None:
    page = (ROOT / "docs" / "server-langgraph.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```js\n(.*?)```", page, re.DOTALL)
    program = example.replace("http://127.0.0.1:2024", site.url)

    # What is evaluated finds packages from the folder that it runs in.
    command = [str(node), "--input-type=module", "--eval", program]
    told = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, timeout=90, check=True).stdout

    assert program != example
    assert "question: 'Where?'" in told
    assert "updates { where: { answers: { where: 'Rome' } } }" in told
