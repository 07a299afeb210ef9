"""Metrics for Prometheus: what this process does, and how the store is doing.

Each server has a registry of its own. What the store is asked for is kept for a while, the longer the more it cost, so
that nobody who scrapes can make work for the database.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from bide.clock import elapsed
from bide.errors import BideError, StoreError
from bide.runtime.worker import Worker
from bide.server.context import Context
from bide.store import Store
from bide.store.pulse import Pulse, read_pulse

logger = logging.getLogger("bide.server")

FRESH_SECONDS = 5.0
"""For so long, at least, is used what was counted."""
SHARE = 50
"""And for so many times as long as the counting took: two seconds of work in a hundred, at most."""
BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Family = GaugeMetricFamily | CounterMetricFamily


class Metrics:
    """The metrics of one server."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._watching: tuple[Collector, ...] = ()
        self.requests = Counter(
            "bide_http_requests", "Requests that were answered.", ["route", "method", "status"], registry=self.registry
        )
        self.latency = Histogram(
            "bide_http_request_duration_seconds",
            "Seconds until an answer began; a stream goes on for longer.",
            ["route", "method"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.store_errors = Counter(
            "bide_store_errors",
            "Requests and looks that failed because the database said no.",
            ["error"],
            registry=self.registry,
        )

    def watch(self, context: Context) -> None:
        """Tell of a server, too, once it has begun; one that begins again takes its own place."""
        for collector in self._watching:
            self.registry.unregister(collector)
        self._watching = (_Server(context), _Stored(context.app.store, self))
        for collector in self._watching:
            self.registry.register(collector)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request whose answer begins."""
        verb = method if method in _METHODS else "other"
        self.requests.labels(route, verb, str(status)).inc()
        self.latency.labels(route, verb).observe(seconds)

    def count_store_error(self, problem: BideError) -> None:
        """Count that the database said no."""
        self.store_errors.labels(type(problem).__name__).inc()

    def text(self) -> bytes:
        """Return all of it, as Prometheus reads it."""
        return bytes(generate_latest(self.registry))


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _Server(Collector):
    """What is known in the process."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def describe(self) -> Iterator[Family]:
        """Say nothing beforehand: whoever registers this must not look at the database."""
        return iter(())

    def collect(self) -> Iterator[Family]:
        yield GaugeMetricFamily("bide_stream_followers", "Streams that are open.", self._context.hub.followers)
        worker = self._context.worker
        if worker is not None:
            yield from _of_worker(worker)


def _of_worker(worker: Worker) -> Iterator[Family]:
    yield GaugeMetricFamily("bide_worker_up", "Whether the worker of this process claims runs.", int(worker.is_working))
    yield GaugeMetricFamily("bide_worker_busy", "Runs that this process drives right now.", worker.busy)
    yield GaugeMetricFamily("bide_worker_concurrency", "Runs that it could drive at once.", worker.concurrency)
    yield CounterMetricFamily(
        "bide_worker_store_errors", "How often the database said no to the worker.", worker.store_errors
    )
    driven = CounterMetricFamily("bide_runs_driven", "Runs that this process has driven to a rest.", labels=["outcome"])
    for outcome, count in sorted(worker.outcomes.items()):
        driven.add_metric([outcome], count)
    yield driven


class _Stored(Collector):
    """What is known in the database."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._lock = threading.Lock()
        self._pulse: Pulse | None = None
        self._until = 0.0

    def describe(self) -> Iterator[Family]:
        """Say nothing beforehand: whoever registers this must not look at the database."""
        return iter(())

    def collect(self) -> Iterator[Family]:
        pulse, is_up = self._looked()
        yield GaugeMetricFamily("bide_store_up", "Whether the database answers.", int(is_up))
        if pulse is not None and is_up:
            yield from _of_store(pulse, self._store.clock.now())

    def _looked(self) -> tuple[Pulse | None, bool]:
        """Count, or return what was counted a moment ago."""
        with self._lock:
            began = elapsed()
            if self._pulse is not None and began < self._until:
                return self._pulse, True
            try:
                self._pulse = read_pulse(self._store)
            except StoreError as problem:
                logger.warning("The store could not be counted: %s", problem)
                self._metrics.count_store_error(problem)
                return None, False
            spent = elapsed() - began
            self._until = began + max(FRESH_SECONDS, SHARE * spent)
            return self._pulse, True


def _of_store(pulse: Pulse, now: int) -> Iterator[Family]:
    runs = GaugeMetricFamily("bide_runs", "Runs that are not over, and those that failed.", labels=["status"])
    for status, count in sorted(pulse.runs.items()):
        runs.add_metric([status], count)
    yield runs
    outbox = GaugeMetricFamily("bide_outbox_messages", "Webhooks to be sent, or given up.", labels=["status"])
    outbox.add_metric(["open"], pulse.outbox_open)
    outbox.add_metric(["dead"], pulse.outbox_dead)
    yield outbox
    for name, text, value in (
        ("bide_ready_runs", "Runs that a worker could claim by now.", pulse.claimable),
        ("bide_ready_age_seconds", "For how long the first of them could be.", _age(pulse.claimable_since, now)),
        ("bide_open_waits", "Questions and conditions that are open.", pulse.open_waits),
        ("bide_oldest_wait_seconds", "For how long the first of them is.", _age(pulse.oldest_open_wait, now)),
        ("bide_timer_lateness_seconds", "How late the clock is with what is due.", _age(pulse.next_due, now)),
        ("bide_pending_deliveries", "Facts that are not yet brought to those who wait.", pulse.pending_deliveries),
        ("bide_outbox_age_seconds", "For how long the first webhook is to be sent.", _age(pulse.outbox_oldest, now)),
        ("bide_workers_alive", "Workers of this database, wherever they run.", pulse.workers_alive),
    ):
        yield GaugeMetricFamily(name, text, value)


def _age(since: int | None, now: int) -> float:
    """Return how long ago something was, in seconds; nothing if it is still to come."""
    return 0.0 if since is None else max(0, now - since) / 1000
