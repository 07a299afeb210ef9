"""`bide serve` under load: answers over HTTP, and followers of threads."""

from __future__ import annotations

from case import report, settings
from http_load import free_port, load, served

GRAPH = """
from typing import Any, TypedDict
from bide import START, StateGraph, interrupt

class Order(TypedDict, total=False):
    approved: Any

def ask(order: Order):
    return {"approved": interrupt("May this order be shipped?")}

graph = StateGraph(Order).add_node(ask).add_edge(START, "ask").compile(name="order")
"""


def main() -> None:
    asked = settings()
    (asked.folder / "order.py").write_text(GRAPH, encoding="utf-8")
    store = asked.url if asked.store == "postgres" else f"sqlite:///{asked.database}"
    port = free_port()
    command = [
        "-m",
        "bide.cli",
        "serve",
        "order.py:graph",
        "--port",
        str(port),
        "--store",
        store,
        "--concurrency",
        "10",
    ]
    with served(command, port, asked.folder) as pid:
        metrics = load(asked, port, pid)
    report(**metrics)


if __name__ == "__main__":
    main()
