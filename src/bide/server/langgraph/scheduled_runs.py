"""What a client says about the runs of a cron, as options of the schedule that starts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from bide.runtime.starts import StartOptions
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.hooks.targets import check_target
from bide.server.langgraph.assistant_shapes import Assistant
from bide.server.langgraph.run_requests import RunBody, notes_of, said_of
from bide.server.problems import Problem


def options_of(
    ctx: Context, caller: Caller, assistant: Assistant, payload: Mapping[str, Any], metadata: Mapping[str, Any]
) -> StartOptions:
    """Return the options of `app.schedule`: the runs of a cron are the same as those that a client starts itself.

    A thread that is busy, or waits for an answer, has them put behind, unless the client says otherwise.
    """
    known = {name: value for name, value in payload.items() if name in RunBody.model_fields}
    try:
        body = RunBody.model_validate({**known, "assistant_id": assistant.assistant_id, "metadata": dict(metadata)})
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_context=False, include_input=False)
        said_of_it = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)
        raise Problem(422, f"No run could be started with this: {said_of_it}.") from None
    if body.webhook is not None:
        check_target(body.webhook, ctx.settings)
    said: StartOptions = {
        **said_of(body, assistant, caller),
        "tell": (*body.modes, "subgraphs") if body.stream_subgraphs else body.modes,
        "notes": notes_of(body, assistant),
        "if_busy": body.multitask_strategy or "enqueue",
    }
    if body.durability is None and payload.get("checkpoint_during") is False:
        said["durability"] = "exit"
    return said
