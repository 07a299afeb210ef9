-- The queries of LangGraph's savers (bide.interop.langgraph), on the tables at the end of schema.sql.

-- ── Threads ────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: saver_insert_thread
INSERT INTO saver_threads (thread_id, life, puts, created_at)
VALUES (:thread_id, :life, 0, :now)
ON CONFLICT (thread_id) DO NOTHING

-- name: saver_take_number
-- Locks the thread until the end of the transaction, and numbers what is put: numbers are never used again.
UPDATE saver_threads
SET puts = puts + 1
WHERE thread_id = :thread_id
RETURNING puts, life, horizon

-- name: saver_hold_thread
SELECT puts, life, horizon
FROM saver_threads
WHERE thread_id = :thread_id
/* lock: */

-- name: saver_bury_thread
UPDATE saver_threads
SET horizon = :horizon, life = :life, deleted_at = :now
WHERE thread_id = :thread_id

-- name: saver_move_horizon
UPDATE saver_threads
SET horizon = :horizon
WHERE thread_id = :thread_id

-- name: saver_count_on
-- After a copy: the next number must be beyond those that came along.
UPDATE saver_threads
SET puts = :puts
WHERE thread_id = :thread_id
AND puts < :puts

-- ── Checkpoints ────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: saver_put_checkpoint
INSERT INTO saver_checkpoints (thread_id, ns, checkpoint_id, parent_id, run_id, seq, created_at, metadata, body)
VALUES (:thread_id, :ns, :checkpoint_id, :parent_id, :run_id, :seq, :now, :metadata, :body)
ON CONFLICT (thread_id, ns, checkpoint_id) DO UPDATE
SET parent_id = excluded.parent_id,
    run_id = excluded.run_id,
    seq = excluded.seq,
    metadata = excluded.metadata,
    body = excluded.body

-- name: saver_read_checkpoint
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, metadata, body
FROM saver_checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id = :checkpoint_id

-- name: saver_read_latest
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, metadata, body
FROM saver_checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
ORDER BY checkpoint_id DESC
LIMIT 1

-- name: saver_find_id
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, metadata, body
FROM saver_checkpoints
WHERE thread_id = :thread_id
AND checkpoint_id = :checkpoint_id
ORDER BY ns DESC

-- name: saver_list_ns
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, metadata, body
FROM saver_checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id < :before_id
ORDER BY checkpoint_id DESC
LIMIT :most

-- name: saver_list_thread
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, metadata, body
FROM saver_checkpoints
WHERE thread_id = :thread_id
AND (checkpoint_id, ns) < (:before_id, :before_ns)
ORDER BY checkpoint_id DESC, ns DESC
LIMIT :most

-- name: saver_list_all
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, metadata, body
FROM saver_checkpoints
WHERE (checkpoint_id, thread_id, ns) < (:before_id, :before_thread, :before_ns)
ORDER BY checkpoint_id DESC, thread_id DESC, ns DESC
LIMIT :most

-- name: saver_newest
SELECT MAX(checkpoint_id)
FROM saver_checkpoints
WHERE thread_id = :thread_id

-- name: saver_newest_of_all
SELECT MAX(checkpoint_id)
FROM saver_checkpoints

-- name: saver_read_line
-- A checkpoint and its ancestors, youngest first, so many at a time.
WITH RECURSIVE line (checkpoint_id, depth) AS (
    SELECT CAST(:checkpoint_id AS TEXT), 1
    UNION ALL
    SELECT child.parent_id, line.depth + 1
    FROM line
    JOIN saver_checkpoints AS child
    ON child.thread_id = :thread_id
    AND child.ns = :ns
    AND child.checkpoint_id = line.checkpoint_id
    WHERE child.parent_id IS NOT NULL
    AND line.depth < :most
)
SELECT c.thread_id, c.ns, c.checkpoint_id, c.parent_id, c.run_id, c.seq, c.metadata, c.body
FROM line
JOIN saver_checkpoints AS c
ON c.thread_id = :thread_id
AND c.ns = :ns
AND c.checkpoint_id = line.checkpoint_id
ORDER BY line.depth

-- name: saver_read_line_writes
-- The writes to one channel on the same checkpoints.
WITH RECURSIVE line (checkpoint_id, depth) AS (
    SELECT CAST(:checkpoint_id AS TEXT), 1
    UNION ALL
    SELECT child.parent_id, line.depth + 1
    FROM line
    JOIN saver_checkpoints AS child
    ON child.thread_id = :thread_id
    AND child.ns = :ns
    AND child.checkpoint_id = line.checkpoint_id
    WHERE child.parent_id IS NOT NULL
    AND line.depth < :most
)
SELECT w.checkpoint_id, w.task_id, w.idx, w.channel, w.task_path, w.body
FROM line
JOIN saver_writes AS w
ON w.thread_id = :thread_id
AND w.ns = :ns
AND w.checkpoint_id = line.checkpoint_id
WHERE w.channel = :channel

-- name: saver_thread_checkpoints
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, metadata, body
FROM saver_checkpoints
WHERE thread_id = :thread_id
ORDER BY seq

-- name: saver_threads_of_run
SELECT DISTINCT thread_id
FROM saver_checkpoints
WHERE run_id = :run_id

-- name: saver_delete_checkpoint
DELETE FROM saver_checkpoints
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id = :checkpoint_id

-- name: saver_delete_checkpoints
DELETE FROM saver_checkpoints
WHERE thread_id = :thread_id

-- ── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: saver_put_value
INSERT INTO saver_values (thread_id, ns, channel, seq, body)
VALUES (:thread_id, :ns, :channel, :seq, :body)

-- name: saver_read_values
SELECT seq, body
FROM saver_values
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
AND seq BETWEEN :first AND :last
ORDER BY seq

-- name: saver_newest_value
SELECT seq, body
FROM saver_values
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
ORDER BY seq DESC
LIMIT 1

-- name: saver_thread_values
SELECT ns, channel, seq
FROM saver_values
WHERE thread_id = :thread_id

-- name: saver_delete_values
DELETE FROM saver_values
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
AND seq BETWEEN :first AND :last

-- name: saver_delete_all_values
DELETE FROM saver_values
WHERE thread_id = :thread_id

-- ── Writes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: saver_put_write
-- A task that runs again after a crash writes the same once more: the first one stays.
INSERT INTO saver_writes (thread_id, ns, checkpoint_id, task_id, idx, channel, task_path, body)
VALUES (:thread_id, :ns, :checkpoint_id, :task_id, :idx, :channel, :task_path, :body)
ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO NOTHING

-- name: saver_replace_write
-- Errors, interrupts and answers have one place for each task: the last one counts.
INSERT INTO saver_writes (thread_id, ns, checkpoint_id, task_id, idx, channel, task_path, body)
VALUES (:thread_id, :ns, :checkpoint_id, :task_id, :idx, :channel, :task_path, :body)
ON CONFLICT (thread_id, ns, checkpoint_id, task_id, idx) DO UPDATE
SET channel = excluded.channel, task_path = excluded.task_path, body = excluded.body

-- name: saver_read_writes
SELECT checkpoint_id, task_id, idx, channel, task_path, body
FROM saver_writes
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id = :checkpoint_id

-- name: saver_written_on
-- On which checkpoints of a thread there are writes.
SELECT DISTINCT ns, checkpoint_id
FROM saver_writes
WHERE thread_id = :thread_id

-- name: saver_delete_writes_on
DELETE FROM saver_writes
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id = :checkpoint_id

-- name: saver_delete_writes
DELETE FROM saver_writes
WHERE thread_id = :thread_id

-- ── Large bodies ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: saver_large_values
-- The bodies that lie elsewhere: their first byte says so (seal.py).
SELECT ns, channel, seq, body
FROM saver_values
WHERE thread_id = :thread_id
AND substr(body, 1, 1) = :reference

-- name: saver_large_writes
SELECT ns, checkpoint_id, task_id, idx, channel, task_path, body
FROM saver_writes
WHERE thread_id = :thread_id
AND substr(body, 1, 1) = :reference
