-- What retention asks and does: which threads and checkpoints may go, what they hold, and what has expired beside them.

-- ── Which threads ──────────────────────────────────────────────────────────────────────────────────────────────────

-- name: list_long_threads
-- Threads that may have checkpoints to let go, page after page. One that was left half done is marked by one of them
-- that is pruned and still there.
SELECT t.thread_id
FROM threads t
WHERE t.owner = :owner
AND t.thread_id > :after
AND (
    (
        (SELECT count(*) FROM checkpoints c WHERE c.thread_id = t.thread_id) > :keep_last
        AND EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.created_at < :before)
    )
    OR EXISTS (SELECT 1 FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.pruned = 1)
)
ORDER BY t.thread_id
LIMIT :most

-- name: list_resting_threads
-- Threads in which nothing has happened since, page after page: no run is live, no question open.
SELECT t.thread_id, t.uid
FROM threads t
WHERE t.owner = :owner
AND t.thread_id > :after
AND t.created_at <= :since
AND NOT EXISTS (
    SELECT 1
    FROM runs r
    WHERE r.thread_id = t.thread_id
    AND (r.status IN ('queued', 'ready', 'running', 'waiting', 'blocked', 'dead') OR r.updated_at > :since)
)
AND NOT EXISTS (SELECT 1 FROM events e WHERE e.thread_id = t.thread_id AND e.at > :since)
AND NOT EXISTS (SELECT 1 FROM waits w WHERE w.thread_id = t.thread_id AND w.status = 'open')
ORDER BY t.thread_id
LIMIT :most

-- name: check_at_rest
-- The same of one thread, once it is held.
SELECT 1
FROM threads t
WHERE t.thread_id = :thread_id
AND t.owner = :owner
AND t.created_at <= :since
AND NOT EXISTS (
    SELECT 1
    FROM runs r
    WHERE r.thread_id = t.thread_id
    AND (r.status IN ('queued', 'ready', 'running', 'waiting', 'blocked', 'dead') OR r.updated_at > :since)
)
AND NOT EXISTS (SELECT 1 FROM events e WHERE e.thread_id = t.thread_id AND e.at > :since)
AND NOT EXISTS (SELECT 1 FROM waits w WHERE w.thread_id = t.thread_id AND w.status = 'open')

-- name: claim_life
-- A thread, unless somebody else holds it right now: of several who tidy up, each takes another one.
SELECT uid
FROM threads
WHERE thread_id = :thread_id
AND uid = :uid
/* lock: skip locked */

-- ── What a thread holds ────────────────────────────────────────────────────────────────────────────────────────────

-- name: list_points
SELECT ns, seq, parent, source, run_id, created_at, pruned, length(body)
FROM checkpoints
WHERE thread_id = :thread_id
ORDER BY ns, seq

-- name: list_logged
SELECT ns, channel, seq, length(body)
FROM channel_log
WHERE thread_id = :thread_id
ORDER BY ns, channel, seq

-- name: list_waits
-- One that a fact has settled stays as long as the fact: else a later wait of the thread would hear that once more.
SELECT wait_id, task_id, run_id,
       CASE
           WHEN consumed = 1 AND status <> 'open' AND NOT EXISTS (
               SELECT 1
               FROM conditions c
               JOIN deliveries d ON d.delivery_id = c.delivery_id
               WHERE c.wait_id = waits.wait_id
           ) THEN 1
           ELSE 0
       END
FROM waits
WHERE thread_id = :thread_id

-- name: list_runs_in_journal
SELECT DISTINCT run_id
FROM journal
WHERE thread_id = :thread_id

-- name: list_run_ids
SELECT run_id, status
FROM runs
WHERE thread_id = :thread_id
ORDER BY run_id

-- name: list_unbegun
-- Runs whose input is not in the state yet, and that may have been told where to begin.
SELECT run_id, options
FROM runs
WHERE thread_id = :thread_id
AND input IS NOT NULL
AND options IS NOT NULL

-- name: find_events_kept
-- The first event of all, and the first that stays: of the newest run, or from the oldest checkpoint that is kept on.
SELECT min(number), min(CASE WHEN seq >= :seq OR run_id = :run_id THEN number END)
FROM events
WHERE thread_id = :thread_id

-- name: find_branch
-- Whether a branch was begun at an older checkpoint since a graph was looked at.
SELECT 1
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND seq > :head
AND parent < :head
LIMIT 1

-- name: check_parent
-- Whether the checkpoint that a branch begins at is still there for readers.
SELECT 1
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND seq = :parent
AND pruned = 0

-- ── Letting go ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: mark_pruned
UPDATE threads
SET pruned = 1
WHERE thread_id = :thread_id
AND pruned = 0

-- name: hide_checkpoint
UPDATE checkpoints
SET pruned = 1
WHERE thread_id = :thread_id
AND ns = :ns
AND seq = :seq
AND pruned = 0

-- name: drop_checkpoints
DELETE FROM checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND seq >= :first
AND seq <= :last

-- name: drop_logged
DELETE FROM channel_log
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
AND seq >= :first
AND seq <= :last

-- name: drop_leaves_of_wait
DELETE FROM conditions
WHERE wait_id IN (
    SELECT w.wait_id
    FROM waits w
    WHERE w.wait_id = :wait_id
    AND w.thread_id = :thread_id
    AND w.consumed = 1
    AND w.status <> 'open'
)

-- name: drop_wait
DELETE FROM waits
WHERE wait_id = :wait_id
AND thread_id = :thread_id
AND consumed = 1
AND status <> 'open'

-- name: drop_run
DELETE FROM runs
WHERE thread_id = :thread_id
AND run_id = :run_id
AND status IN ('done', 'failed', 'cancelled')

-- name: drop_events
DELETE FROM events
WHERE thread_id = :thread_id
AND number < :number

-- ── Blobs that a thread no longer uses ─────────────────────────────────────────────────────────────────────────────
-- Bodies that lie elsewhere are short, and begin with their kind.

-- name: references_runs
SELECT thread_id, run_id, status, epoch, worker_id, error, created_at, updated_at, lane, owner, rank, due_at, crashes,
    limit_key, limit_most, input, options
FROM runs
WHERE thread_id = :thread_id
AND (
    (length(input) <= :longest AND substr(input, 1, 1) = :kind)
    OR (length(options) <= :longest AND substr(options, 1, 1) = :kind)
)

-- name: references_checkpoints
SELECT thread_id, ns, seq, parent, step, source, run_id, epoch, created_at, pruned, body
FROM checkpoints
WHERE thread_id = :thread_id
AND length(body) <= :longest
AND substr(body, 1, 1) = :kind

-- name: references_channel_log
SELECT thread_id, ns, channel, seq, body
FROM channel_log
WHERE thread_id = :thread_id
AND length(body) <= :longest
AND substr(body, 1, 1) = :kind

-- name: references_journal
SELECT thread_id, task_id, key, kind, phase, name, digest, run_id, epoch, written_at, body
FROM journal
WHERE thread_id = :thread_id
AND length(body) <= :longest
AND substr(body, 1, 1) = :kind

-- name: references_waits
SELECT thread_id, wait_id, run_id, task_id, node, key, kind, status, consumed, digest, answered_at, answered_via,
    answered_by, answer_key, settled_in, deadline, remind_at, created_at, question, answer, needs, owner, snoozed_until
FROM waits
WHERE thread_id = :thread_id
AND (
    (length(question) <= :longest AND substr(question, 1, 1) = :kind)
    OR (length(answer) <= :longest AND substr(answer, 1, 1) = :kind)
)

-- name: references_events
SELECT thread_id, number, seq, run_id, kind, at, body
FROM events
WHERE thread_id = :thread_id
AND length(body) <= :longest
AND substr(body, 1, 1) = :kind

-- name: measure_blob
SELECT size
FROM blobs
WHERE owner = :owner
AND hash = :hash

-- name: drop_blob_use
DELETE FROM blob_uses
WHERE thread_id = :thread_id
AND owner = :owner
AND hash = :hash

-- ── What has expired ───────────────────────────────────────────────────────────────────────────────────────────────

-- name: list_old_deliveries
-- Facts from before a moment, oldest first; what a question that is still of use was answered with stays. Open waits
-- have looked back when they were registered, so they need nothing that is here.
SELECT d.received_at, d.delivery_id, d.kind, d.name, d.wakes, length(d.body)
FROM deliveries d
WHERE d.received_at < :before
AND (d.received_at, d.delivery_id) > (:after_time, :after)
AND d.owner = :owner
AND d.is_pending = 0
AND NOT EXISTS (
    SELECT 1
    FROM conditions c
    JOIN waits w ON w.wait_id = c.wait_id
    WHERE c.delivery_id = d.delivery_id
    AND w.consumed = 0
)
ORDER BY d.received_at, d.delivery_id
LIMIT :most

-- name: drop_delivery_keys
DELETE FROM delivery_keys
WHERE delivery_id = :delivery_id

-- name: drop_delivery
DELETE FROM deliveries
WHERE delivery_id = :delivery_id
AND is_pending = 0

-- name: drop_requests
DELETE FROM requests
WHERE (owner, key) IN (
    SELECT owner, key
    FROM requests
    WHERE created_at < :before
    AND owner = :owner
    ORDER BY created_at
    LIMIT :most
    /* lock: skip locked */
)

-- name: drop_tombstones
DELETE FROM tombstones
WHERE uid IN (
    SELECT uid
    FROM tombstones
    WHERE deleted_at <= :until
    ORDER BY deleted_at
    LIMIT :most
    /* lock: skip locked */
)

-- name: drop_expired_cache
DELETE FROM cache
WHERE (place, key) IN (
    SELECT place, key
    FROM cache
    WHERE expires_at <= :now
    ORDER BY expires_at
    LIMIT :most
    /* lock: skip locked */
)
