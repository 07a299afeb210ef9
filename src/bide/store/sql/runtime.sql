-- What workers and those who wake threads do, in the order of a run's life. Locks are taken in one order: schedules and
-- workers, correlation locks, threads, waits, runs.

-- name: hold_correlation
SELECT 1
FROM correlation_locks
WHERE bucket = :bucket
/* lock: */

-- name: hold_thread_if_free
SELECT uid
FROM threads
WHERE thread_id = :thread_id
/* lock: skip locked */

-- ── Starting ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_request
SELECT digest, thread_id, run_id
FROM requests
WHERE owner = :owner
AND key = :key

-- name: insert_request
INSERT INTO requests (owner, key, digest, thread_id, run_id, created_at)
VALUES (:owner, :key, :digest, :thread_id, :run_id, :now)
ON CONFLICT (owner, key) DO NOTHING

-- name: spawn_thread
-- A child has its name from its parent, so it is made once, however often that one says so.
INSERT INTO threads (thread_id, uid, owner, graph, events, created_at, pruned, parent, on_close)
VALUES (:thread_id, :uid, :owner, :graph, 0, :now, 0, :parent, :on_close)
ON CONFLICT (thread_id) DO NOTHING

-- name: read_live
-- The live run of a thread that is held.
SELECT run_id, status, epoch
FROM runs
WHERE thread_id = :thread_id
AND status IN ('ready', 'running', 'waiting', 'blocked', 'dead')

-- name: name_graph
-- A thread that a client has made before its first run.
UPDATE threads
SET graph = :graph
WHERE thread_id = :thread_id
AND graph = ''

-- name: hand_over
-- A run that waits, or was just woken by an answer, ends because another goes on in its place.
UPDATE runs
SET status = 'done', epoch = epoch + 1, input = NULL, updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND status IN ('waiting', 'ready')

-- name: hand_over_waits
UPDATE waits
SET run_id = :new
WHERE thread_id = :thread_id
AND run_id = :run_id
AND consumed = 0

-- name: insert_run_notes
INSERT INTO run_notes (thread_id, run_id, body)
VALUES (:thread_id, :run_id, :body)

-- name: insert_start
INSERT INTO runs (thread_id, run_id, status, epoch, created_at, updated_at, lane, owner, rank, due_at, crashes,
                  limit_key, limit_most, input, options)
VALUES (:thread_id, :run_id, :status, 0, :now, :now, :lane, :owner, :rank, :due_at, 0,
        :limit_key, :limit_most, :input, :options)

-- name: read_start
-- How the last run of a thread was started.
SELECT r.run_id, t.graph, r.lane, r.owner, r.rank, r.limit_key, r.limit_most, r.input, r.options, r.status
FROM runs r
JOIN threads t ON t.thread_id = r.thread_id
WHERE r.thread_id = :thread_id
AND r.status <> 'queued'
ORDER BY r.run_id DESC
LIMIT 1

-- name: tell_waiters
-- The end of a thread is a fact, if it was spawned, or if somebody waits for it.
INSERT INTO deliveries (delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, received_at, body)
SELECT :delivery_id, t.owner, :source, :external_id, :kind, :name, '', 1, 0, :now, :body
FROM threads t
WHERE t.thread_id = :thread_id
AND t.parent IS NOT NULL
ON CONFLICT DO NOTHING

-- name: tell_waiters_under
INSERT INTO delivery_keys (correlation, received_at, delivery_id)
SELECT :correlation, :now, d.delivery_id
FROM deliveries d
WHERE d.delivery_id = :delivery_id

-- name: expect_end
-- Somebody waits for a thread that nobody has spawned: when it ends, that is told as well.
UPDATE threads
SET parent = ''
WHERE thread_id = :thread_id
AND parent IS NULL

-- name: how_it_ended
-- How a thread stands that is waited for: its last run.
SELECT r.run_id, r.status, r.error, t.uid, (SELECT max(seq) FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.ns = '')
FROM threads t
LEFT JOIN runs r ON r.thread_id = t.thread_id AND r.run_id = (
    SELECT max(run_id)
    FROM runs
    WHERE thread_id = t.thread_id
    AND status <> 'queued'
)
WHERE t.thread_id = :thread_id

-- name: show_thread
SELECT t.thread_id, t.graph, t.created_at, NULL, NULL
FROM threads t
WHERE t.thread_id = :thread_id

-- name: read_run
SELECT r.run_id, r.status, r.epoch, r.error, r.created_at, r.updated_at, r.lane, r.owner, r.rank, r.due_at, r.crashes,
       r.worker_id, t.uid, t.graph, t.parent
FROM runs r
JOIN threads t ON t.thread_id = r.thread_id
WHERE r.thread_id = :thread_id
AND r.run_id = :run_id

-- name: list_runs
SELECT r.run_id, r.status, r.epoch, r.error, r.created_at, r.updated_at, r.lane, r.owner, r.rank, r.due_at, r.crashes,
       r.worker_id, t.uid, t.graph, t.parent
FROM runs r
JOIN threads t ON t.thread_id = r.thread_id
WHERE r.thread_id = :thread_id
ORDER BY r.run_id DESC
LIMIT :most

-- name: base_of_run
-- The checkpoint that a run began at: what its first one was written on, or none.
SELECT coalesce(parent, 0)
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = ''
AND run_id = :run_id
ORDER BY seq
LIMIT 1

-- name: options_of_unbegun
-- Of a run whose input is not in the state yet.
SELECT options
FROM runs
WHERE thread_id = :thread_id
AND run_id = :run_id
AND input IS NOT NULL
AND options IS NOT NULL

-- name: consume_input
-- With the first checkpoint of the run: from here on its input is in the state, and is not applied again.
UPDATE runs
SET input = NULL
WHERE thread_id = :thread_id
AND run_id = :run_id
AND input IS NOT NULL

-- name: promote_next
-- When a thread has no live run any more, the oldest that was put behind it becomes ready.
UPDATE runs
SET status = 'ready', due_at = :now, updated_at = :now
WHERE thread_id = :thread_id
AND status = 'queued'
AND run_id = (
    SELECT min(q.run_id)
    FROM runs q
    WHERE q.thread_id = :thread_id
    AND q.status = 'queued'
    AND (q.due_at IS NULL OR q.due_at <= :now)
)
AND NOT EXISTS (
    SELECT 1
    FROM runs l
    WHERE l.thread_id = :thread_id
    AND l.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')
)

-- name: list_due_runs
-- Runs whose time has come, and whose thread may be free for them.
SELECT thread_id
FROM runs q
WHERE q.status = 'queued'
AND q.due_at <= :now
AND NOT EXISTS (
    SELECT 1
    FROM runs l
    WHERE l.thread_id = q.thread_id
    AND l.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')
)
ORDER BY q.due_at
LIMIT :most

-- ── Claiming ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: ready_owners
-- Whose runs are ready in a lane, from one owner on: each is one step in the index, however many runs they have.
WITH RECURSIVE owners (owner, found) AS (
    SELECT (
        SELECT min(owner)
        FROM runs
        WHERE status = 'ready' AND limit_key IS NULL AND lane = :lane AND owner > :after
    ), 1
    UNION ALL
    SELECT (
        SELECT min(r.owner)
        FROM runs r
        WHERE r.status = 'ready' AND r.limit_key IS NULL AND r.lane = :lane AND r.owner > o.owner
    ), o.found + 1
    FROM owners o
    WHERE o.owner IS NOT NULL
    AND o.found < :most
)
SELECT owner
FROM owners
WHERE owner IS NOT NULL

-- name: first_owner
-- The empty owner comes before all others, and is nobody's successor.
SELECT 1
FROM runs
WHERE status = 'ready'
AND limit_key IS NULL
AND lane = :lane
AND owner = ''
LIMIT 1

-- name: claim_ready
-- A batch: those that another worker is claiming at this moment are passed over.
WITH picked AS MATERIALIZED (
    SELECT thread_id, run_id
    FROM runs
    WHERE status = 'ready'
    AND limit_key IS NULL
    AND lane = :lane
    AND owner = :owner
    AND due_at <= :now
    ORDER BY rank, due_at
    LIMIT :most
    /* lock: skip locked */
)
UPDATE runs
SET status = 'running', epoch = epoch + 1, worker_id = :worker_id, error = NULL, updated_at = :now
WHERE (thread_id, run_id) IN (SELECT thread_id, run_id FROM picked)
RETURNING thread_id, run_id, epoch, lane, crashes, input, options, limit_key

-- name: ready_limits
-- The limits under which runs are ready in a lane, each one step in the index.
WITH RECURSIVE limits (limit_key, found) AS (
    SELECT (
        SELECT min(limit_key)
        FROM runs
        WHERE status = 'ready' AND limit_key IS NOT NULL AND lane = :lane AND limit_key > :after
    ), 1
    UNION ALL
    SELECT (
        SELECT min(r.limit_key)
        FROM runs r
        WHERE r.status = 'ready' AND r.limit_key IS NOT NULL AND r.lane = :lane AND r.limit_key > l.limit_key
    ), l.found + 1
    FROM limits l
    WHERE l.limit_key IS NOT NULL
    AND l.found < :most
)
SELECT limit_key
FROM limits
WHERE limit_key IS NOT NULL

-- name: claim_limited
-- While the lock of the limit is held, nobody else claims under it: so what is counted here stays true.
WITH picked AS MATERIALIZED (
    SELECT thread_id, run_id
    FROM runs
    WHERE status = 'ready'
    AND limit_key = :limit_key
    AND lane = :lane
    AND due_at <= :now
    AND limit_most > (
        SELECT count(*)
        FROM runs l
        WHERE l.limit_key = :limit_key
        AND l.status = 'running'
    )
    ORDER BY rank, due_at
    LIMIT 1
    /* lock: skip locked */
)
UPDATE runs
SET status = 'running', epoch = epoch + 1, worker_id = :worker_id, error = NULL, updated_at = :now
WHERE (thread_id, run_id) IN (SELECT thread_id, run_id FROM picked)
RETURNING thread_id, run_id, epoch, lane, crashes, input, options, limit_key

-- name: next_ready
-- When the next run of a lane may be claimed; of those with a limit, nobody can tell.
SELECT min(due_at)
FROM runs
WHERE status = 'ready'
AND limit_key IS NULL
AND lane = :lane

-- ── Workers that are gone ──────────────────────────────────────────────────────────────────────────────────────────

-- name: list_holders
-- Every worker that holds a run, and those whose row is gone.
SELECT h.worker_id, w.host, w.pid, w.started, w.lease_until
FROM (SELECT DISTINCT worker_id FROM runs WHERE status = 'running') h
LEFT JOIN workers w ON w.worker_id = h.worker_id

-- name: list_held
SELECT thread_id, run_id, epoch, crashes
FROM runs
WHERE status = 'running'
AND worker_id = :worker_id
ORDER BY thread_id
LIMIT :most

-- name: made_progress
-- Whether a worker has brought a run forward since it claimed it.
SELECT 1
WHERE EXISTS (
    SELECT 1
    FROM checkpoints
    WHERE thread_id = :thread_id
    AND ns = ''
    AND run_id = :run_id
    AND epoch = :epoch
)
OR EXISTS (
    SELECT 1
    FROM journal
    WHERE thread_id = :thread_id
    AND run_id = :run_id
    AND epoch = :epoch
    AND phase = 'done'
)

-- name: reap_run
-- The epoch goes up, so that whoever held it writes nothing any more.
UPDATE runs
SET status = :status, epoch = epoch + 1, crashes = :crashes, worker_id = NULL, due_at = :due_at, error = :error,
    updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND epoch = :epoch
AND status = 'running'
AND worker_id = :worker_id

-- name: release_run
UPDATE runs
SET status = 'ready', crashes = 0, due_at = :now, error = NULL, updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND status IN ('dead', 'blocked')

-- ── Waking ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- part: wait
-- A wait as `WaitView` reads it, with the graph and the owner of its thread.
SELECT w.wait_id, w.thread_id, w.run_id, w.task_id, w.node, w.key, w.kind, w.status, w.consumed, w.question, w.answer,
       w.answered_at, w.answered_via, w.answered_by, w.answer_key, w.deadline, w.remind_at, w.created_at, w.needs,
       t.graph, t.owner, w.snoozed_until
FROM waits w
JOIN threads t ON t.thread_id = w.thread_id

-- name: find_wait
/* part: wait */
WHERE w.wait_id = :wait_id

-- name: list_inbox
-- The inbox, page after page: those who wait longest come first. Served by waits_by_age.
/* part: wait */
WHERE w.status = 'open'
AND w.consumed = 0
AND (:only_timeless = 0 OR w.deadline IS NULL)
AND (w.created_at, w.wait_id) > (:since, :after)
AND (w.snoozed_until IS NULL OR w.snoozed_until <= :awake_at)
ORDER BY w.created_at, w.wait_id
LIMIT :most

-- name: list_inbox_of_owner
-- The same for one owner. Served by waits_of_owner.
/* part: wait */
WHERE w.status = 'open'
AND w.consumed = 0
AND w.owner = :owner
AND (:only_timeless = 0 OR w.deadline IS NULL)
AND (w.created_at, w.wait_id) > (:since, :after)
AND (w.snoozed_until IS NULL OR w.snoozed_until <= :awake_at)
ORDER BY w.created_at, w.wait_id
LIMIT :most

-- name: list_due_inbox
-- Those with a deadline, the next one first. Served by waits_due.
/* part: wait */
WHERE w.status = 'open'
AND w.consumed = 0
AND w.deadline IS NOT NULL
AND (w.deadline, w.wait_id) > (:since, :after)
AND w.deadline < :due_before
AND (w.snoozed_until IS NULL OR w.snoozed_until <= :awake_at)
ORDER BY w.deadline, w.wait_id
LIMIT :most

-- name: list_due_inbox_of_owner
-- The same for one owner. Served by waits_due_of_owner.
/* part: wait */
WHERE w.status = 'open'
AND w.consumed = 0
AND w.owner = :owner
AND w.deadline IS NOT NULL
AND (w.deadline, w.wait_id) > (:since, :after)
AND w.deadline < :due_before
AND (w.snoozed_until IS NULL OR w.snoozed_until <= :awake_at)
ORDER BY w.deadline, w.wait_id
LIMIT :most

-- name: list_waits_of_thread
/* part: wait */
WHERE w.thread_id = :thread_id
ORDER BY w.created_at, w.wait_id

-- name: list_open_waits_of_thread
-- Served by waits_of_thread.
/* part: wait */
WHERE w.thread_id = :thread_id
AND w.consumed = 0
AND w.status = 'open'
ORDER BY w.created_at, w.wait_id

-- name: settle_wait
-- First wins: whoever comes from outside, a deadline included, settles a wait only where it is open. If its run is
-- running right now, it is told when it pauses.
UPDATE waits
SET status = :status, answer = :answer, answered_at = :now, answered_via = :via, answered_by = :by,
    answer_key = :answer_key,
    settled_in = (
        SELECT r.epoch
        FROM runs r
        WHERE r.thread_id = :thread_id
        AND r.run_id = waits.run_id
        AND r.status = 'running'
    )
WHERE wait_id = :wait_id
AND status = 'open'
AND consumed = 0

-- name: make_ready
-- Part of whatever settles a wait: a run that waited has something to go on with. The epoch goes up, also of one that was
-- ready before: whoever has read the thread meanwhile to take it does not know of the answer, and must read it again.
UPDATE runs
SET due_at = CASE WHEN status = 'waiting' THEN :now ELSE due_at END, status = 'ready', epoch = epoch + 1, updated_at = :now
WHERE thread_id = :thread_id
AND status IN ('waiting', 'ready')

-- name: extend_wait
UPDATE waits
SET deadline = :deadline
WHERE wait_id = :wait_id
AND status = 'open'
AND consumed = 0

-- name: snooze_wait
-- Whoever is to be told again is told when it is over.
UPDATE waits
SET snoozed_until = :until, remind_at = :remind_at
WHERE wait_id = :wait_id
AND status = 'open'
AND consumed = 0

-- name: change_needs
UPDATE waits
SET needs = :needs, remind_at = :remind_at
WHERE wait_id = :wait_id
AND status = 'open'
AND consumed = 0

-- ── Conditions ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: insert_condition
INSERT INTO conditions (wait_id, number, kind, correlation, due_at, is_open, exclusive, created_at, delivery_id, wake)
VALUES (:wait_id, :number, :kind, :correlation, :due_at, 1, :exclusive, :now, NULL, NULL)

-- name: drop_conditions
-- Of a question that is asked again: its conditions may be others now.
DELETE FROM conditions
WHERE wait_id = :wait_id

-- name: read_conditions
SELECT number, kind, correlation, due_at, is_open, exclusive, delivery_id, wake
FROM conditions
WHERE wait_id = :wait_id
ORDER BY number

-- name: satisfy_condition
UPDATE conditions
SET is_open = 0, delivery_id = :delivery_id, wake = :wake
WHERE wait_id = :wait_id
AND number = :number
AND is_open = 1

-- name: close_condition
UPDATE conditions
SET is_open = 0
WHERE wait_id = :wait_id
AND number = :number
AND is_open = 1

-- name: close_conditions
UPDATE conditions
SET is_open = 0
WHERE wait_id = :wait_id
AND is_open = 1

-- name: list_candidates
-- Whoever waits for a fact under this key, longest first, page after page.
SELECT c.wait_id, c.number, c.exclusive, c.created_at, w.thread_id, w.status, w.consumed, w.needs
FROM conditions c
JOIN waits w ON w.wait_id = c.wait_id
WHERE c.correlation = :correlation
AND c.correlation <> ''
AND c.is_open = 1
AND (c.created_at, c.wait_id, c.number) > (:since, :after, :number)
ORDER BY c.created_at, c.wait_id, c.number
LIMIT :most

-- name: list_due_conditions
-- Served by conditions_due.
SELECT c.wait_id, c.number, w.thread_id, c.due_at
FROM conditions c
JOIN waits w ON w.wait_id = c.wait_id
WHERE c.is_open = 1
AND c.due_at <= :now
ORDER BY c.due_at
LIMIT :most

-- name: list_due_waits
-- Served by waits_due.
SELECT wait_id, thread_id, deadline
FROM waits
WHERE status = 'open'
AND consumed = 0
AND deadline <= :now
ORDER BY deadline
LIMIT :most

-- name: list_due_of_thread
SELECT w.wait_id, c.number, w.deadline, c.due_at
FROM waits w
LEFT JOIN conditions c ON c.wait_id = w.wait_id AND c.is_open = 1 AND c.due_at <= :now
WHERE w.thread_id = :thread_id
AND w.consumed = 0
AND w.status = 'open'
AND (c.due_at IS NOT NULL OR w.deadline <= :now)

-- name: list_due_reminders
SELECT wait_id, thread_id
FROM waits
WHERE status = 'open'
AND consumed = 0
AND remind_at <= :now
ORDER BY remind_at
LIMIT :most

-- name: put_off_wait
-- What cannot be read is not looked at again for a while.
UPDATE waits
SET deadline = CASE WHEN deadline <= :now THEN :until ELSE deadline END,
    remind_at = CASE WHEN remind_at <= :now THEN :until ELSE remind_at END
WHERE wait_id = :wait_id

-- name: put_off_conditions
UPDATE conditions
SET due_at = :until
WHERE wait_id = :wait_id
AND is_open = 1
AND due_at <= :now

-- name: next_due
-- When the next thing is due, whatever it is. Of runs, not min(): for that PostgreSQL would look at every one that is put
-- off, and there may be very many.
SELECT min(at)
FROM (
    SELECT min(due_at) AS at FROM conditions WHERE is_open = 1 AND due_at IS NOT NULL
    UNION ALL
    SELECT min(deadline) FROM waits WHERE status = 'open' AND consumed = 0 AND deadline IS NOT NULL
    UNION ALL
    SELECT min(remind_at) FROM waits WHERE status = 'open' AND consumed = 0 AND remind_at IS NOT NULL
    UNION ALL
    SELECT due_at
    FROM (
        SELECT q.due_at
        FROM runs q
        WHERE q.status = 'queued'
        AND q.due_at IS NOT NULL
        AND NOT EXISTS (
            SELECT 1
            FROM runs l
            WHERE l.thread_id = q.thread_id
            AND l.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')
        )
        ORDER BY q.due_at
        LIMIT 1
    ) put_off
    UNION ALL
    SELECT min(next_at) FROM schedules WHERE is_paused = 0
) due

-- ── Deliveries ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: insert_delivery
INSERT INTO deliveries (delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, received_at, body)
VALUES (:delivery_id, :owner, :source, :external_id, :kind, :name, :digest, 1, 0, :now, :body)
ON CONFLICT (owner, source, external_id) DO NOTHING

-- name: insert_delivery_key
INSERT INTO delivery_keys (correlation, received_at, delivery_id)
VALUES (:correlation, :now, :delivery_id)

-- name: find_delivery
SELECT delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, taken_by, received_at, body
FROM deliveries
WHERE owner = :owner
AND source = :source
AND external_id = :external_id

-- name: read_delivery
SELECT delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, taken_by, received_at, body
FROM deliveries
WHERE delivery_id = :delivery_id

-- name: list_deliveries
SELECT delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, taken_by, received_at, body
FROM deliveries
WHERE delivery_id < :before
AND (:only_unmatched = 0 OR (wakes = 0 AND is_pending = 0))
ORDER BY delivery_id DESC
LIMIT :most

-- name: list_deliveries_of_owner
-- Served by deliveries_of_owner.
SELECT delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, taken_by, received_at, body
FROM deliveries
WHERE owner = :owner
AND delivery_id < :before
AND (:only_unmatched = 0 OR (wakes = 0 AND is_pending = 0))
ORDER BY delivery_id DESC
LIMIT :most

-- name: list_pending_deliveries
SELECT delivery_id
FROM deliveries
WHERE is_pending = 1
ORDER BY delivery_id
LIMIT :most

-- name: look_back
-- What came before a wait under one of its keys, oldest first; what has woken an earlier question of the same thread, or
-- of the same task, is not looked at again, so that a loop does not hear the same fact for ever. How a child ended stays
-- true, however often one asks.
SELECT d.delivery_id, d.owner, d.source, d.external_id, d.kind, d.name, d.digest, d.is_pending, d.wakes, d.taken_by,
       d.received_at, d.body
FROM delivery_keys k
JOIN deliveries d ON d.delivery_id = k.delivery_id
WHERE k.correlation = :correlation
AND k.received_at >= :since
AND (k.received_at, k.delivery_id) > (:after_time, :after)
AND (d.kind = 'child' OR NOT EXISTS (
    SELECT 1
    FROM conditions c
    JOIN waits w ON w.wait_id = c.wait_id
    WHERE c.delivery_id = d.delivery_id
    AND w.thread_id = :thread_id
    AND (w.consumed = 1 OR w.task_id = :task_id)
))
ORDER BY k.received_at, k.delivery_id
LIMIT :most

-- name: list_waiting_kind
-- Whoever waits for facts of a kind at all, longest first.
SELECT c.wait_id, c.number, c.exclusive, c.created_at, w.thread_id, w.status, w.consumed, w.needs
FROM conditions c
JOIN waits w ON w.wait_id = c.wait_id
JOIN threads t ON t.thread_id = w.thread_id
WHERE c.kind = :kind
AND c.is_open = 1
AND t.owner = :owner
ORDER BY c.created_at, c.wait_id, c.number
LIMIT :most

-- name: list_woken
SELECT c.wait_id, c.number, w.thread_id
FROM conditions c
JOIN waits w ON w.wait_id = c.wait_id
WHERE c.delivery_id = :delivery_id
ORDER BY c.wait_id, c.number

-- name: facts_under
SELECT d.delivery_id, d.owner, d.source, d.external_id, d.kind, d.name, d.digest, d.is_pending, d.wakes, d.taken_by,
       d.received_at, d.body
FROM delivery_keys k
JOIN deliveries d ON d.delivery_id = k.delivery_id
WHERE k.correlation = :correlation
ORDER BY k.received_at DESC, k.delivery_id DESC
LIMIT :most

-- name: count_wake
UPDATE deliveries
SET wakes = wakes + 1
WHERE delivery_id = :delivery_id

-- name: take_delivery
-- An exclusive wait takes a fact that no other one has taken.
UPDATE deliveries
SET taken_by = :wait_id
WHERE delivery_id = :delivery_id
AND (taken_by IS NULL OR taken_by = :wait_id)

-- name: finish_delivery
UPDATE deliveries
SET is_pending = 0
WHERE delivery_id = :delivery_id

-- ── Ending ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: cancel_run
UPDATE runs
SET status = 'cancelled', epoch = epoch + 1, worker_id = NULL, error = :error, updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND status IN ('queued', 'ready', 'running', 'waiting', 'blocked', 'dead')

-- name: end_waiting
-- A run whose wait has run out, and whose deadline says that it ends with it; whoever drives it writes nothing any more.
UPDATE runs
SET status = :status, epoch = epoch + 1, worker_id = NULL, error = :error, updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND status IN ('waiting', 'ready', 'running')

-- name: close_children
-- The children of a thread that is closed: somebody must see to them.
UPDATE threads
SET on_close = 'due'
WHERE parent = :thread_id
AND (on_close = 'end' OR (on_close = 'cancel' AND :is_cancelled = 1))

-- name: list_closing
SELECT thread_id
FROM threads
WHERE on_close = 'due'
ORDER BY thread_id
LIMIT :most

-- name: child_closed
UPDATE threads
SET on_close = 'abandon'
WHERE thread_id = :thread_id
AND on_close = 'due'

-- name: list_children
SELECT t.thread_id, t.graph, t.created_at
FROM threads t
WHERE t.parent = :thread_id
ORDER BY t.created_at, t.thread_id

-- name: read_parent
SELECT parent, graph, owner
FROM threads
WHERE thread_id = :thread_id

-- name: delete_conditions
DELETE FROM conditions
WHERE wait_id IN (SELECT wait_id FROM waits WHERE thread_id = :thread_id)
