"""A furnished server whose every operation is called with what schemathesis makes of its own description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from bide import Bide, Store
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.caller import SCOPES
from bide.server.settings import AuthSettings, HookSettings, LimitSettings
from tests.server.household import Things, furnish, graphs
from tests.server.running import until

KEPT = [
    CHECKS.get_one("not_a_server_error"),
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SECONDS = 0.4
"""For which an answer is waited for that may be long in coming: a stream, or what a run comes to."""
LONG = ("/stream", "/events", "/wait", "/join")


class Fuzzed:
    """A server, with a worker beside it and one of everything in it."""

    def __init__(self, store: Store, stack: ExitStack) -> None:
        self.app = Bide(store, graphs())
        limits = LimitSettings(rate=0, public_rate=0)
        hooks = (HookSettings("open", scheme="none", owner="acme"),)
        said = Settings(auth=AuthSettings("keys"), limits=limits, hooks=hooks, heartbeat=0.1)
        self.api = create_app(self.app, said)
        self.headers = {"x-api-key": create_key(store, "fuzz", "acme", SCOPES)[0]}
        self.client = TestClient(self.api, headers=self.headers)
        self.schema = schemathesis.openapi.from_asgi("/openapi.json", self.api, headers=self.headers)
        stack.callback(asgi.shutdown_lifespans)
        stack.enter_context(self.app.worker(poll=0.05))
        self._furnished = 0
        self._things: Things | None = None

    def things(self, method: str) -> Things:
        """Return one of everything; new ones where what was there may be deleted, answered or cancelled by now."""
        found = self._things or self.furnish()
        self._things = found if method == "GET" else None
        return found

    def furnish(self) -> Things:
        """Put one of everything there."""
        self._furnished += 1
        prefix = f"acme{self._furnished}"

        def until_at_rest(app: Bide) -> None:
            until(lambda: bool(app.waits(thread_id=f"{prefix}-pay")), "the worker has driven it")

        return furnish(self.app, self.client, "acme", prefix, rest=until_at_rest)

    def check(self, label: str, examples: int, **how: Any) -> None:
        """Call one operation many times: with what fits its description, and with what does not."""
        operation = next(one.ok() for one in self.schema.get_all_operations() if one.ok().label == label)
        things = self.things(label.partition(" ")[0])
        made = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))

        @given(case=made, draw=st.data())
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            **how,
        )
        def call(case: Any, draw: Any) -> None:
            with_known_ids(case, things, draw.draw)
            self.call(case)

        call()

    def call(self, case: Any) -> None:
        """Call, and hold what comes against the description."""
        case.headers = {**(case.headers or {}), **self.headers}
        is_long = any(part in case.operation.path for part in LONG)
        try:
            answer = case.call(timeout=SECONDS if is_long else None)
        except requests.exceptions.ReadTimeout:
            assert is_long, f"{case.operation.label} does not answer"
            return
        case.validate_response(answer, checks=KEPT)
        if answer.status_code >= 400 and not case.operation.path.startswith("/w/"):
            assert answer.json()["detail"]


def with_known_ids(case: Any, things: Things, draw: Callable[..., Any]) -> None:
    """Let most requests be about something that is there."""
    for part in (case.path_parameters, case.query, case.body):
        if isinstance(part, dict):
            for name in [name for name in part if name in things.ids or name == "thread_ids" or name == "run_ids"]:
                if draw(st.integers(0, 3)):
                    part[name] = known(things, name, part[name], draw)


def known(things: Things, name: str, given_: Any, draw: Callable[..., Any]) -> Any:
    if name in ("thread_id", "conversation_id"):
        return draw(st.sampled_from(things.thread_ids))
    if name == "thread_ids":
        return [draw(st.sampled_from(things.thread_ids))]
    if name == "run_ids":
        return [things.ids["run_id"]]
    if name == "assistant_id":
        return draw(st.sampled_from([things.ids[name], "question", "quick", "pay"]))
    return [things.ids[name]] if isinstance(given_, list) else things.ids[name]


@cache
def labels() -> tuple[str, ...]:
    """Every operation of the description."""
    with Store.open(":memory:") as store:
        described: Mapping[str, Any] = create_app(Bide(store, graphs())).openapi()
    return tuple(f"{method.upper()} {path}" for path, ways in described["paths"].items() for method in ways)


@contextmanager
def fuzzed(store: Store) -> Iterator[Fuzzed]:
    """Open a server to be fuzzed."""
    with ExitStack() as stack:
        yield Fuzzed(store, stack)
