-- Listing threads, newest first, page after page. A thread shows its live run, or else the newest that is queued, or
-- else its newest; each is one step in an index, however many runs a thread has had. An empty filter lets all pass.

-- part: shown_run
coalesce(
    (
        SELECT l.run_id
        FROM runs l
        WHERE l.thread_id = t.thread_id
        AND l.status IN ('ready', 'running', 'waiting', 'blocked', 'dead')
    ),
    (SELECT max(q.run_id) FROM runs q WHERE q.thread_id = t.thread_id AND q.status = 'queued'),
    (SELECT max(n.run_id) FROM runs n WHERE n.thread_id = t.thread_id)
)

-- name: list_threads_by_age
-- Served by threads_by_age: the threads of one page first, and then the run of each.
SELECT t.thread_id, t.owner, t.graph, t.parent, t.created_at, r.run_id, r.status, r.updated_at, r.error
FROM (
    SELECT thread_id, owner, graph, parent, created_at
    FROM threads
    WHERE (created_at, thread_id) < (:created_at, :after)
    AND (:graph = '' OR graph = :graph)
    AND (:is_owned = 0 OR owner = :owner)
    ORDER BY created_at DESC, thread_id DESC
    LIMIT :most
) t
LEFT JOIN runs r ON r.thread_id = t.thread_id AND r.run_id = /* part: shown_run */
ORDER BY t.created_at DESC, t.thread_id DESC

-- name: list_threads_by_status
-- For statuses that few runs have, so that not every thread is looked at: each part is served by an index of its own,
-- runs_of_worker, runs_queued, runs_ready, runs_limited and runs_stuck. SQLite takes tables that are joined by CROSS JOIN
-- in the order in which they stand: the few first.
WITH few (thread_id, run_id) AS MATERIALIZED (
    SELECT thread_id, run_id FROM runs WHERE status = 'running' AND :status = 'running'
    UNION ALL
    SELECT thread_id, run_id FROM runs WHERE status = 'queued' AND :status = 'queued'
    UNION ALL
    SELECT thread_id, run_id FROM runs WHERE status = 'ready' AND limit_key IS NULL AND :status = 'ready'
    UNION ALL
    SELECT thread_id, run_id FROM runs WHERE status = 'ready' AND limit_key IS NOT NULL AND :status = 'ready'
    UNION ALL
    SELECT thread_id, run_id FROM runs WHERE status IN ('blocked', 'dead', 'failed') AND status = :status
)
SELECT t.thread_id, t.owner, t.graph, t.parent, t.created_at, r.run_id, r.status, r.updated_at, r.error
FROM few
CROSS JOIN threads t
CROSS JOIN runs r
WHERE t.thread_id = few.thread_id
AND r.thread_id = few.thread_id
AND r.run_id = few.run_id
AND (t.created_at, t.thread_id) < (:created_at, :after)
AND (:graph = '' OR t.graph = :graph)
AND (:is_owned = 0 OR t.owner = :owner)
AND r.run_id = /* part: shown_run */
ORDER BY t.created_at DESC, t.thread_id DESC
LIMIT :most

-- name: list_threads_of_parent
-- Served by threads_of_parent.
SELECT t.thread_id, t.owner, t.graph, t.parent, t.created_at, r.run_id, r.status, r.updated_at, r.error
FROM (
    SELECT thread_id, owner, graph, parent, created_at
    FROM threads
    WHERE parent = :parent
    AND (created_at, thread_id) < (:created_at, :after)
    AND (:graph = '' OR graph = :graph)
    AND (:is_owned = 0 OR owner = :owner)
    ORDER BY created_at DESC, thread_id DESC
    LIMIT :most
) t
LEFT JOIN runs r ON r.thread_id = t.thread_id AND r.run_id = /* part: shown_run */
ORDER BY t.created_at DESC, t.thread_id DESC

-- name: read_thread_shown
SELECT t.thread_id, t.owner, t.graph, t.parent, t.created_at, /* part: shown_run */
FROM threads t
WHERE t.thread_id = :thread_id
