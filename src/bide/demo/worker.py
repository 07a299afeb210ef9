"""The process that is killed: it drives one order, and tells its parent what it does as JSON lines.

    python -m bide.demo.worker DATABASE LEDGER ORDER start '{"item": …}'    begin the order
    python -m bide.demo.worker DATABASE LEDGER ORDER answer true            go on with a person's answer
    python -m bide.demo.worker DATABASE LEDGER ORDER go-on                  take over what a dead worker left

`--stop-in CALL` makes it stand still inside that call, after its effect and before Bide can keep the result.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from bide import Command, Store
from bide.demo.orders import order_graph
from bide.demo.shop import Call, Shop


def main() -> None:
    """Drive the order until it is done or waits; then stand still, as a server would."""
    given = _arguments()
    config = {"configurable": {"thread_id": given.order}}
    with Store.open(f"sqlite:///{given.database}") as store:
        graph = order_graph(store)
        shop = Shop(given.ledger, given.order, lambda call: _after(call, given.stop_in))
        for task in graph.stream(_input(given), config, context=shop, stream_mode="tasks"):
            _tell("finished" if "result" in task else "begun", node=task["name"], result=task.get("result"))
        snapshot = graph.get_state(config)
        if snapshot.interrupts:
            _tell("waits", question=snapshot.interrupts[0].value)
        else:
            _tell("done", state=snapshot.values)
        _stand_still()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bide.demo.worker")
    for name in ("database", "ledger", "order"):
        parser.add_argument(name)
    parser.add_argument("what", choices=["start", "answer", "go-on"])
    parser.add_argument("value", nargs="?", default="null", type=json.loads)
    parser.add_argument("--stop-in", choices=["reserve", "charge", "ship", "release"])
    return parser.parse_args()


def _input(given: argparse.Namespace) -> Any:
    if given.what == "answer":
        return Command(resume=given.value)
    return given.value if given.what == "start" else None


def _after(call: Call, stop_in: str | None) -> None:
    _tell("called", call=call.what, has_effect=call.has_effect)
    if call.what == stop_in:
        _tell("inside", call=call.what)
        _stand_still()


def _stand_still() -> None:
    """Wait to be killed. If the parent itself dies its end of the pipe closes, and this process goes on to its end."""
    sys.stdin.read()


def _tell(what: str, **about: Any) -> None:
    print(json.dumps({"what": what, **about}, default=str), flush=True)


if __name__ == "__main__":
    main()
