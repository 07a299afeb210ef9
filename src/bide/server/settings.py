"""What a server is told when it is set up: read once, at the edge, and passed on as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

AuthMode = Literal["none", "keys", "jwt", "custom"]
HookScheme = Literal["standard", "github", "stripe", "slack", "none"]
OutgoingKind = Literal["run.finished", "wait.created", "wait.answered"]


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Who may call."""

    mode: AuthMode = "none"
    jwt: Mapping[str, Any] = field(default_factory=dict)
    """`jwks` (a URL or a file), or `secret`; `issuer`, `audience`, `algorithms`, and which claims say who it is."""
    handler: Any = None
    """An `Auth` object as of `langgraph_sdk`, or "file.py:auth"."""


@dataclass(frozen=True, slots=True)
class CorsSettings:
    """Which pages of other origins may call; none, unless they are named."""

    origins: tuple[str, ...] = ()
    credentials: bool = False
    private_network: bool = False


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """How much one caller may ask for."""

    body: int = 10 * 1024 * 1024
    """Bytes of a request."""
    answer: int = 1024 * 1024
    """Bytes of an answer to a wait."""
    rate: float = 50.0
    """Requests a second of one caller, in the long run; 0 is no limit."""
    burst: int = 200
    public_rate: float = 5.0
    """The same for each address at the doors that need no key: hooks and links."""
    public_burst: int = 40


@dataclass(frozen=True, slots=True)
class HookSettings:
    """A webhook that comes in, at /hooks/{name}."""

    name: str
    scheme: HookScheme = "standard"
    secrets: tuple[str, ...] = ()
    """Several while one is being replaced."""
    tolerance: int = 300
    """Seconds that its timestamp may be off."""
    owner: str | None = None
    """Whose threads it wakes: the store's own, unless another is named."""
    headers: tuple[str, ...] = ()
    """Headers that whoever waits wants to see: then it gets `{"body": …, "headers": …}` instead of the body alone."""
    known_by: Literal["id", "body"] = "id"
    """What tells that a call came before: its id, or its body. GitHub signs only the body, and not the id."""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """A webhook that goes out."""

    url: str
    events: tuple[OutgoingKind, ...] = ("run.finished", "wait.created", "wait.answered")
    secret: str | None = None
    """`whsec_…`, as Standard Webhooks has it; several, with blanks between them, while one is being replaced. Without
    one, the server makes it."""
    owner: str | None = None
    """Whose threads it is told of; everybody's, unless one is named."""
    is_private: bool = False
    """Whether it may lie in the own network, and be called by http."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A server."""

    auth: AuthSettings = AuthSettings()
    cors: CorsSettings = CorsSettings()
    limits: LimitSettings = LimitSettings()
    hooks: tuple[HookSettings, ...] = ()
    webhooks: tuple[WebhookSettings, ...] = ()
    allow_private_targets: bool = False
    """Whether webhooks may go to addresses of the own network: for tests and closed networks."""
    webhook_ports: tuple[int, ...] | None = (443, 8443)
    """Ports that webhooks may go to; None for all of them."""
    public_url: str | None = None
    """Where people reach this server; approval links begin with it."""
    heartbeat: float = 5.0
    """Seconds between two signs of life on a quiet stream."""
    stale_resume: Literal["conflict", "ignore"] = "conflict"
    """What becomes of an answer that no open question waits for: 409, or a run that changes nothing."""
    json_logs: bool = False
    tracing: bool = False
    worker: bool = True
    """Whether runs are driven in this process, too."""
    concurrency: int = 10


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens, how it ends, and how much it says."""

    host: str = "127.0.0.1"
    port: int = 2024
    """0 is any that is free."""
    grace: float = 20.0
    """Seconds for requests and steps that are under way when it is asked to stop."""
    insecure: bool = False
    """Whether it may be reached from other machines without authentication."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
