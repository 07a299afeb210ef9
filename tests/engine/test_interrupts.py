"""interrupt(): questions with a name of their own, and answers that reach exactly them."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Command, CompiledGraph, Interrupt, Runtime, StateGraph, Store, interrupt
from bide.errors import (
    AlreadyAnsweredError,
    AmbiguousResumeError,
    InterruptError,
    InterruptSwallowedError,
    NotWaitingError,
    ReplayMismatchError,
    ThreadPausedError,
    UnknownInterruptError,
    UnknownThreadError,
    UnstorableValueError,
)
from tests.threads import in_a_row, one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def asks(question: Any, **options: Any) -> Any:
    return lambda state: {"log": [interrupt(question, **options)]}


def resume(graph: CompiledGraph, answer: Any) -> Any:
    return graph.invoke(Command(resume=answer), thread())


# ── Identity ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_id_of_a_question_is_the_same_in_the_result_the_state_and_at_every_look(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)

    first = graph.invoke({"log": []}, thread()).interrupts
    again = graph.invoke(None, thread()).interrupts

    assert first == again == graph.get_state(thread()).interrupts
    assert len(first[0].id) == 32


def test_no_two_questions_share_an_id(store: Store):
    def two(state: Log) -> Log:
        return {"log": [interrupt("same"), interrupt("same")]}

    graph = side_by_side(Log, {"a": two, "b": two}, checkpointer=store)
    ids: list[str] = []
    for name in ("one", "two"):
        paused = graph.invoke({"log": []}, thread(name))
        ids += [question.id for question in paused.interrupts]
        paused = graph.invoke(Command(resume={question.id: 1 for question in paused.interrupts}), thread(name))
        ids += [question.id for question in paused.interrupts]

    assert len(set(ids)) == 8


def test_deleted_thread_begun_anew_asks_under_another_id(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    old = graph.invoke({"log": []}, thread()).interrupts[0].id
    store.delete_thread("t")

    new = graph.invoke({"log": []}, thread()).interrupts[0].id

    assert new != old
    with pytest.raises(UnknownInterruptError):
        resume(graph, {old: "late"})


# ── Several questions in one node ──────────────────────────────────────────────────────────────────────────────────


def test_questions_of_a_node_are_asked_one_after_the_other_and_keep_their_answers(store: Store):
    runs = []

    def survey(state: Log) -> Log:
        runs.append("run")
        return {"log": [interrupt(f"question {n}") for n in range(4)]}

    graph = one_node(Log, survey, checkpointer=store)
    asked = [graph.invoke({"log": []}, thread()).interrupt_value]
    asked += [resume(graph, n).interrupt_value for n in range(3)]

    assert asked == [f"question {n}" for n in range(4)]
    assert resume(graph, 3)["log"] == [0, 1, 2, 3]
    assert len(runs) == 5


def test_keyed_questions_find_their_answers_in_whatever_order_they_are_asked(store: Store):
    order = ["name", "age"]

    def survey(state: Log) -> Log:
        answers = {key: interrupt(f"{key}?", key=key) for key in order}
        return {"log": [answers["name"], answers["age"]]}

    graph = one_node(Log, survey, checkpointer=store)
    graph.invoke({"log": []}, thread())
    resume(graph, "Ada")

    order.reverse()
    done = resume(graph, 36)

    assert done["log"] == ["Ada", 36]


def test_key_is_shown_with_the_question(store: Store):
    paused = one_node(Log, asks("?", key="who"), checkpointer=store).invoke({"log": []}, thread())

    assert (paused.interrupts[0].key, paused.interrupts[0].node) == ("who", "node")


@pytest.mark.parametrize("key", ["", "#1", "@before"])
def test_key_that_could_be_taken_for_one_of_ours_is_refused(store: Store, key: str):
    with pytest.raises(InterruptError, match="key"):
        one_node(Log, asks("?", key=key), checkpointer=store).invoke({"log": []}, thread())


async def test_questions_asked_together_in_one_async_node_are_both_reported(store: Store):
    async def ask(question: str) -> Any:
        return interrupt(question)

    async def both(state: Log) -> Log:
        return {"log": await asyncio.gather(ask("left?"), ask("right?"))}

    graph = one_node(Log, both, checkpointer=store)
    paused = await graph.ainvoke({"log": []}, thread())
    seen = await graph.aget_state(thread())
    answers = {question.id: question.value.removesuffix("?") for question in paused.interrupts}
    done = await graph.ainvoke(Command(resume=answers), thread())

    assert [question.value for question in paused.interrupts] == ["left?", "right?"]
    assert set(seen.interrupts) == set(paused.interrupts)
    assert done["log"] == ["left", "right"]


# ── Answers ────────────────────────────────────────────────────────────────────────────────────────────────────────


HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize("answer", [None, {}, [], 0, "", False, {"a": 1}, {HEX: "x"}])
def test_any_value_is_an_answer_when_given_by_id(store: Store, answer: Any):
    graph = one_node(Log, asks("?"), checkpointer=store)
    paused = graph.invoke({"log": []}, thread())

    done = resume(graph, {paused.interrupts[0].id: answer})

    assert done["log"] == [answer]


@pytest.mark.parametrize("answer", [None, {}, [], 0, "", False, {"a": 1}])
def test_any_value_but_a_map_of_ids_is_an_answer_by_itself(store: Store, answer: Any):
    graph = one_node(Log, asks("?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    assert resume(graph, answer)["log"] == [answer]


def test_dict_that_looks_like_a_map_of_ids_is_never_ignored(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    with pytest.raises(UnknownInterruptError) as caught:
        resume(graph, {HEX: "x"})

    assert caught.value.interrupt_ids == (HEX,)
    assert caught.value.pending_ids == tuple(question.id for question in graph.get_state(thread()).interrupts)


def three_askers(store: Store, runs: list[str]) -> CompiledGraph:
    def ask(name: str) -> Any:
        def run(state: Log) -> Log:
            runs.append(name)
            return {"log": [f"{name}={interrupt(name)}"]}

        return run

    return side_by_side(Log, {name: ask(name) for name in "abc"}, checkpointer=store)


@pytest.mark.complaint(1)
def test_some_may_be_answered_and_tasks_without_an_answer_are_not_run_again(store: Store):
    runs: list[str] = []
    graph = three_askers(store, runs)
    ids = {question.value: question.id for question in graph.invoke({"log": []}, thread()).interrupts}
    runs.clear()

    partly = resume(graph, {ids["b"]: 2})
    ran_with_b = list(runs)
    done = resume(graph, {ids["a"]: 1, ids["c"]: 3})

    assert ran_with_b == ["b"]
    assert [question.value for question in partly.interrupts] == ["a", "c"]
    assert partly.value == {"log": ["b=2"]}, "what has finished is shown, as get_state shows it"
    assert done["log"] == ["a=1", "b=2", "c=3"]
    assert sorted(runs) == ["a", "b", "c"]


def test_answered_question_of_a_node_waits_for_the_others_of_that_node(store: Store):
    runs = []

    async def ask(question: str) -> Any:
        return interrupt(question, key=question)

    async def both(state: Log) -> Log:
        runs.append("run")
        return {"log": await asyncio.gather(ask("left"), ask("right"))}

    graph = one_node(Log, both, checkpointer=store)

    async def story() -> Any:
        paused = await graph.ainvoke({"log": []}, thread())
        ids = {question.value: question.id for question in paused.interrupts}
        partly = await graph.ainvoke(Command(resume={ids["right"]: "r"}), thread())
        return partly, await graph.ainvoke(Command(resume="l"), thread())

    partly, done = asyncio.run(story())

    assert [question.value for question in partly.interrupts] == ["left"]
    assert done["log"] == ["l", "r"]
    assert len(runs) == 2


def test_one_answer_for_several_questions_is_an_error_and_writes_nothing(store: Store):
    runs: list[str] = []
    graph = three_askers(store, runs)
    before = graph.invoke({"log": []}, thread())
    runs.clear()

    with pytest.raises(AmbiguousResumeError, match="Say which"):
        resume(graph, "yes")

    assert runs == []
    assert graph.get_state(thread()).config["configurable"]["checkpoint_id"] == before.checkpoint_id


def test_unknown_id_beside_a_known_one_spoils_the_whole_answer(store: Store):
    runs: list[str] = []
    graph = three_askers(store, runs)
    ids = [question.id for question in graph.invoke({"log": []}, thread()).interrupts]
    runs.clear()

    with pytest.raises(UnknownInterruptError, match=HEX):
        resume(graph, {ids[0]: 1, HEX: 2})

    assert runs == []
    assert len(graph.get_state(thread()).interrupts) == 3


@pytest.mark.complaint(17)
def test_answer_stands_a_second_one_is_refused_by_id_and_by_value(store: Store):
    is_broken = True

    def node(state: Log) -> Log:
        answer = interrupt("?")
        if is_broken:
            raise OSError("later")
        return {"log": [answer]}

    graph = one_node(Log, node, checkpointer=store)
    id_ = graph.invoke({"log": []}, thread()).interrupts[0].id
    with pytest.raises(OSError, match="later"):
        resume(graph, "first")

    for second in ("second", {id_: "second"}):
        with pytest.raises(AlreadyAnsweredError, match="'first'"):
            resume(graph, second)
    is_broken = False

    assert graph.get_state(thread()).interrupts == (), "an answered question is not open"
    assert graph.invoke(None, thread())["log"] == ["first"]


def test_answer_to_a_question_of_a_step_that_is_over_is_refused(store: Store):
    graph = in_a_row(Log, {"a": asks("one"), "b": asks("two")}, checkpointer=store)
    old = graph.invoke({"log": []}, thread()).interrupts[0].id
    resume(graph, 1)

    with pytest.raises((AlreadyAnsweredError, UnknownInterruptError), match=old):
        resume(graph, {old: "late"})

    assert resume(graph, 2)["log"] == [1, 2]


def test_resume_of_a_finished_or_unknown_thread_is_refused(store: Store):
    graph = one_node(Log, lambda state: None, checkpointer=store)
    graph.invoke({"log": []}, thread())

    with pytest.raises(NotWaitingError, match="finished"):
        resume(graph, "x")
    with pytest.raises(UnknownThreadError):
        graph.invoke(Command(resume="x"), thread("nobody"))
    with pytest.raises(UnknownThreadError):
        graph.invoke(None, thread("nobody"))


def test_answer_may_bring_an_update_and_a_place_to_go_beside(store: Store):
    builder = StateGraph(Log).add_node("ask", asks("?")).add_edge(START, "ask")
    builder.add_node("audit", lambda state: {"log": ["audited"]})
    graph = builder.compile(store)
    graph.invoke({"log": []}, thread())

    done = graph.invoke(Command(resume="yes", update={"log": ["signed"]}, goto="audit"), thread())

    assert done["log"] == ["signed", "yes", "audited"]


def test_answer_that_cannot_be_stored_is_refused_and_the_question_stays_open(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    with pytest.raises(UnstorableValueError, match="answer to"):
        resume(graph, object())

    assert resume(graph, "plain")["log"] == ["plain"]


# ── Plain input while a question is open ───────────────────────────────────────────────────────────────────────────


def test_stray_input_never_answers_a_question(store: Store):
    graph = one_node(Log, asks("approve?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    with pytest.raises(ThreadPausedError, match=r"approve\?.*on_paused"):
        graph.invoke({"log": ["hello"]}, thread())

    assert graph.get_state(thread()).values == {"log": []}
    assert len(graph.get_state(thread()).interrupts) == 1


def test_input_may_be_merged_and_answer_the_only_question(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store)
    graph.invoke({"log": []}, thread())

    done = graph.invoke({"log": ["hello"]}, thread(), on_paused="resume")

    assert done["log"] == ["hello", {"log": ["hello"]}]


def test_input_cannot_answer_several_questions(store: Store):
    graph = three_askers(store, [])
    graph.invoke({"log": []}, thread())

    with pytest.raises(AmbiguousResumeError):
        graph.invoke({"log": ["hello"]}, thread(), on_paused="resume")


def test_input_may_drop_the_question_and_begin_anew_over_the_state(store: Store):
    graph = one_node(Log, asks("?"), checkpointer=store, on_paused="restart")
    old = graph.invoke({"log": ["one"]}, thread()).interrupts[0].id

    again = graph.invoke({"log": ["two"]}, thread())

    assert again.value == {"log": ["one", "two"]}
    assert again.interrupts[0].id != old
    with pytest.raises((UnknownInterruptError, AlreadyAnsweredError)):
        resume(graph, {old: "late"})


def test_command_that_goes_elsewhere_cancels_the_question(store: Store):
    builder = StateGraph(Log).add_node("ask", asks("?")).add_edge(START, "ask")
    builder.add_node("other", lambda state: {"log": ["other"]})
    graph = builder.compile(store)
    graph.invoke({"log": []}, thread())

    done = graph.invoke(Command(goto="other"), thread())

    assert (done.value, done.is_complete) == ({"log": ["other"]}, True)


# ── Where it cannot pause ──────────────────────────────────────────────────────────────────────────────────────────


def test_question_outside_a_node_is_refused():
    with pytest.raises(InterruptError, match="outside a node"):
        interrupt("anybody?")


@pytest.mark.parametrize("node", [asks("?"), lambda state: Interrupt("?")], ids=["called", "returned"])
def test_question_without_a_store_is_refused_with_the_way_to_get_one(node: Any):
    with pytest.raises(InterruptError, match=r"no store.*checkpointer="):
        one_node(Log, node).invoke({"log": []})


def test_question_that_cannot_be_stored_is_refused_and_names_the_node(store: Store):
    with pytest.raises(UnstorableValueError, match="interrupt value in node 'node'"):
        one_node(Log, asks({"handle": object()}), checkpointer=store).invoke({"log": []}, thread())


# ── Caught on the way ──────────────────────────────────────────────────────────────────────────────────────────────


def test_except_exception_lets_the_pause_pass(store: Store):
    def careful(state: Log) -> Log:
        try:
            return {"log": [interrupt("?")]}
        except Exception:  # noqa: BLE001 — that is the point
            return {"log": ["swallowed"]}

    graph = one_node(Log, careful, checkpointer=store)

    assert graph.invoke({"log": []}, thread()).is_interrupted
    assert resume(graph, "yes")["log"] == ["yes"]


def bare(state: Log) -> Log:
    try:
        interrupt("?")
    except:  # noqa: E722 — that is the point
        return {"log": ["swallowed"]}
    return {}


def base(state: Log) -> Log:
    try:
        interrupt("?")
    except BaseException as problem:
        raise ValueError("wrapped") from problem
    return {}


@pytest.mark.parametrize("node", [bare, base])
def test_node_that_swallows_its_pause_is_told_so_and_nothing_is_kept(store: Store, node: Any):
    graph = one_node(Log, node, checkpointer=store)

    with pytest.raises(InterruptSwallowedError, match=r"caught its signal.*except BaseException"):
        graph.invoke({"log": []}, thread())

    assert graph.get_state(thread()).values == {"log": []}
    assert graph.get_state(thread()).interrupts == ()


def test_finally_runs_at_the_pause_and_again_at_the_resume(store: Store):
    closed = []

    def node(state: Log) -> Log:
        try:
            return {"log": [interrupt("?")]}
        finally:
            closed.append("closed")

    graph = one_node(Log, node, checkpointer=store)
    graph.invoke({"log": []}, thread())

    assert resume(graph, "yes")["log"] == ["yes"]
    assert len(closed) == 2


def test_question_that_reads_differently_on_replay_gets_no_answer(store: Store):
    wording = "Pay 10?"
    graph = one_node(Log, lambda state: {"log": [interrupt(wording)]}, checkpointer=store)
    graph.invoke({"log": []}, thread())

    wording = "Pay 10000?"
    with pytest.raises(ReplayMismatchError, match=r"answered: 'Pay 10\?'\n.*asked now: 'Pay 10000\?'"):
        resume(graph, "yes")
    wording = "Pay 10?"

    assert graph.invoke(None, thread())["log"] == ["yes"]


def test_question_with_a_key_may_be_worded_anew(store: Store):
    wording = "Pay?"
    graph = one_node(Log, lambda state: {"log": [interrupt(wording, key="pay")]}, checkpointer=store)
    graph.invoke({"log": []}, thread())

    wording = "Would you please pay?"

    assert resume(graph, "yes")["log"] == ["yes"]


def test_runtime_of_the_node_knows_its_thread(store: Store):
    def node(state: Log, runtime: Runtime[Any]) -> Log:
        return {"log": [interrupt(f"approve at /threads/{runtime.thread_id}")]}

    paused = one_node(Log, node, checkpointer=store).invoke({"log": []}, thread("abc"))

    assert paused.interrupt_value == "approve at /threads/abc"
