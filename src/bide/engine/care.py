"""Policies of a node: when to try again, how long to wait for it, whose earlier result to take. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from bide.errors import GraphError, NodeTimeoutError
from bide.types import Timeout, TimeoutPolicy

if TYPE_CHECKING:
    from bide.engine.spec import Call

RetryOn = type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool]

_LASTING: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    ArithmeticError,
    ImportError,
    LookupError,
    NameError,
    SyntaxError,
    RuntimeError,
    ReferenceError,
    StopIteration,
    StopAsyncIteration,
    OSError,
)
"""Mistakes of the program, and of the machine: trying again would only repeat them."""


def is_passing(error: Exception) -> bool:
    """Say whether trying again may help: lost connections and servers in trouble do, mistakes do not."""
    if isinstance(error, (ConnectionError, TimeoutError, NodeTimeoutError)):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status >= 500
    return not isinstance(error, _LASTING)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Try a failed node again, later and later. Intervals are seconds; `retry_on` says for which errors.

    The attempts and the time of the next one are kept in the database: a worker that takes the thread over after a
    crash goes on counting, and waits no longer than was left.
    """

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: RetryOn = is_passing

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        if self.max_attempts < 1:
            raise GraphError(f"RetryPolicy(max_attempts={self.max_attempts}): at least one attempt is made.")
        if self.initial_interval < 0 or self.max_interval < 0 or self.backoff_factor <= 0:
            raise GraphError("RetryPolicy: intervals must not be negative, and backoff_factor must be positive.")
        several = self.retry_on if isinstance(self.retry_on, Sequence) else ()
        if not callable(self.retry_on) and not (several and all(_is_error(kind) for kind in several)):
            raise GraphError(
                f"RetryPolicy(retry_on={self.retry_on!r}): give a kind of error, a tuple of them, or a function that "
                f"takes the error and says whether to try again."
            )

    def covers(self, error: Exception) -> bool:
        """Say whether this error is one to try again after."""
        if isinstance(self.retry_on, type):
            return isinstance(error, self.retry_on)
        if isinstance(self.retry_on, Sequence):
            return isinstance(error, tuple(self.retry_on))
        return bool(self.retry_on(error))

    def delay_ms(self, attempts: int, random: Random) -> int:
        """Return how many milliseconds to wait after so many attempts."""
        try:
            seconds = min(self.max_interval, self.initial_interval * self.backoff_factor ** (attempts - 1))
        except OverflowError:
            seconds = self.max_interval
        return int(1000 * (seconds + random.uniform(0, 1) if self.jitter and seconds else seconds))


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """Take the result of an earlier run of the node for the same input. `ttl` is in seconds; None keeps it for ever.

    `key_func(input)` returns what makes two inputs the same; without it, all of the input does.
    """

    key_func: Callable[..., Any] | None = None
    ttl: float | None = None


class Limits(NamedTuple):
    """A timeout policy in plain seconds."""

    run: float | None = None
    idle: float | None = None
    counts_all: bool = True
    """Whether any sign of life counts, and not only heartbeats."""


class Care(NamedTuple):
    """Everything that is done for a node beside calling it."""

    retry: tuple[RetryPolicy, ...] = ()
    cache: CachePolicy | None = None
    limits: Limits | None = None
    handler: Call | None = None
    """What is called when the node has failed for good."""


NO_CARE = Care()


def policy_for(policies: Sequence[RetryPolicy], error: Exception) -> RetryPolicy | None:
    """Return the first policy that covers an error."""
    return next((policy for policy in policies if policy.covers(error)), None)


def read_retry(given: RetryPolicy | Sequence[RetryPolicy] | None) -> tuple[RetryPolicy, ...]:
    """Read one policy, or several of which the first that fits counts."""
    if given is None:
        return ()
    policies = (given,) if isinstance(given, RetryPolicy) else tuple(given)
    for policy in policies:
        if not isinstance(policy, RetryPolicy):
            raise GraphError(f"retry_policy={policy!r} is no RetryPolicy. Write RetryPolicy(max_attempts=…).")
    return policies


def read_limits(given: Timeout | None) -> Limits | None:
    """Read a number of seconds, a timedelta or a TimeoutPolicy."""
    if given is None:
        return None
    if isinstance(given, TimeoutPolicy):
        if given.refresh_on not in ("auto", "heartbeat"):
            raise GraphError(f"TimeoutPolicy(refresh_on={given.refresh_on!r}): choose 'auto' or 'heartbeat'.")
        counts_all = given.refresh_on == "auto"
        return Limits(_seconds(given.run_timeout), _seconds(given.idle_timeout), counts_all)
    return Limits(_seconds(given))


def _seconds(given: Any) -> float | None:
    if given is None:
        return None
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise GraphError(f"timeout={given!r}: give a positive number of seconds, a timedelta, or a TimeoutPolicy.")
    return float(seconds)
