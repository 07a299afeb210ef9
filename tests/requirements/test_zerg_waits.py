"""What an agent can wait for (Zerg): a clock, a mail, a webhook, a person; and what it gets when that comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import pytest

from bide import (
    AIMessage,
    HumanMessage,
    MessagesState,
    WaitExpired,
    ask,
    get_config,
    interrupt,
    sleep,
    step,
    wait_for,
)
from bide.waits import Condition, after, approval, at, email, event, webhook
from tests.requirements.conftest import MakeWorld
from tests.requirements.graphs import in_line
from tests.runtime.world import NOON


class Deal(TypedDict, total=False):
    customer: str
    mail: dict[str, Any]
    decision: Any
    told: str


CUSTOMER = "customer@example.com"


def mail(number: int, **more: str) -> dict[str, Any]:
    """A mail of the customer."""
    known = {"from": f"The Customer <{CUSTOMER}>", "subject": "Re: Quote Request", "body": "We take it."}
    return {**known, "message_id": f"<{number}@example.com>", **more}


def waits_for(condition: Condition, **options: Any) -> Any:
    """A graph that waits for one thing, and keeps what came."""

    def waits(state: Deal) -> Deal:
        return {"decision": wait_for(condition, **options)}

    return in_line(Deal, waits).compile(name="deals")


# ── The four kinds ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-12", "Z0-35", "Z0-43")
@pytest.mark.parametrize(
    ("condition", "kind", "fields", "said"),
    [
        (at("2027-01-15T10:00+00:00"), "time", {"instant": NOON + 2 * 3_600_000}, "the time 2027-01-15T10:00:00Z"),
        (email(from_=CUSTOMER, subject="Re: *"), "email", {"from": CUSTOMER, "subject": "Re: *"}, CUSTOMER),
        (webhook("payments"), "webhook", {"name": "payments"}, "the webhook 'payments'"),
        (approval("Pay?", assignees=["ann"]), "approval", {"title": "Pay?", "assignees": ["ann"]}, "a decision: Pay?"),
    ],
    ids=["time", "email", "webhook", "approval"],
)
def test_what_is_waited_for_is_stored_with_its_kind_and_its_own_fields(
    world: MakeWorld, condition: Condition, kind: str, fields: dict[str, Any], said: str
) -> None:
    here = world(waits_for(condition))
    here.app.start("deals", {"customer": CUSTOMER})

    assert here.settle() == ["waiting"]

    (wait,) = here.app.waits(kind=kind)
    assert wait.condition is not None
    assert {name: wait.condition[name] for name in fields} == fields
    assert said in wait.waiting_for
    assert wait.node == "waits"


@pytest.mark.requirement("Z0-13")
def test_thread_goes_on_at_the_time_that_its_node_has_computed_and_nobody_gives_it_anything(world: MakeWorld) -> None:
    computed: list[datetime] = []

    def wake_time() -> datetime:
        computed.append(datetime.fromtimestamp(here.clock.now() / 1000, UTC) + timedelta(hours=2))
        return computed[-1]

    def wait_node(state: Deal) -> Deal:
        due = step(wake_time)
        interrupt({"wake_time": due.isoformat()}, wake=at(due))
        return {"told": "checked the status"}

    here = world(in_line(Deal, wait_node).compile(name="deals"))
    run = here.app.start("deals", {"customer": CUSTOMER})
    here.settle()

    (wait,) = here.app.waits()
    here.clock.pass_by(hours=1, minutes=59, seconds=59)
    assert here.settle() == []
    here.clock.pass_by(seconds=1)
    assert here.settle() == ["done"]

    assert wait.question == {"wake_time": "2027-01-15T10:00:00+00:00"}
    assert here.app.get(run.thread_id).values["told"] == "checked the status"
    assert len(computed) == 1


@pytest.mark.requirement("Z0-14", "Z0-23")
def test_mail_that_fits_is_the_answer_to_the_question_that_told_what_is_waited_for(world: MakeWorld) -> None:
    trigger = {"type": "email", "provider": "gmail", "from_pattern": CUSTOMER, "subject_pattern": "Re: Quote*"}

    def waits(state: Deal) -> Deal:
        payload = {"waiting_for": "customer_reply", "trigger": trigger}
        reply = interrupt(payload, wake=email(from_=trigger["from_pattern"], subject=trigger["subject_pattern"]))
        return {"mail": reply.value, "told": reply.kind}

    here = world(in_line(Deal, waits).compile(name="deals"))
    run = here.app.start("deals", {"customer": CUSTOMER})
    here.settle()
    (wait,) = here.app.waits()

    here.app.deliver("sales", mail(1, subject="Holiday"), kind="email")
    here.app.deliver("sales", mail(2, **{"from": "someone@example.com"}), kind="email")
    assert here.settle() == []
    here.app.deliver("sales", mail(3), kind="email")
    here.settle()

    assert wait.question == {"waiting_for": "customer_reply", "trigger": trigger}
    assert here.app.get(run.thread_id).values == {"customer": CUSTOMER, "mail": mail(3), "told": "email"}


@pytest.mark.requirement("Z0-15", "Z0-35")
def test_plan_waits_for_a_person_who_approves_it_with_notes(world: MakeWorld) -> None:
    def approval_gate(state: Deal) -> Deal:
        thread_id = get_config()["configurable"]["thread_id"]
        plan = {"call": "expensive"}
        return {"decision": interrupt({"type": "approval_required", "plan": plan, "ui_url": f"/approve/{thread_id}"})}

    here = world(in_line(Deal, approval_gate).compile(name="deals"))
    run = here.app.start("deals", {"customer": CUSTOMER}, thread_id="deal-7")
    here.settle()

    (wait,) = here.app.get("deal-7").waits
    here.app.resume("deal-7", {"approved": True, "user_notes": "Looks good"}, by="maya")
    here.settle()

    assert wait.question == {
        "type": "approval_required",
        "plan": {"call": "expensive"},
        "ui_url": "/approve/deal-7",
    }
    assert here.app.get(run.thread_id).values["decision"] == {"approved": True, "user_notes": "Looks good"}
    assert here.app.wait(wait.id).answered_by == "maya"


@pytest.mark.requirement("Z0-16")
def test_webhook_wakes_who_waits_for_its_name_if_the_payload_fits(world: MakeWorld) -> None:
    schema = {"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}}
    here = world(waits_for(webhook("invoice", schema=schema, match={"order": 7})))
    run = here.app.start("deals", {"customer": CUSTOMER})
    here.settle()

    missed = [
        here.app.deliver("receipt", {"order": 7, "total": 1}, kind="webhook"),
        here.app.deliver("invoice", {"order": 8, "total": 1}, kind="webhook"),
        here.app.deliver("invoice", {"order": 7, "total": "much"}, kind="webhook"),
    ]
    hit = here.app.deliver("invoice", {"order": 7, "total": 12.5}, kind="webhook")
    here.settle()

    assert [delivery.status for delivery in missed] == ["unmatched"] * 3
    assert (hit.status, hit.threads) == ("matched", (run.thread_id,))
    assert here.app.get(run.thread_id).values["decision"].value == {"order": 7, "total": 12.5}


@pytest.mark.requirement("Z0-35")
def test_few_words_are_enough_to_sleep_to_ask_and_to_wait(world: MakeWorld) -> None:
    def talks(state: Deal) -> Deal:
        sleep("2h")
        name = ask("Who is it for?", schema=str)
        paid = wait_for(event("paid", match={"for": name}))
        return {"told": f"{name}: {paid.value['sum']}"}

    here = world(in_line(Deal, talks).compile(name="deals"))
    run = here.app.start("deals", {})
    here.settle()

    here.clock.pass_by(hours=2)
    here.settle()
    here.app.resume(run.thread_id, "Ada")
    here.settle()
    here.app.deliver("paid", {"for": "Ada", "sum": 12})
    here.settle()

    assert here.app.get(run.thread_id).values == {"told": "Ada: 12"}


# ── Whom a mail is for ─────────────────────────────────────────────────────────────────────────────────────────────


def customers() -> Any:
    """Each thread waits for its own customer."""

    def waits(state: Deal) -> Deal:
        return {"mail": wait_for(email(from_=state["customer"])).value}

    return in_line(Deal, waits).compile(name="deals")


@pytest.mark.requirement("Z0-18", "Z0-37")
def test_mail_resumes_just_the_thread_that_waits_for_it_and_starts_no_other(world: MakeWorld) -> None:
    here = world(customers())
    runs = {name: here.app.start("deals", {"customer": f"{name}@example.com"}) for name in ("ann", "bob", "cid")}
    here.settle()

    delivered = here.app.deliver("sales", mail(1, **{"from": "bob@example.com"}), kind="email")
    here.settle()

    assert delivered.threads == (runs["bob"].thread_id,)
    statuses = {name: here.app.get(run.thread_id).status for name, run in runs.items()}
    assert statuses == {"ann": "waiting", "bob": "done", "cid": "waiting"}
    assert len(here.app.list()) == 3


@pytest.mark.requirement("Z0-23")
def test_one_mail_wakes_everybody_who_waits_for_it_and_the_same_mail_again_nobody(world: MakeWorld) -> None:
    here = world(customers())
    for _ in range(3):
        here.app.start("deals", {"customer": CUSTOMER})
    here.settle()

    first = here.app.deliver("sales", mail(1), kind="email")
    late = here.app.start("deals", {"customer": "late@example.com"})
    again = here.app.deliver("sales", mail(1), kind="email")
    here.settle()

    assert (first.wakes, again.wakes, again.is_new) == (3, 3, False)
    assert [thread.thread_id for thread in here.app.list(status="waiting")] == [late.thread_id]
    assert len(here.app.deliveries()) == 1


@pytest.mark.requirement("Z0-23")
def test_mail_that_came_before_the_pause_was_stored_is_found(world: MakeWorld) -> None:
    here = world(customers())
    early = here.app.deliver("sales", mail(1), kind="email")
    here.clock.pass_by(hours=23)

    run = here.app.start("deals", {"customer": CUSTOMER})
    here.settle()

    assert early.status == "unmatched"
    assert here.app.get(run.thread_id).values["mail"] == mail(1)
    assert here.app.deliveries(unmatched=True) == []


@pytest.mark.requirement("Z0-23")
def test_why_a_mail_woke_nobody_can_be_asked(world: MakeWorld) -> None:
    here = world(waits_for(email(from_=CUSTOMER, subject="Re: Quote*")))
    here.app.start("deals", {})
    here.settle()

    missed = here.app.deliver("sales", mail(1, subject="Holiday"), kind="email")

    told = str(here.app.explain(missed.id))
    assert "fits none of the 1" in told
    assert "subject 'Holiday' does not match the pattern 'Re: Quote*'" in told


# ── Until when ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-27")
def test_each_wait_has_its_own_deadline_and_goes_on_with_what_was_said_for_that(world: MakeWorld) -> None:
    """Zerg's sample looks at a fixed 48 hours whatever the interrupt said."""

    def waits(state: Deal) -> Deal:
        signal = {"timeout": True, "reason": f"No reply after {state['told']}"}
        return {"decision": wait_for(email(from_=CUSTOMER), timeout=state["told"], default=signal)}

    here = world(in_line(Deal, waits).compile(name="deals"))
    short, long = (here.app.start("deals", {"told": length}) for length in ("24h", "48h"))
    here.settle()

    here.clock.pass_by(hours=24)
    assert here.settle() == ["done"]
    here.clock.pass_by(hours=24)
    assert here.settle() == ["done"]

    for run, length in ((short, "24h"), (long, "48h")):
        expected = {"timeout": True, "reason": f"No reply after {length}"}
        assert here.app.get(run.thread_id).values["decision"] == expected


@pytest.mark.requirement("Z0-27")
@pytest.mark.parametrize(("passed", "winner"), [(47.999, "email"), (48.001, "expired")], ids=["before", "after"])
@pytest.mark.parametrize("is_swept_first", [True, False])
def test_mail_and_deadline_have_one_winner_by_the_clock_and_not_by_who_looks_first(
    world: MakeWorld, passed: float, winner: str, is_swept_first: bool
) -> None:
    def waits(state: Deal) -> Deal:
        try:
            return {"told": wait_for(email(from_=CUSTOMER), timeout="48h").kind}
        except WaitExpired:
            return {"told": "expired"}

    here = world(in_line(Deal, waits).compile(name="deals"))
    run = here.app.start("deals", {})
    here.settle()

    here.clock.pass_by(hours=passed)
    if is_swept_first:
        here.app.tend()
    here.app.deliver("sales", mail(1), kind="email")
    here.clock.pass_by(hours=1)
    here.settle()

    assert here.app.get(run.thread_id).values["told"] == winner


# ── What the agent knows afterwards ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-31", "Z0-34", "Z0-40")
def test_customer_is_written_to_answers_days_later_and_the_order_goes_through(world: MakeWorld) -> None:
    sent: list[str] = []

    def wait_for_customer_reply(state: Deal) -> Deal:
        step(sent.append, state["customer"])
        reply = wait_for(email(from_=state["customer"], subject="Re: *"), timeout="72h")
        return {"mail": reply.value}

    def proceed(state: Deal) -> Deal:
        return {"told": f"Customer approved ({state['mail']['body']}), proceeding with order"}

    here = world(in_line(Deal, wait_for_customer_reply, proceed).compile(name="deals"))
    run = here.app.start("deals", {"customer": CUSTOMER})
    here.settle()
    paused = here.app.get(run.thread_id)

    here.clock.pass_by(hours=50)
    here.app.deliver("sales", mail(1), kind="email")
    here.settle()

    assert (paused.status, paused.waits[0].waiting_for) == ("waiting", f"an e-mail from {CUSTOMER}, subject Re: *")
    done = here.app.get(run.thread_id)
    assert (done.status, done.waits) == ("done", ())
    assert done.values["mail"] == mail(1)
    assert done.values["told"] == "Customer approved (We take it.), proceeding with order"
    assert sent == [CUSTOMER]


@pytest.mark.requirement("Z0-36")
def test_messages_and_the_place_in_the_code_are_both_kept_and_a_wake_is_no_message(world: MakeWorld) -> None:
    def asks(state: MessagesState) -> Any:
        return {"messages": [AIMessage("I have written to them.")]}

    def waits(state: MessagesState) -> Any:
        reply = wait_for(event("reply"))
        return {"messages": [AIMessage(f"They say: {reply.value}")]}

    here = world(in_line(MessagesState, asks, waits).compile(name="chat"))
    run = here.app.start("chat", {"messages": [HumanMessage("Ask them.")]})
    here.settle()
    paused = here.app.get(run.thread_id)

    here.app.deliver("reply", "yes")
    here.settle()

    assert [message.content for message in paused.values["messages"]] == ["Ask them.", "I have written to them."]
    assert paused.next == ("waits",)
    said = [message.content for message in here.app.get(run.thread_id).values["messages"]]
    assert said == ["Ask them.", "I have written to them.", "They say: yes"]


@pytest.mark.requirement("Z0-43")
def test_thread_pauses_only_where_its_code_says_so(world: MakeWorld) -> None:
    def much(state: Deal) -> Deal:
        return {"told": "word " * 50_000}

    here = world(in_line(Deal, much).compile(name="silent"), waits_for(after("1h")))

    here.app.start("silent", {})
    here.app.start("deals", {})

    assert sorted(here.settle()) == ["done", "waiting"]
    assert [wait.graph for wait in here.app.waits()] == ["deals"]
