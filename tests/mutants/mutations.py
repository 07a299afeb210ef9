"""Ways to break the runtime, each with the test that must notice. docs/mutants.md tells them to people."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Change = Callable[[str], str]

FENCES = "tests/runtime/test_fences_of_workers.py"
MEETINGS = "tests/runtime/test_facts_meet_waits.py"
ENDS = "tests/runtime/test_ends_meet_waits.py"
WAKING = "tests/runtime/test_waking.py"
RUNS = "tests/runtime/test_runs.py"


@dataclass(frozen=True)
class Mutation:
    """One thing that a careless programmer forgets."""

    name: str
    file: str
    """Below src/bide."""
    change: Change
    test: str
    """What fails then."""


def replaced(old: str, new: str = "", *, at: int = 1) -> Change:
    """Replace a piece of text: its only occurrence, or one of them."""

    def change(text: str) -> str:
        parts = text.split(old)
        assert len(parts) > at, f"{old!r} is not there any more: say anew how to break it"
        return old.join(parts[:at]) + new + old.join(parts[at:])

    return change


def in_query(query: str, old: str, new: str = "") -> Change:
    """Replace a piece of one named query."""

    def change(text: str) -> str:
        found = re.search(rf"^-- name: {query}\n.*?(?=^-- name: |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found is not None, f"there is no query {query!r} any more"
        assert old in found[0], f"{old!r} is not in {query!r} any more"
        return text[: found.start()] + found[0].replace(old, new, 1) + text[found.end() :]

    return change


QUERIES = "store/sql/queries.sql"
RUNTIME = "store/sql/runtime.sql"

REGISTER = "    for wait in transition.waits:\n        register(writing, lease, wait, head, transition.owner)\n"
REGISTER_LATER = """        self.database.write("commit", save)
        if transition.waits:
            def later(tx: Transaction) -> None:
                for wait in transition.waits:
                    register(Writing(tx, self.bodies, now), lease, wait, transition.head, transition.owner)
            self.database.write("later", later)
"""


def registered_after_the_commit(text: str) -> str:
    """Commit the pause first, and write down what it waits for in a transaction of its own."""
    without = replaced(REGISTER)(text)
    return replaced('        self.database.write("commit", save)\n', REGISTER_LATER)(without)


MUTATIONS = [
    # ── The epoch ────────────────────────────────────────────────────────────────────────────────────────────────────
    *(
        Mutation(
            f"no epoch in {query}",
            QUERIES,
            in_query(query, "AND epoch = :epoch\n"),
            f"{FENCES}::test_every_write_of_a_run_is_refused_in_an_older_epoch[memory-{query}]",
        )
        for query in ("write_checkpoint", "hold_lease", "end_run")
    ),
    Mutation(
        "whoever is reaped keeps its epoch",
        RUNTIME,
        in_query("reap_run", "epoch = epoch + 1, "),
        f"{FENCES}::test_worker_that_was_taken_for_dead_can_be_told_from_its_successor",
    ),
    # ── Waits ────────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutation(
        "an answer over an answer",
        RUNTIME,
        in_query("settle_wait", "AND status = 'open'\n"),
        f"{FENCES}::test_wait_that_is_settled_or_over_is_not_settled_again[status = 'answered']",
    ),
    Mutation(
        "an answer to a step that is over",
        RUNTIME,
        in_query("settle_wait", "AND consumed = 0\n"),
        f"{FENCES}::test_wait_that_is_settled_or_over_is_not_settled_again[consumed = 1]",
    ),
    Mutation(
        "everybody is told that they were first",
        "store/answering.py",
        replaced("    if not wait.is_open:\n", "    if False:\n"),
        "tests/runtime/test_answers_race.py::test_questions_that_threads_answer_at_once_have_one_winner_each[file]",
    ),
    Mutation(
        "a wake that makes nobody ready",
        RUNTIME,
        in_query("make_ready", "status = 'ready', epoch", "epoch"),
        f"{WAKING}::test_sleeping_thread_goes_on_when_its_time_has_come[memory]",
    ),
    Mutation(
        "an answer while the run is running is forgotten",
        QUERIES,
        in_query("end_run", "AND w.settled_in = :epoch", "AND w.settled_in = -1"),
        f"{WAKING}::test_answer_that_comes_while_its_sibling_runs_is_not_forgotten[memory]",
    ),
    # ── Facts and waits ──────────────────────────────────────────────────────────────────────────────────────────────
    Mutation(
        "no correlation lock when a wait is registered",
        "store/registering.py",
        replaced("        hold_keys(writing.tx, ", "        list("),
        f"{MEETINGS}::test_fact_that_comes_while_a_wait_is_being_registered_is_not_lost[one]",
    ),
    Mutation(
        "no correlation lock when a fact is matched",
        "store/delivering.py",
        replaced("        hold_keys(self.tx, keys)\n"),
        f"{MEETINGS}::test_fact_that_comes_while_a_wait_is_being_registered_is_not_lost[one]",
    ),
    Mutation(
        "waits are registered after the commit",
        "store/store.py",
        registered_after_the_commit,
        f"{FENCES}::test_thread_that_paused_can_be_answered_though_its_worker_died_right_after",
    ),
    Mutation(
        "no look-back",
        RUNTIME,
        in_query("look_back", "WHERE k.correlation = :correlation", "WHERE 1 = 0 AND k.correlation = :correlation"),
        f"{MEETINGS}::test_facts_and_waits_meet_in_every_order_of_their_transactions",
    ),
    Mutation(
        "a fact for one alone goes to everybody",
        "store/delivering.py",
        replaced("        return not candidate.is_exclusive or ", "        return True or "),
        f"{MEETINGS}::test_facts_and_waits_meet_in_every_order_of_their_transactions",
    ),
    Mutation(
        "what a child told is looked for once",
        "store/registering.py",
        replaced("                self.through([leaf])\n"),
        f"{ENDS}::test_child_that_ends_while_its_parent_begins_to_wait_is_seen_whole[commit:expect_end-one]",
    ),
    # ── Claims and workers ───────────────────────────────────────────────────────────────────────────────────────────
    Mutation(
        "what runs is claimed, too",
        RUNTIME,
        in_query("claim_ready", "WHERE status = 'ready'", "WHERE status IN ('ready', 'running')"),
        f"{FENCES}::test_run_is_claimed_once[memory]",
    ),
    Mutation(
        "who claims waits for others who do",
        RUNTIME,
        in_query("claim_ready", "/* lock: skip locked */", "/* lock: */"),
        f"{FENCES}::test_claim_passes_over_runs_that_another_worker_is_claiming",
    ),
    Mutation(
        "who claims locks nothing",
        RUNTIME,
        in_query("claim_ready", "/* lock: skip locked */"),
        f"{FENCES}::test_claim_passes_over_runs_that_another_worker_is_claiming",
    ),
    Mutation(
        "a worker that was heard of is robbed",
        "store/sql/workers.sql",
        in_query("lay_off_worker", "AND lease_until = :lease_until", "AND :lease_until = :lease_until"),
        f"{FENCES}::test_worker_that_is_heard_of_while_it_is_being_judged_keeps_its_runs",
    ),
    Mutation(
        "nobody looks whether a worker was heard of",
        "store/claiming.py",
        replaced('tx.run("lay_off_worker", seen) != 1', "False"),
        f"{FENCES}::test_worker_that_is_heard_of_while_it_is_being_judged_keeps_its_runs",
    ),
    # ── Runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutation(
        "an input is applied again",
        RUNTIME,
        in_query("consume_input", "SET input = NULL", "SET input = input"),
        f"{FENCES}::test_input_is_applied_once_wherever_the_worker_dies[enter:committed]",
    ),
    Mutation(
        "who is queued stays queued",
        RUNTIME,
        in_query("promote_next", "SET status = 'ready'", "SET status = 'queued'"),
        f"{RUNS}::test_second_run_on_a_busy_thread_is_refused_or_waits_its_turn[memory]",
    ),
    Mutation(
        "a child is not in the journal of who spawned it",
        "store/starting.py",
        replaced("            writing.write_journal(lease, line)\n"),
        f"{RUNS}::test_child_is_started_once_and_its_end_is_a_value[memory]",
    ),
    # ── Effects ──────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutation(
        "an effect after the lease was lost over its intent",
        "engine/steps.py",
        replaced("        journal.check_held()\n"),
        f"{FENCES}::test_worker_that_lost_its_lease_while_it_wrote_an_intent_leaves_the_effect_to_its_successor",
    ),
    Mutation(
        "a lost lease may be swallowed",
        "graph/recorder.py",
        replaced("            self.hold.lost = ", "            ignored = "),
        f"{FENCES}::test_node_that_swallows_the_loss_of_its_lease_writes_nothing_all_the_same",
    ),
]
