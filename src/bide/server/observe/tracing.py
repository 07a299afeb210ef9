"""Traces, as OpenTelemetry has them: a span for each request, and one for each time that a run is driven.

What drives a run is *linked* to what started or answered it, and no part of it: days may lie between the two, and a
trace that is open for days helps nobody. What was there is in the log of the thread (see `bide.store.trace`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from bide.errors import SettingsError
from bide.runtime.driving import Driven
from bide.store import Store
from bide.store.needed import PLAIN
from bide.store.queue_rows import Claim
from bide.store.trace import TRACE, within

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, TracerProvider

    from bide.server.observe.requests import Request, Scope

NAME = "bide"
LOOK_BACK = 30
"""How many of a thread's last lines may say what has made it ready."""
CAUSES = frozenset(
    {
        *("run.ready", "run.queued", "run.continued", "run.released"),
        *("wait.answered", "wait.satisfied", "wait.expired", "wait.cancelled"),
    }
)
"""The lines that somebody from outside has caused."""
_FAILED = 500


class Tracing:
    """Makes spans."""

    def __init__(self, provider: TracerProvider, *, is_ours: bool = False) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._is_ours = is_ours
        self._tracer = provider.get_tracer(NAME)
        self._headers = TraceContextTextMapPropagator()

    @classmethod
    def opened(cls) -> Tracing:
        """Use what the process traces with already; or else send to where `OTEL_EXPORTER_OTLP_ENDPOINT` says."""
        try:
            from opentelemetry import trace
            from opentelemetry.sdk.trace import TracerProvider as Ours
        except ModuleNotFoundError as missing:
            raise SettingsError(
                f"Tracing needs {missing.name!r}, which is not installed. Install the extra: pip install 'bide[otel]'."
            ) from missing
        present = trace.get_tracer_provider()
        if not isinstance(present, trace.ProxyTracerProvider):
            return cls(present)
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        made = Ours(resource=Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", NAME)}))
        made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(made, is_ours=True)

    def close(self) -> None:
        """Send what is still to be sent, if nobody else does."""
        if self._is_ours:
            cast("Any", self._provider).shutdown()

    # ── Requests ───────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def request(self, scope: Scope, request: Request) -> Iterator[None]:
        """Make the span of a request: a part of the caller's trace, if the caller has one."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        said = {"http.request.method": request.method}
        with self._tracer.start_as_current_span(
            request.method, context=self._headers.extract(headers), kind=SpanKind.SERVER, attributes=said
        ) as span:
            with within(self._parent_of(span)):
                yield
            span.update_name(f"{request.method} {request.route}")
            span.set_attribute("http.route", request.route)
            span.set_attribute("http.response.status_code", request.status)
            for name, value in request.about().items():
                if name != "route" and value:
                    span.set_attribute(f"bide.{name}", str(value))
            if request.status >= _FAILED:
                span.set_status(Status(StatusCode.ERROR))

    # ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def drives_of(self, store: Store) -> Callable[[Claim], Any]:
        """Return what goes around each drive of a worker."""

        @contextmanager
        def around(claim: Claim) -> Iterator[Callable[[Driven], None]]:
            from opentelemetry.context import Context
            from opentelemetry.trace import SpanKind

            lease = claim.lease
            said = {"bide.thread_id": lease.thread_id, "bide.run_id": lease.run_id, "bide.graph": claim.graph}
            beginning = self._tracer.start_as_current_span(
                f"run {claim.graph}",
                context=Context(),  # the root of a trace of its own
                kind=SpanKind.CONSUMER,
                links=self._causes(store, lease.thread_id),
                attributes={**said, "bide.epoch": lease.epoch},
            )
            with beginning as span, within(self._parent_of(span)):
                yield lambda driven: _tell(span, driven)

        return around

    def _causes(self, store: Store, thread_id: str) -> list[Link]:
        """Find what has made a thread ready: whatever was written since it last came to rest, and named its trace."""
        from opentelemetry.trace import Link

        found = (self._context_of(parent) for parent in _traces(store, thread_id))
        return [Link(context) for context in found if context.is_valid]

    # ── As the header has it ───────────────────────────────────────────────────────────────────────────────────────

    def _parent_of(self, span: Span) -> str | None:
        from opentelemetry.trace import set_span_in_context

        carrier: dict[str, str] = {}
        self._headers.inject(carrier, context=set_span_in_context(span))
        return carrier.get("traceparent")

    def _context_of(self, parent: str) -> Any:
        from opentelemetry.trace import get_current_span

        there: Context = self._headers.extract({"traceparent": parent})
        return get_current_span(there).get_span_context()


def _traces(store: Store, thread_id: str) -> list[str]:
    """Return the traces that the last lines of a thread name, the oldest first, each once."""
    counters = store.database.read(lambda tx: tx.one("peek_thread", {"thread_id": thread_id}))
    written = 0 if counters is None else int(counters[1])
    found: dict[str, None] = {}
    for line in reversed(store.events(thread_id, after=max(0, written - LOOK_BACK), most=LOOK_BACK)):
        if line.kind == "run.waiting":
            break
        said = cast("dict[str, Any]", PLAIN.decode(line.body, "event")) if line.kind in CAUSES else {}
        if TRACE in said:
            found[said[TRACE]] = None
    return list(reversed(found))


def _tell(span: Span, driven: Driven) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("bide.outcome", driven.outcome)
    if driven.outcome == "failed":
        if driven.error is not None:
            span.record_exception(driven.error)
        span.set_status(Status(StatusCode.ERROR))
