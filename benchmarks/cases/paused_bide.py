"""Ten thousand paused threads on Bide: what one takes on disk beside its state, and how fast the oldest are listed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from approval import STATE_BYTES, config_of, graph_of, new_order
from case import metric, report, settings, timing, took

from bide import END, START, StateGraph, Store, interrupt


def main() -> None:
    asked = settings()
    threads = asked.amount(10_000, 60)
    with Store.open(f"sqlite:///{asked.database}") as store:
        graph = graph_of(StateGraph, START, END, interrupt).compile(checkpointer=store)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: graph.invoke(new_order(), config_of(number)), range(threads)))
        listings = [took(lambda: store.open_waits(most=50)) for _ in range(asked.amount(20, 2))]
        assert len(store.open_waits(most=50)) == 50
    report(
        paused_bytes=metric("B", [asked.bytes_on_disk() / threads - STATE_BYTES]),
        **timing("listing", "ms", listings),
    )


if __name__ == "__main__":
    main()
