-- Following a thread: its log and its checkpoints, each from where the reader stopped.

-- name: follow_thread
-- What decides whether more is to come; read in the same snapshot as the rest.
SELECT t.uid, t.graph, t.events,
    (SELECT max(c.seq) FROM checkpoints c WHERE c.thread_id = :thread_id AND c.ns = ''),
    (
        SELECT r.status
        FROM runs r
        WHERE r.thread_id = :thread_id
        AND r.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')
    ),
    (SELECT count(*) FROM runs q WHERE q.thread_id = :thread_id AND q.status = 'queued')
FROM threads t
WHERE t.thread_id = :thread_id

-- name: follow_checkpoints
SELECT seq, parent, step, source, run_id, epoch, created_at, body
FROM checkpoints
WHERE thread_id = :thread_id
AND ns = ''
AND seq > :after
AND pruned = 0
ORDER BY seq
LIMIT :most
