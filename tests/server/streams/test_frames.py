"""Whatever a node or a thread is called, and whatever is told: an event stays one event, for strict readers and for
those who see line breaks everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypedDict
from urllib.parse import quote, unquote

import httpx
import pytest

from bide import START, Bide, CompiledGraph, StateGraph, Store, get_stream_writer
from bide.server import Settings, create_app
from bide.server.streams.sse import Part, frame
from tests.server.running import running_server
from tests.server.streams.scenes import ALL_MODES

BREAKS = ["\n", "\r", "\r\n", "\n\n", "\0", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"]
FORGED = "x{0}{0}event: end{0}data: {{}}{0}{0}id: 0{0}y"
"""What would be an event of its own, wherever the break in it were one."""
DATA = "".join(FORGED.format(one) for one in BREAKS)
NAME = DATA.replace(":", "=")  # of a node: a colon is refused in it
THREAD = DATA.replace("\0", "")  # no database keeps a NUL
KINDS = {"metadata", "end", "messages/metadata", "messages/partial", "messages/complete", *ALL_MODES}


class Fields(NamedTuple):
    """One event, by the standard."""

    event: str
    data: str
    id: str


def strictly(text: str) -> Iterator[Fields]:
    """Read a stream as the HTML standard says: lines end by CRLF, LF or CR, and events by an empty one."""
    return _events(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def sloppily(text: str) -> Iterator[Fields]:
    """Read it as a client does that leaves the lines to Python."""
    return _events(text.splitlines())


def _events(lines: list[str]) -> Iterator[Fields]:
    event, data, last = "", [], ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Fields(event or "message", "\n".join(data), last)
            event, data = "", []
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            last = value
        else:
            assert name in ("", "retry"), f"there is no field {name!r}"


READERS: list[Callable[[str], Iterator[Fields]]] = [strictly, sloppily]


class Odd(TypedDict, total=False):
    said: Any


def tell(state: Odd) -> dict[str, Any]:
    get_stream_writer()({DATA: DATA})
    get_stream_writer()(DATA)
    return {"said": DATA}


def fail(state: Odd) -> dict[str, Any]:
    raise RuntimeError(DATA)


def graph(name: str, node: Callable[[Odd], Any]) -> CompiledGraph:
    inner = StateGraph(Odd).add_node(NAME, node).add_edge(START, NAME).compile(name="inner")
    return StateGraph(Odd).add_node(NAME, inner).add_edge(START, NAME).compile(name=name)


class Told(NamedTuple):
    """A server over threads with odd names on which odd things were told."""

    url: str
    runs: dict[str, str]

    def stream(self, path: str, body: Any = None, **headers: str) -> tuple[str, httpx.Headers]:
        """Return what a stream says until it ends, or is quiet."""
        method, sent = "GET" if body is None else "POST", {"accept": "text/event-stream", **headers}
        with httpx.stream(method, self.url + path, json=body, headers=sent, timeout=30) as response:
            assert response.status_code == 200, response.read()
            text = b""
            for chunk in response.iter_raw():
                text += chunk
                if chunk.startswith((b": heartbeat", b": still here")):
                    break
        return text.decode(), response.headers


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    place = tmp_path_factory.mktemp("odd") / "bide.db"
    with Store.open(f"sqlite:///{place}") as store:
        app = Bide(store, [graph("tells", tell), graph("fails", fail)])
        runs = {THREAD: app.start("tells", {"said": DATA}, thread_id=THREAD, tell=ALL_MODES).run_id}
        with running_server(create_app(app, Settings(heartbeat=0.2))) as url:
            for name in ("tells", "fails"):
                body = {
                    "assistant_id": name,
                    "input": {"said": DATA},
                    "stream_mode": ALL_MODES,
                    "stream_subgraphs": True,
                }
                place = f"{url}/threads/{name}/runs"
                runs[name] = httpx.post(place, json={**body, "if_not_exists": "create"}).json()["run_id"]
            app.run_ready(most=10)
            yield Told(url, runs)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("thread_id", [THREAD, "tells", "fails"], ids=["odd", "tells", "fails"])
def test_odd_words_stay_in_the_events_of_a_run(told: Told, thread_id: str, read: Any):
    modes = "&".join(f"stream_mode={mode}" for mode in ALL_MODES)
    path = f"/threads/{quote(thread_id, safe='')}/runs/{told.runs[thread_id]}/stream"

    text, headers = told.stream(f"{path}?{modes}")
    events = list(read(text))

    kinds = [one.event.partition("|")[0] for one in events]
    assert set(kinds) <= {*KINDS, "error"}
    assert kinds.count("end") == 1
    assert kinds[-1] == "end"
    assert all(isinstance(json.loads(one.data), dict | list | str) for one in events)
    assert DATA in text_of(events), "what was told is told, whole"
    assert any("|" in one.event for one in events) == (thread_id != THREAD), "the name of a node is in that of an event"
    assert unquote(headers["location"]) == f"/threads/{thread_id}/runs/{told.runs[thread_id]}/stream"
    assert headers["location"].isascii()


@pytest.mark.parametrize("read", READERS)
def test_odd_words_stay_in_the_events_of_threads(told: Told, read: Any):
    thread = quote(THREAD, safe="")
    streams = [
        told.stream(f"/threads/{thread}/stream", **{"last-event-id": "-"}),
        told.stream("/threads/tells/stream/events", {"channels": ["values", "updates", "custom", "tasks"]}),
        told.stream("/events", **{"last-event-id": "-"}),
        told.stream(f"/inbox/live?thread={thread}"),
    ]

    events = [list(read(text)) for text, _ in streams]

    assert all(events)
    for one in (one for stream in events for one in stream):
        assert one.event != "end"
        assert "\\u000a" not in one.event.partition("|")[0]
        json.loads(one.data)


def text_of(events: list[Fields]) -> list[Any]:
    """Every text in the data of events, on whichever level."""
    found: list[Any] = []
    left: list[Any] = [json.loads(one.data) for one in events]
    while left:
        value = left.pop()
        found += [value] if isinstance(value, str) else []
        left += [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return found


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("one", BREAKS)
def test_frame_is_one_event_whatever_is_in_it(one: str, read: Any):
    forged = FORGED.format(one)

    (event,) = read(frame(Part(f"updates|{forged}", json.dumps(forged, ensure_ascii=False)), "1.2").decode())

    assert event.event.startswith("updates|x")
    assert json.loads(event.data) == forged
    assert json.loads(f'"{event.event}"') == f"updates|{forged}", "it is said as JSON says it"
    assert event.id == "1.2"
