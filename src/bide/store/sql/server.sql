-- What the server asks: whose a thread is, which threads have news, and what clients have said beside it all.

-- name: owner_of_thread
SELECT owner
FROM threads
WHERE thread_id = :thread_id

-- name: peek_thread
-- As little as tells whether a thread has something new: its life, its two counters, and its live run.
SELECT t.uid, t.events,
    (SELECT max(c.seq) FROM checkpoints c WHERE c.thread_id = :thread_id AND c.ns = ''),
    (
        SELECT r.status
        FROM runs r
        WHERE r.thread_id = :thread_id
        AND r.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')
    )
FROM threads t
WHERE t.thread_id = :thread_id

-- name: delete_thread_notes
DELETE FROM thread_notes
WHERE thread_id = :thread_id

-- name: delete_labels
DELETE FROM thread_labels
WHERE thread_id = :thread_id

-- name: delete_run_notes
DELETE FROM run_notes
WHERE thread_id = :thread_id
