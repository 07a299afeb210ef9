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

-- name: make_thread
-- A thread that a client makes before it knows what for: it has no graph until its first run.
INSERT INTO threads (thread_id, uid, owner, graph, events, created_at, pruned)
VALUES (:thread_id, :uid, :owner, '', 0, :now, 0)
ON CONFLICT (thread_id) DO NOTHING

-- name: put_thread_notes
INSERT INTO thread_notes (thread_id, updated_at, expires_at, body)
VALUES (:thread_id, :now, :expires_at, :body)
ON CONFLICT (thread_id) DO UPDATE
SET updated_at = excluded.updated_at, expires_at = excluded.expires_at, body = excluded.body

-- name: read_thread_notes
SELECT body
FROM thread_notes
WHERE thread_id = :thread_id

-- name: insert_label
INSERT INTO thread_labels (label, thread_id)
VALUES (:label, :thread_id)
ON CONFLICT (label, thread_id) DO NOTHING

-- name: list_expired_threads
-- Those at rest: whoever waits for something is kept until it has come. Served by thread_notes_due.
SELECT n.thread_id, n.body
FROM thread_notes n
WHERE n.expires_at <= :now
AND NOT EXISTS (
    SELECT 1
    FROM runs r
    WHERE r.thread_id = n.thread_id
    AND r.status IN ('queued', 'ready', 'running', 'waiting', 'blocked', 'dead')
)
ORDER BY n.expires_at
LIMIT :most

-- name: keep_for_ever
UPDATE thread_notes
SET expires_at = NULL
WHERE thread_id = :thread_id

-- name: read_run_notes
SELECT body
FROM run_notes
WHERE thread_id = :thread_id
AND run_id = :run_id

-- name: drop_run_notes
DELETE FROM run_notes
WHERE thread_id = :thread_id
AND run_id = :run_id

-- part: noted_thread
-- A thread with what was said about it, and with its live run, or else its newest.
SELECT t.thread_id, t.graph, t.created_at, n.updated_at, n.expires_at, n.body, r.run_id, r.status, r.updated_at,
    r.error,
    (SELECT c.created_at FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.ns = '' ORDER BY c.seq DESC LIMIT 1)
FROM threads t
LEFT JOIN thread_notes n ON n.thread_id = t.thread_id
LEFT JOIN runs r ON r.thread_id = t.thread_id AND r.run_id = coalesce(
    (
        SELECT l.run_id
        FROM runs l
        WHERE l.thread_id = t.thread_id
        AND l.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')
    ),
    (SELECT max(q.run_id) FROM runs q WHERE q.thread_id = t.thread_id)
)

-- name: list_noted_threads
-- Newest first, served by threads_of_owner.
/* part: noted_thread */
WHERE t.owner = :owner
ORDER BY t.created_at DESC, t.thread_id DESC
LIMIT :most

-- name: list_labelled_threads
-- The same among those with a label.
/* part: noted_thread */
WHERE t.owner = :owner
AND t.thread_id IN (SELECT k.thread_id FROM thread_labels k WHERE k.label = :label)
ORDER BY t.created_at DESC, t.thread_id DESC
LIMIT :most

-- name: show_noted_thread
/* part: noted_thread */
WHERE t.thread_id = :thread_id
AND t.owner = :owner

-- name: first_event_of_run
-- Where the story of a run begins. Its first line is its start, so no line of it has a smaller number.
SELECT min(number), min(seq)
FROM events
WHERE thread_id = :thread_id
AND run_id = :run_id

-- name: thread_of_run
-- Of a run that a client has started, and knows by its id alone.
SELECT thread_id
FROM run_notes
WHERE run_id = :run_id

-- ── For verify, reseal and retention ───────────────────────────────────────────────────────────────────────────────

-- name: page_thread_notes
-- A thread has one row of them at most.
SELECT thread_id, updated_at, expires_at, body
FROM thread_notes
WHERE thread_id = :thread_id
LIMIT :most

-- name: page_run_notes
SELECT thread_id, run_id, body
FROM run_notes
WHERE thread_id = :thread_id
AND run_id > :run_id
ORDER BY run_id
LIMIT :most

-- name: lost_thread_notes
SELECT DISTINCT thread_id
FROM thread_notes
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = thread_notes.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: lost_run_notes
SELECT DISTINCT thread_id
FROM run_notes
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = run_notes.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: references_thread_notes
SELECT thread_id, updated_at, expires_at, body
FROM thread_notes
WHERE thread_id = :thread_id
AND length(body) <= :longest
AND substr(body, 1, 1) = :kind

-- name: references_run_notes
SELECT thread_id, run_id, body
FROM run_notes
WHERE thread_id = :thread_id
AND length(body) <= :longest
AND substr(body, 1, 1) = :kind

-- name: reseal_thread_notes_body
UPDATE thread_notes
SET body = :new
WHERE thread_id = :thread_id
AND body = :old

-- name: reseal_run_notes_body
UPDATE run_notes
SET body = :new
WHERE thread_id = :thread_id
AND run_id = :run_id
AND body = :old
