-- Threads that are made for one run, and go when it is over (passing.py).

-- name: note_passing
-- One life of it: a thread that is deleted by hand and made again is another matter.
INSERT INTO passing_threads (thread_id, uid)
SELECT thread_id, uid
FROM threads
WHERE thread_id = :thread_id
ON CONFLICT (thread_id) DO UPDATE
SET uid = excluded.uid

-- name: list_passed
-- Also those that somebody has deleted meanwhile: what is noted of them goes, and a new thread of that name stays.
SELECT p.thread_id, CASE WHEN t.uid IS NULL THEN 0 ELSE 1 END
FROM passing_threads p
LEFT JOIN threads t ON t.thread_id = p.thread_id AND t.uid = p.uid
WHERE NOT EXISTS (
    SELECT 1
    FROM runs r
    WHERE r.thread_id = p.thread_id
    AND (r.status NOT IN ('done', 'failed', 'cancelled') OR r.updated_at > :before)
    AND t.uid IS NOT NULL
)
ORDER BY p.thread_id
LIMIT :most

-- name: forget_passing
DELETE FROM passing_threads
WHERE thread_id = :thread_id
