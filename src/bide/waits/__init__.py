"""What a thread waits for, and whether what came is it. Nothing here reads a clock, a database or the network.

    conditions   a time, a mail, a webhook, an event, a person, a child; `groups` puts several together;
                 `given` is what their arguments may be
    durations    lengths of time as people write them
    patterns     regular expressions (run by `bide.shape.automaton`); `globs`; `criteria` of payloads
    stored       conditions as plain data and back           needs        what else a wait says
    leaves       the rows that a condition becomes           correlations by which facts find them
    facts        what the world brings; `mails`, `addresses` what is read of a mail
    matching     whether a fact fits a leaf, and why (`judging`)
    tree         whether the whole is satisfied (`judged_tree`)
    wake         what comes back from a wait                 answers      what an approval's answer looks like

The names of this package are loaded when they are asked for: `import bide` need not pay for them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bide.errors import DeliveryError
    from bide.waits.answers import answer_schema
    from bide.waits.conditions import (
        After,
        Approval,
        At,
        Child,
        Condition,
        Email,
        Event,
        Webhook,
        after,
        approval,
        at,
        child,
        email,
        event,
        webhook,
    )
    from bide.waits.durations import Duration, milliseconds
    from bide.waits.facts import (
        Fact,
        check_fact,
        child_fact,
        email_fact,
        event_fact,
        webhook_fact,
    )
    from bide.waits.globs import literal
    from bide.waits.groups import AllOf, AnyOf, Group, Quorum, all_of, any_of, quorum
    from bide.waits.leaves import Leaf, correlations_of
    from bide.waits.matching import Match, match
    from bide.waits.patterns import OneOf, Regex, one_of, regex
    from bide.waits.stored import from_plain, to_plain
    from bide.waits.tree import open_leaves, verdict
    from bide.waits.wake import ChildResult, Wake
else:  # a type checker would take this for a word that everything is here
    _WHERE = {
        "answers": ("answer_schema",),
        "conditions": (
            *("After", "Approval", "At", "Child", "Condition", "Email", "Event", "Webhook"),
            *("after", "approval", "at", "child", "email", "event", "webhook"),
        ),
        "durations": ("Duration", "milliseconds"),
        "facts": ("DeliveryError", "Fact", "check_fact", "child_fact", "email_fact", "event_fact", "webhook_fact"),
        "globs": ("literal",),
        "groups": ("AllOf", "AnyOf", "Group", "Quorum", "all_of", "any_of", "quorum"),
        "leaves": ("Leaf", "correlations_of"),
        "matching": ("Match", "match"),
        "patterns": ("OneOf", "Regex", "one_of", "regex"),
        "stored": ("from_plain", "to_plain"),
        "tree": ("open_leaves", "verdict"),
        "wake": ("ChildResult", "Wake"),
    }
    _MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

    def __getattr__(name: str) -> object:
        """Load a name when somebody asks for it."""
        from importlib import import_module

        if name not in _MODULE_OF:
            raise AttributeError(f"module 'bide.waits' has no attribute {name!r}")
        found = getattr(import_module(f"bide.waits.{_MODULE_OF[name]}"), name)
        globals()[name] = found
        return found


__all__ = [
    "After",
    "AllOf",
    "AnyOf",
    "Approval",
    "At",
    "Child",
    "ChildResult",
    "Condition",
    "DeliveryError",
    "Duration",
    "Email",
    "Event",
    "Fact",
    "Group",
    "Leaf",
    "Match",
    "OneOf",
    "Quorum",
    "Regex",
    "Wake",
    "Webhook",
    "after",
    "all_of",
    "answer_schema",
    "any_of",
    "approval",
    "at",
    "check_fact",
    "child",
    "child_fact",
    "correlations_of",
    "email",
    "email_fact",
    "event",
    "event_fact",
    "from_plain",
    "literal",
    "match",
    "milliseconds",
    "one_of",
    "open_leaves",
    "quorum",
    "regex",
    "to_plain",
    "verdict",
    "webhook",
    "webhook_fact",
]
