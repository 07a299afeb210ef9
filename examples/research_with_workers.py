"""A question for three readers, side by side. One of them fails, and that is a value, no accident.

$ python examples/research_with_workers.py
tides: done, 4 chapters
winds: done, 7 chapters
yetis: failed, LookupError: no book about yetis
All there is about tides: ['tides 1', 'tides 2', 'tides 3', 'tides 4']
"""

import logging
from typing import Any, TypedDict

from bide import START, Bide, StateGraph, all_of, spawn, step, wait_for
from bide.waits import child

LIBRARY = {"tides": 4, "winds": 7}


class Reading(TypedDict, total=False):
    topic: str
    chapters: list[str]
    summary: str


def look_up(topic: str) -> int:
    if topic not in LIBRARY:
        raise LookupError(f"no book about {topic}")
    return LIBRARY[topic]


def read(state: Reading) -> Reading:
    count = step(look_up, state["topic"])
    return {"chapters": [f"{state['topic']} {number + 1}" for number in range(count)], "summary": f"{count} chapters"}


class Research(TypedDict, total=False):
    topics: list[str]
    found: dict[str, Any]


def research(state: Research) -> Research:
    readers = {topic: spawn("reader", {"topic": topic}, key=topic) for topic in state["topics"]}
    ended = wait_for(all_of(**{topic: child(reader) for topic, reader in readers.items()}))
    return {"found": {topic: wake.value for topic, wake in ended.value.items()}}


reader = StateGraph(Reading).add_node(read).add_edge(START, "read").compile(name="reader")
researcher = StateGraph(Research).add_node(research).add_edge(START, "research").compile(name="researcher")

if __name__ == "__main__":
    logging.getLogger("bide").setLevel(logging.ERROR)  # that one fails is told below
    with Bide(":memory:", [reader, researcher]) as app, app.worker():
        run = app.start("researcher", {"topics": ["tides", "winds", "yetis"]})
        list(app.follow(run.thread_id))
        found = app.get(run.thread_id).values["found"]
        for topic, result in found.items():
            print(f"{topic}: {result.status}, {result.summary if result.is_done else result.error}")
        print(f"All there is about tides: {app.output(found['tides'])['chapters']}")
