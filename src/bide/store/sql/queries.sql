-- Every query of the store, in the order of a run's life. `:name` marks a parameter.

-- ── Threads ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_thread
SELECT uid, (SELECT max(seq) FROM checkpoints WHERE thread_id = :thread_id AND ns = ''), parent, owner
FROM threads
WHERE thread_id = :thread_id

-- name: find_thread
-- A checkpoint's id names the life of its thread, so a checkpoint alone is enough to resume.
SELECT thread_id
FROM threads
WHERE uid = :uid

-- name: insert_thread
-- Two callers may make the same thread at once: the second inserts nothing and is told so.
INSERT INTO threads (thread_id, uid, owner, graph, events, created_at, pruned)
VALUES (:thread_id, :uid, :owner, :graph, 0, :now, 0)
ON CONFLICT (thread_id) DO NOTHING

-- name: hold_thread
-- Whoever changes a thread from outside its run holds this row until the end of the transaction.
SELECT uid, graph
FROM threads
WHERE thread_id = :thread_id
/* lock: */

-- name: hold_life
-- The same, if it is still the life of the thread that was read.
SELECT uid
FROM threads
WHERE thread_id = :thread_id
AND uid = :uid
/* lock: */

-- name: read_tombstone
SELECT deleted_at
FROM tombstones
WHERE uid = :uid

-- name: peek
-- Some row, to see how it is sealed.
SELECT body
FROM (
    SELECT body FROM (SELECT body FROM checkpoints LIMIT 1) written
    UNION ALL
    SELECT body FROM (SELECT body FROM deliveries LIMIT 1) brought
    UNION ALL
    SELECT input FROM (SELECT input FROM runs WHERE input IS NOT NULL LIMIT 1) accepted
) found
LIMIT 1

-- ── Taking a thread ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_live_run
SELECT r.run_id, r.status, r.epoch, r.worker_id, w.host, w.pid, w.started, w.lease_until,
       CASE WHEN r.input IS NULL THEN 0 ELSE 1 END
FROM runs r
LEFT JOIN workers w ON w.worker_id = r.worker_id
WHERE r.thread_id = :thread_id
AND r.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')

-- name: insert_run
-- one_live_run refuses a second live run; the conflict is reported as no row inserted.
INSERT INTO runs (run_id, thread_id, status, epoch, worker_id, created_at, updated_at, lane, owner, rank, crashes)
VALUES (:run_id, :thread_id, 'running', 1, :worker_id, :now, :now, :lane, :owner, 0, 0)
ON CONFLICT DO NOTHING

-- name: claim_run
-- Status and epoch are part of the WHERE: of two callers who read the same run, one changes the row.
UPDATE runs
SET status = 'running', epoch = epoch + 1, worker_id = :worker_id, error = NULL, updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND epoch = :epoch
AND status = :status

-- name: supersede_run
UPDATE runs
SET status = 'cancelled', epoch = epoch + 1, worker_id = NULL, input = NULL, updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND epoch = :epoch
AND status = :status

-- name: read_head
SELECT max(seq)
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = :ns

-- name: check_head
SELECT 1
WHERE (SELECT coalesce(max(seq), 0) FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns) = :expected

-- ── Driving it ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: write_checkpoint
-- The whole commit of a plain step. The lease is part of the WHERE: a worker that was paused past its lease must not
-- overwrite its successor. While it is held nobody else writes to the thread, and the primary key refuses a second
-- checkpoint in the same place: what was computed from an older head is not written.
INSERT INTO checkpoints (thread_id, ns, seq, parent, step, source, run_id, epoch, created_at, pruned, body)
SELECT :thread_id, :ns, :seq, :parent, :step, :source, :run_id, :epoch, :now, 0, :body
WHERE EXISTS (
    SELECT 1
    FROM runs
    WHERE thread_id = :thread_id
    AND run_id = :run_id
    AND epoch = :epoch
    AND status = 'running'
    /* lock: share */
)
ON CONFLICT DO NOTHING

-- name: prove_checkpoint
-- Whether this very checkpoint was written, though its reply was lost.
SELECT 1
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND seq = :seq
AND run_id = :run_id
AND epoch = :epoch
AND body = :body

-- name: hold_lease
-- Writes beside a checkpoint are fenced too.
SELECT 1
FROM runs
WHERE thread_id = :thread_id
AND run_id = :run_id
AND epoch = :epoch
AND status = 'running'
/* lock: share */

-- name: hold_run
-- The same, and nobody writes a checkpoint beside it.
SELECT 1
FROM runs
WHERE thread_id = :thread_id
AND run_id = :run_id
AND epoch = :epoch
AND status = 'running'
/* lock: */

-- name: edit_checkpoint
-- An edit from outside holds no lease, so nobody else may: it is refused while a run is under way.
INSERT INTO checkpoints (thread_id, ns, seq, parent, step, source, run_id, epoch, created_at, pruned, body)
SELECT :thread_id, :ns, :seq, :parent, :step, :source, '', 0, :now, 0, :body
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE thread_id = :thread_id AND status = 'running')
AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = :thread_id AND ns = :ns AND seq > :expected)
ON CONFLICT DO NOTHING

-- name: end_run
-- One that waits does not, if one of its waits was settled from outside since it was claimed.
UPDATE runs
SET status = CASE
        WHEN :is_waiting = 1 AND EXISTS (
            SELECT 1
            FROM waits w
            WHERE w.thread_id = :thread_id
            AND w.consumed = 0
            AND w.settled_in = :epoch
        ) THEN 'ready'
        ELSE :status
    END,
    worker_id = NULL, error = :error, due_at = :now, crashes = 0, updated_at = :now
WHERE thread_id = :thread_id
AND run_id = :run_id
AND epoch = :epoch
AND status = 'running'

-- name: insert_channel
INSERT INTO channel_log (thread_id, ns, channel, seq, body)
VALUES (:thread_id, :ns, :channel, :seq, :body)

-- name: delete_channel
DELETE FROM channel_log
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
AND seq >= :seq
AND seq <= :until

-- name: touch_blob
UPDATE blobs
SET used_at = :now
WHERE owner = :owner
AND hash = :hash

-- name: put_blob
INSERT INTO blobs (owner, hash, size, used_at, body)
VALUES (:owner, :hash, :size, :now, :body)
ON CONFLICT (owner, hash) DO UPDATE SET used_at = excluded.used_at

-- name: use_blob
INSERT INTO blob_uses (thread_id, owner, hash)
VALUES (:thread_id, :owner, :hash)
ON CONFLICT DO NOTHING

-- name: read_blob
SELECT body
FROM blobs
WHERE owner = :owner
AND hash = :hash

-- name: count_events
UPDATE threads
SET events = events + :added
WHERE thread_id = :thread_id

-- name: insert_event
-- Numbered by the count, which was raised before for all that come: the last of them has its number.
INSERT INTO events (thread_id, number, seq, run_id, kind, at, body)
SELECT :thread_id, events - :behind, :seq, :run_id, :kind, :now, :body
FROM threads
WHERE thread_id = :thread_id

-- name: write_journal
-- An intent becomes done, an error gives way to a newer one; a result or a step that is done is never written over.
INSERT INTO journal (thread_id, task_id, key, kind, phase, name, digest, run_id, epoch, written_at, body)
VALUES (:thread_id, :task_id, :key, :kind, :phase, :name, :digest, :run_id, :epoch, :now, :body)
ON CONFLICT (thread_id, task_id, kind, key) DO UPDATE
SET phase = excluded.phase, run_id = excluded.run_id, epoch = excluded.epoch,
    written_at = excluded.written_at, body = excluded.body
WHERE journal.phase = 'intent' OR journal.kind = 'error'

-- name: read_step
-- A step that is done, though whoever made it may not have heard so.
SELECT name, digest, body
FROM journal
WHERE thread_id = :thread_id
AND task_id = :task_id
AND kind = 'step'
AND key = :key
AND phase = 'done'

-- name: drop_result
-- A task that is said to have failed has no result, whatever was recorded when it finished.
DELETE FROM journal
WHERE thread_id = :thread_id
AND task_id = :task_id
AND kind = 'result'

-- name: retire_journal
DELETE FROM journal
WHERE thread_id = :thread_id

-- name: retire_journal_inside
-- Only that of a graph inside a task: all task ids that begin with its path.
DELETE FROM journal
WHERE thread_id = :thread_id
AND substr(task_id, 1, :length) = :prefix

-- ── Waits ──────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: open_wait
-- A question is asked again under its old id when its answer was refused, or when its run was cancelled and is retried.
INSERT INTO waits (wait_id, thread_id, run_id, task_id, node, key, kind, status, consumed, digest, question, created_at,
                   deadline, remind_at, needs, owner)
VALUES (:wait_id, :thread_id, :run_id, :task_id, :node, :key, :kind, 'open', 0, :digest, :question, :now,
        :deadline, :remind_at, :needs, (SELECT owner FROM threads WHERE thread_id = :thread_id))
ON CONFLICT (wait_id) DO UPDATE
SET status = 'open', answer = NULL, answered_at = NULL, answered_via = NULL, answered_by = NULL, answer_key = NULL,
    settled_in = NULL, consumed = 0, run_id = excluded.run_id, digest = excluded.digest, question = excluded.question,
    created_at = excluded.created_at, deadline = excluded.deadline, remind_at = excluded.remind_at,
    needs = excluded.needs, snoozed_until = NULL

-- name: note_settled
-- For a run that is claimed after its thread was loaded: an answer that came between the two is told at its pause.
UPDATE waits
SET settled_in = :epoch
WHERE wait_id = :wait_id
AND status <> 'open'
AND consumed = 0

-- name: answer_wait
-- First wins: an answer is written only where none is.
UPDATE waits
SET status = 'answered', answer = :answer, answered_at = :now, answered_via = :via
WHERE wait_id = :wait_id
AND status = 'open'

-- name: cancel_waits
UPDATE waits
SET status = 'cancelled', consumed = 1
WHERE thread_id = :thread_id
AND consumed = 0
AND status = 'open'
AND substr(task_id, 1, :length) = :prefix

-- name: consume_waits
UPDATE waits
SET consumed = 1
WHERE thread_id = :thread_id
AND consumed = 0
AND substr(task_id, 1, :length) = :prefix

-- name: list_open_waits
-- The inbox: those who wait longest come first. Served by waits_by_age.
SELECT wait_id, thread_id, run_id, task_id, node, key, kind, question, created_at, deadline
FROM waits
WHERE status = 'open'
ORDER BY created_at, wait_id
LIMIT :most

-- ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_checkpoint
SELECT seq, parent, step, source, run_id, epoch, created_at, body
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND seq = :seq
AND pruned <= :pruned

-- name: list_checkpoints
SELECT seq, parent, step, source, run_id, epoch, created_at, body
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND seq < :before
AND pruned = 0
ORDER BY seq DESC
LIMIT :most

-- name: read_channel
SELECT seq, body
FROM channel_log
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
AND seq >= :first
AND seq <= :last
ORDER BY seq

-- name: read_journal
SELECT task_id, key, kind, phase, name, digest, body
FROM journal
WHERE thread_id = :thread_id

-- name: read_waits
SELECT wait_id, task_id, node, key, kind, status, digest, question, answer, answered_at
FROM waits
WHERE thread_id = :thread_id
AND consumed = 0
ORDER BY created_at, wait_id

-- name: read_all_waits
-- Whatever a thread has ever asked, for those who look back.
SELECT wait_id, task_id, node, key, kind, status, digest, question, answer, answered_at
FROM waits
WHERE thread_id = :thread_id
AND kind IN ('call', 'return')
ORDER BY created_at, wait_id

-- name: read_events
SELECT number, seq, run_id, kind, at, body
FROM events
WHERE thread_id = :thread_id
AND number > :after
ORDER BY number
LIMIT :most

-- name: list_threads
-- Every thread, newest first, with its live run, or else its latest.
SELECT t.thread_id, t.graph, t.created_at, r.status, r.updated_at
FROM threads t
LEFT JOIN runs r ON r.thread_id = t.thread_id AND r.run_id = (
    SELECT run_id
    FROM runs
    WHERE thread_id = t.thread_id
    ORDER BY CASE WHEN status IN ('ready', 'running', 'waiting', 'blocked', 'dead') THEN 0 ELSE 1 END, run_id DESC
    LIMIT 1
)
ORDER BY t.created_at DESC, t.thread_id
LIMIT :most

-- name: list_waiting
SELECT t.thread_id
FROM threads t
WHERE t.graph = :graph
AND EXISTS (SELECT 1 FROM runs r WHERE r.thread_id = t.thread_id AND r.status = 'waiting')
ORDER BY t.created_at, t.thread_id

-- ── Deleting a thread: all of it, or nothing ───────────────────────────────────────────────────────────────────────

-- name: delete_thread
DELETE FROM threads
WHERE thread_id = :thread_id

-- name: delete_runs
DELETE FROM runs
WHERE thread_id = :thread_id

-- name: delete_checkpoints
DELETE FROM checkpoints
WHERE thread_id = :thread_id

-- name: delete_channels
DELETE FROM channel_log
WHERE thread_id = :thread_id

-- name: delete_waits
DELETE FROM waits
WHERE thread_id = :thread_id

-- name: delete_events
DELETE FROM events
WHERE thread_id = :thread_id

-- name: list_blob_uses
SELECT owner, hash
FROM blob_uses
WHERE thread_id = :thread_id

-- name: hold_blob
SELECT 1
FROM blobs
WHERE owner = :owner
AND hash = :hash
/* lock: */

-- name: drop_blob
-- After it is held: whoever used it meanwhile is seen, and whoever comes now waits and puts it there anew.
DELETE FROM blobs
WHERE owner = :owner
AND hash = :hash
AND NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.owner = blobs.owner AND u.hash = blobs.hash)

-- name: delete_blob_uses
DELETE FROM blob_uses
WHERE thread_id = :thread_id

-- name: bury_thread
INSERT INTO tombstones (uid, thread_id, deleted_at)
SELECT uid, thread_id, :now
FROM threads
WHERE thread_id = :thread_id

-- ── The long-term store ────────────────────────────────────────────────────────────────────────────────────────────

-- name: put_item
-- What has expired was not there any more, so the item is made anew.
INSERT INTO items (namespace, key, ttl, expires_at, created_at, updated_at, body)
VALUES (:namespace, :key, :ttl, :expires_at, :now, :now, :body)
ON CONFLICT (namespace, key) DO UPDATE
SET ttl = excluded.ttl, expires_at = excluded.expires_at, updated_at = excluded.updated_at, body = excluded.body,
    created_at = CASE WHEN items.expires_at <= excluded.updated_at THEN excluded.created_at ELSE items.created_at END

-- name: delete_item
DELETE FROM items
WHERE namespace = :namespace
AND key = :key

-- name: read_item
SELECT namespace, key, ttl, expires_at, created_at, updated_at, body
FROM items
WHERE namespace = :namespace
AND key = :key
AND (expires_at IS NULL OR expires_at > :now)

-- name: list_items
SELECT namespace, key, ttl, expires_at, created_at, updated_at, body
FROM items
WHERE namespace >= :since
AND namespace < :until
AND (expires_at IS NULL OR expires_at > :now)
ORDER BY updated_at DESC, namespace, key
LIMIT :most
OFFSET :skip

-- name: scan_items
-- Page after page in the order of the primary key: each begins where the last one ended.
SELECT namespace, key, ttl, expires_at, created_at, updated_at, body
FROM items
WHERE (namespace, key) >= (:since, :key)
AND namespace < :until
AND (expires_at IS NULL OR expires_at > :now)
ORDER BY namespace, key
LIMIT :most

-- name: next_namespace
SELECT namespace
FROM items
WHERE namespace >= :since
AND namespace < :until
AND (expires_at IS NULL OR expires_at > :now)
ORDER BY namespace
LIMIT 1

-- name: refresh_item
-- Never earlier than it was: somebody may have written the item since it was read.
UPDATE items
SET expires_at = :now + ttl
WHERE namespace = :namespace
AND key = :key
AND expires_at > :now
AND expires_at < :now + ttl

-- name: drop_expired_items
-- Those who tidy up at the same time leave each other's rows alone.
DELETE FROM items
WHERE expires_at <= :now
AND (namespace, key) IN (
    SELECT namespace, key
    FROM items
    WHERE expires_at <= :now
    ORDER BY expires_at
    LIMIT :most
    /* lock: skip locked */
)

-- ── Results of nodes with a cache policy ───────────────────────────────────────────────────────────────────────────

-- name: read_cached
SELECT body
FROM cache
WHERE place = :place
AND key = :key
AND (expires_at IS NULL OR expires_at > :now)

-- name: write_cached
INSERT INTO cache (place, key, expires_at, body)
VALUES (:place, :key, :expires_at, :body)
ON CONFLICT (place, key) DO UPDATE SET expires_at = excluded.expires_at, body = excluded.body

-- name: forget_cached
DELETE FROM cache
WHERE expires_at <= :now

-- name: clear_cached
DELETE FROM cache
WHERE place = :place

-- ── Migrations ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: read_version
SELECT max(version)
FROM migrations

-- name: insert_migration
INSERT INTO migrations (version, name, applied_at)
VALUES (:version, :name, :now)
