-- What somebody at a terminal asks: ids by how they begin.

-- name: find_waits_by_prefix
-- Ids are written in hexadecimal digits, and no letter that follows them is one. Served by the primary key.
SELECT wait_id
FROM waits
WHERE wait_id >= :first
AND wait_id < :beyond
ORDER BY wait_id
LIMIT :most

-- name: find_threads_by_prefix
-- Looks at every thread: ids are the user's own, and sorted as the database's language has it.
SELECT thread_id
FROM threads
WHERE substr(thread_id, 1, :length) = :prefix
ORDER BY created_at DESC
LIMIT :most
