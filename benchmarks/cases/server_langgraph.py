"""LangGraph's own server, in memory, under the same load."""

from __future__ import annotations

from case import report, settings
from http_load import free_port, load, served

GRAPH = """
from typing import Any, TypedDict
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

class Order(TypedDict, total=False):
    approved: Any

def ask(order: Order):
    return {"approved": interrupt("May this order be shipped?")}

graph = StateGraph(Order).add_node("ask", ask).add_edge(START, "ask").compile()
"""
SERVE = """
import sys
from langgraph_api.cli import run_server
run_server("127.0.0.1", int(sys.argv[1]), reload=False, graphs={"order": "./order.py:graph"}, open_browser=False,
           n_jobs_per_worker=10, allow_blocking=True, server_level="ERROR")
"""


def main() -> None:
    asked = settings()
    (asked.folder / "order.py").write_text(GRAPH, encoding="utf-8")
    (asked.folder / "serve.py").write_text(SERVE, encoding="utf-8")
    port = free_port()
    with served(["serve.py", str(port)], port, asked.folder) as pid:
        metrics = load(asked, port, pid)
    report(**metrics)


if __name__ == "__main__":
    main()
