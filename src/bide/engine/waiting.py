"""`wait_for`, `sleep` and `ask`: a few lines each over the one `interrupt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from bide.engine.context import interrupt
from bide.types import UNSET
from bide.waits.asked import WaitOptions
from bide.waits.wake import Wake

if TYPE_CHECKING:
    from bide.waits.conditions import Condition
    from bide.waits.durations import Duration


def wait_for(condition: Condition, *, key: str | None = None, **options: Unpack[WaitOptions]) -> Any:
    """Pause this thread until a condition is satisfied, and return what did: a `Wake`.

    `reply.value` is what came, `reply.winner` which of several conditions it was, `reply.by` and `reply.when` who
    brought it, and when. After `timeout` the call returns `default`, or raises `WaitExpired`.
    """
    from bide.waits.shown import shown  # only those who wait for more than an answer pay for it

    default = options.get("default", UNSET)
    options["wake"] = condition
    if default is not UNSET:
        # It may be any value, a Wake included: a mark that is nobody's tells that nothing came.
        options["default"] = _NOTHING_CAME
    answer = interrupt(shown(condition), key=key, **options)
    return default if answer is _NOTHING_CAME else _woken(answer)


_NOTHING_CAME = object()


def _woken(answer: Any) -> Wake:
    """Return what came; whoever answers by hand gives a bare value."""
    return answer if isinstance(answer, Wake) else Wake(answer, via="resume")


def sleep(duration: Duration, *, key: str | None = None) -> None:
    """Pause this thread for a while: "2h30m", a `timedelta`, or seconds. Nothing stays in memory meanwhile."""
    from bide.waits.conditions import after

    wait_for(after(duration), key=key)


def ask(
    question: Any,
    *,
    options: Sequence[str] | None = None,
    schema: Any = None,
    key: str | None = None,
    **more: Unpack[WaitOptions],
) -> Any:
    """Ask a person, and return the answer: one of `options`, something that fits `schema`, or anything."""
    from bide.errors import InterruptError

    if options is not None and schema is not None:
        raise InterruptError("ask(options=…) and ask(schema=…) both say what an answer looks like. Give one of them.")
    shape: Any = schema if options is None else _one_of(options)
    return interrupt(question, key=key, response_schema=shape, **more)


def _one_of(options: Sequence[str]) -> Mapping[str, Any]:
    return {"enum": list(options)}
