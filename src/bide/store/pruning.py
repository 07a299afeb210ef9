"""Letting go what a plan says, thread by thread, in small transactions, so that whoever writes gets a turn in between.

Each transaction holds the thread and looks again whether the plan still fits. What needs another row goes before that
row: a crash after any of them leaves a store in which everything that can be seen can be read. If one transaction is
not enough, some of the checkpoints that go are left to the end, as a sign that there is more to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bide.clock import Instant
from bide.errors import CorruptDataError
from bide.store.bodies import Bodies, collect_blobs
from bide.store.database import Database, Transaction
from bide.store.deletion import delete_everything
from bide.store.prune_plan import LogKey, Plan, plan_thread
from bide.store.retention import Point, Pruned, Rule
from bide.store.seal import REFERENCE, is_reference, open_reference
from bide.store.stored_rows import CHANNEL_LOG, CHECKPOINTS, EVENTS, JOURNAL, NOTES, RUNS, WAITS
from bide.store.unbegun import promised_points

BATCH = 500
"""So many rows go in one transaction, at most."""
MOST_PLANS = 5
"""So often a thread is looked at anew, when branches of it are begun meanwhile."""
LONGEST_REFERENCE = 512
"""No reference to a blob takes more bytes than this, beside the name of its owner."""


class Chore(NamedTuple):
    """One statement to run."""

    query: str
    params: Mapping[str, Any]
    weight: int = 1
    """How many rows it changes, at most."""
    size: int = 0
    """How many bytes these hold."""


class Keeper(NamedTuple):
    """Who tidies up: in which database, and whether threads that others hold are waited for."""

    database: Database
    bodies: Bodies
    is_patient: bool

    def prune_thread(self, thread_id: str, rule: Rule) -> Pruned:
        """Let go of a thread what may go."""
        done = Pruned()
        try:
            for _ in range(MOST_PLANS):
                plan = self.database.read(lambda tx: self._planned(tx, thread_id, rule))
                if plan is None:
                    break
                is_over, gone = self._carry_out(plan)
                done = done.plus(gone)
                if is_over:
                    break
        except CorruptDataError as problem:
            # What cannot be read may need anything: nothing of this thread is touched.
            done = done.plus(Pruned(failed=((thread_id, str(problem)),)))
        return done

    def delete_resting(self, thread_id: str, uid: str, since: Instant, now: Instant) -> bool:
        """Delete a thread whole, if it still is what it was and nothing has happened in it since."""

        def delete(tx: Transaction) -> bool:
            at_rest = {"thread_id": thread_id, "owner": self.bodies.owner, "since": since}
            if not self._hold(tx, thread_id, uid) or tx.one("check_at_rest", at_rest) is None:
                return False
            delete_everything(tx, thread_id, now)
            return True

        return self.database.write("expire", delete)

    def let_facts_go(
        self, before: Instant, after: tuple[Instant, str], most: int
    ) -> tuple[list[tuple[Instant, str]], Pruned]:
        """Let go of a page of facts from before a moment; return which were looked at, and what went."""
        params = {"owner": self.bodies.owner, "before": before, "after_time": after[0], "after": after[1]}

        def let_go(tx: Transaction) -> tuple[list[tuple[Instant, str]], Pruned]:
            page = tx.all("list_old_deliveries", {**params, "most": most})
            gone = [(delivery_id, size) for _, delivery_id, *fact, size in page if not _is_awaited(tx, *fact)]
            rows = 0
            for delivery_id, _ in gone:
                rows += tx.run("drop_delivery_keys", {"delivery_id": delivery_id})
                rows += tx.run("drop_delivery", {"delivery_id": delivery_id})
            return [(row[0], row[1]) for row in page], Pruned(rows=rows, bytes=sum(size for _, size in gone))

        return self.database.write("expire", let_go)

    def _planned(self, tx: Transaction, thread_id: str, rule: Rule) -> Plan | None:
        plan = plan_thread(tx, self.bodies, thread_id, rule)
        if plan is None or (plan.is_empty and not unused_blobs(tx, self.bodies, thread_id)):
            return None
        return plan

    def _is_promised(self, tx: Transaction, plan: Plan) -> bool:
        """Whether a run was told, since the plan was made, to begin at what the plan lets go."""
        going = {point.seq for stretch in plan.points for point in stretch if not point.ns}
        going |= {point.seq for point in plan.hidden if not point.ns}
        return bool(going) and not going.isdisjoint(promised_points(tx, self.bodies, plan.thread_id))

    def _hold(self, tx: Transaction, thread_id: str, uid: str) -> bool:
        query = "hold_life" if self.is_patient else "claim_life"
        return tx.one(query, {"thread_id": thread_id, "uid": uid}) is not None

    def _carry_out(self, plan: Plan) -> tuple[bool, Pruned]:
        """Do all that a plan says; return whether that is over: if not, the thread must be looked at anew."""
        done = Pruned()
        batches = list(_batches(_chores(plan)))
        for number, batch in enumerate(batches, 1):
            is_last = number == len(batches)
            held, gone = self.database.write("prune", lambda tx: self._do(tx, plan, batch, is_last=is_last))  # noqa: B023
            if gone is None:
                return not held, done
            done = done.plus(gone)
        return True, done

    def _do(self, tx: Transaction, plan: Plan, chores: list[Chore], *, is_last: bool) -> tuple[bool, Pruned | None]:
        """Do a part of it; return whether the thread could be held, and what went, if the plan still fits."""
        if not self._hold(tx, plan.thread_id, plan.uid):
            return False, None
        if any(_is_branched(tx, plan, ns) for ns in {stretch[0].ns for stretch in plan.points}):
            return True, None
        if self._is_promised(tx, plan):
            return True, None
        done = Pruned()
        if chores:  # whoever looks at the thread must know why parts of its history are not there
            tx.run("mark_pruned", {"thread_id": plan.thread_id})
        for query, params, _, size in chores:
            count = tx.run(query, {"thread_id": plan.thread_id, **params})
            if query == "drop_checkpoints":
                done = done.plus(Pruned(checkpoints=count, bytes=size if count else 0))
            elif query != "hide_checkpoint":
                done = done.plus(Pruned(rows=count, bytes=size if count else 0))
        if is_last:
            done = done.plus(_drop_unused_blobs(tx, self.bodies, plan.thread_id))
        return True, done


def _is_awaited(tx: Transaction, kind: str, name: str, wakes: int) -> bool:
    """Whether somebody may still ask how a child has ended: its name begins with that of its parent, who may wait for
    it long after, and has not heard of it yet."""
    if kind != "child" or wakes:
        return False
    above = [name[:at] for at, letter in enumerate(name) if letter == ":"]
    return any(tx.one("read_thread", {"thread_id": thread_id}) is not None for thread_id in above)


def _is_branched(tx: Transaction, plan: Plan, ns: str) -> bool:
    """Whether a branch was begun that may need what the plan lets go."""
    return tx.one("find_branch", {"thread_id": plan.thread_id, "ns": ns, "head": plan.heads[ns]}) is not None


# ── From a plan to statements ──────────────────────────────────────────────────────────────────────────────────────


def _chores(plan: Plan) -> list[Chore]:
    """Put everything in an order in which it may stop anywhere: what is seen first, then what it was made of."""
    points = [_drop_points(part) for stretch in plan.points for part in _parts(stretch)]
    rest = [
        *(_drop_logged(part) for stretch in plan.logged for part in _parts(stretch)),
        *(chore for wait_id in plan.waits for chore in _drop_wait(wait_id)),
        *(Chore("drop_run", {"run_id": run_id}) for run_id in plan.runs),
        *(Chore("drop_run_notes", {"run_id": run_id}) for run_id in plan.runs),
        *_drop_events(*plan.events),
    ]
    hidden = [Chore("hide_checkpoint", {"ns": point.ns, "seq": point.seq}) for point in plan.hidden]
    chores = [*points, *hidden, *rest]
    if points and sum(chore.weight for chore in chores) > BATCH:
        return [*points[:-1], *hidden, *_left_to_the_end(plan.points[-1], points[-1], rest)]
    return chores


def _left_to_the_end(stretch: list[Point], last: Chore, rest: list[Chore]) -> Iterator[Chore]:
    """Hide the last checkpoints that go, and drop them when all else is done: whoever finds them knows that there is
    more to do."""
    for point in _parts_last(stretch):
        yield Chore("hide_checkpoint", {"ns": point.ns, "seq": point.seq})
    yield from rest
    yield last


def _parts(stretch: list[Any]) -> Iterator[list[Any]]:
    for begin in range(0, len(stretch), BATCH):
        yield stretch[begin : begin + BATCH]


def _parts_last(stretch: list[Point]) -> list[Point]:
    return list(_parts(stretch))[-1]


def _drop_points(points: list[Point]) -> Chore:
    params = {"ns": points[0].ns, "first": points[-1].seq, "last": points[0].seq}
    return Chore("drop_checkpoints", params, len(points), sum(point.size for point in points))


def _drop_logged(keys: list[LogKey]) -> Chore:
    ns, channel, first, _ = keys[0]
    params = {"ns": ns, "channel": channel, "first": first, "last": keys[-1].seq}
    return Chore("drop_logged", params, len(keys), sum(key.size for key in keys))


def _drop_wait(wait_id: str) -> tuple[Chore, Chore]:
    """Let go of the leaves of a wait, and of the wait itself: a leaf without its wait would be nobody's."""
    return Chore("drop_leaves_of_wait", {"wait_id": wait_id}), Chore("drop_wait", {"wait_id": wait_id})


def _drop_events(first: int, stays: int) -> Iterator[Chore]:
    for begin in range(first, stays, BATCH):
        end = min(begin + BATCH, stays)
        yield Chore("drop_events", {"number": end}, end - begin)


def _batches(chores: Iterable[Chore]) -> Iterator[list[Chore]]:
    """Put chores together until they change as many rows as one transaction may; at least one batch comes."""
    batch: list[Chore] = []
    weight = 0
    for chore in chores:
        if batch and weight + chore.weight > BATCH:
            yield batch
            batch, weight = [], 0
        batch.append(chore)
        weight += chore.weight
    yield batch


# ── Blobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def unused_blobs(tx: Transaction, bodies: Bodies, thread_id: str) -> set[tuple[str, bytes]]:
    """Return the blobs that a thread is noted as a user of, though none of its rows refers to them any more."""
    uses = {(str(owner), bytes(hash_)) for owner, hash_ in tx.all("list_blob_uses", {"thread_id": thread_id})}
    return uses - set(_references(tx, bodies, thread_id)) if uses else uses


def _references(tx: Transaction, bodies: Bodies, thread_id: str) -> Iterator[tuple[str, bytes]]:
    params = {"thread_id": thread_id, "kind": REFERENCE, "longest": LONGEST_REFERENCE + len(bodies.owner.encode())}
    for table in (RUNS, CHECKPOINTS, CHANNEL_LOG, JOURNAL, WAITS, EVENTS, *NOTES):
        for row in tx.all(f"references_{table.name}", params):
            values = table.read(row)
            for column, place in table.places.items():
                if is_reference(values[column]):
                    reference = open_reference(bodies.seal, place(values), values[column])
                    yield reference[32:].decode(), reference[:32]


def _drop_unused_blobs(tx: Transaction, bodies: Bodies, thread_id: str) -> Pruned:
    found = sorted(unused_blobs(tx, bodies, thread_id))
    if not found:
        return Pruned()
    for owner, hash_ in found:
        # Whoever is about to use it again has touched it, and is waited for; then its row can be seen.
        tx.one("hold_blob", {"owner": owner, "hash": hash_})
    unused = sorted(unused_blobs(tx, bodies, thread_id) & set(found))
    sizes = 0
    for owner, hash_ in unused:
        key = {"owner": owner, "hash": hash_}
        tx.run("drop_blob_use", {"thread_id": thread_id, **key})
        size = tx.one("measure_blob", key)
        collect_blobs(tx, [(owner, hash_)])
        if size is not None and tx.one("measure_blob", key) is None:
            sizes += size[0]
    return Pruned(rows=len(unused), bytes=sizes)
