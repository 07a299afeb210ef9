-- What somebody at a terminal asks: ids by their beginning, and which runs nobody gets on with.

-- name: find_waits_by_prefix
-- Ids are written in hexadecimal digits, and no letter that follows them is one. Served by the primary key.
SELECT wait_id
FROM waits
WHERE wait_id >= :first
AND wait_id < :beyond
ORDER BY wait_id
LIMIT :most

-- name: find_threads_by_prefix
SELECT thread_id
FROM threads
WHERE substr(thread_id, 1, :length) = :prefix
ORDER BY created_at DESC
LIMIT :most

-- name: list_runs_by_status
-- Served by runs_live, except for those that failed.
SELECT thread_id, updated_at
FROM runs
WHERE status = :status
ORDER BY updated_at
LIMIT :most
