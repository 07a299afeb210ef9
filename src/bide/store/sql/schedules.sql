-- Schedules: rules after which runs are started. Their rows are locked before those of threads.

-- name: hold_schedule
-- Whoever changes a schedule holds its row, so that nobody starts its runs meanwhile.
SELECT schedule_id, owner, graph, cron, timezone, is_paused, next_at, last_at, created_at, error, body
FROM schedules
WHERE schedule_id = :schedule_id
/* lock: */

-- name: put_schedule
INSERT INTO schedules (schedule_id, owner, graph, cron, timezone, is_paused, next_at, created_at, body)
VALUES (:schedule_id, :owner, :graph, :cron, :timezone, :is_paused, :next_at, :now, :body)
ON CONFLICT (schedule_id) DO UPDATE
SET graph = excluded.graph,
    cron = excluded.cron,
    timezone = excluded.timezone,
    is_paused = excluded.is_paused,
    next_at = excluded.next_at,
    body = excluded.body

-- name: read_schedule
SELECT schedule_id, owner, graph, cron, timezone, is_paused, next_at, last_at, created_at, error, body
FROM schedules
WHERE schedule_id = :schedule_id

-- name: list_schedules
SELECT schedule_id, owner, graph, cron, timezone, is_paused, next_at, last_at, created_at, error, body
FROM schedules
WHERE owner = :owner
AND schedule_id > :after
ORDER BY schedule_id
LIMIT :most

-- name: delete_schedule
DELETE FROM schedules
WHERE schedule_id = :schedule_id

-- name: pause_schedule
UPDATE schedules
SET is_paused = 1
WHERE schedule_id = :schedule_id
AND is_paused = 0

-- name: resume_schedule
-- From now on: what came due while it was paused is not made up for.
UPDATE schedules
SET is_paused = 0, next_at = :next_at, error = NULL
WHERE schedule_id = :schedule_id
AND is_paused = 1

-- name: list_due_schedules
-- Served by schedules_due.
SELECT schedule_id
FROM schedules
WHERE is_paused = 0
AND next_at <= :now
ORDER BY next_at
LIMIT :most

-- name: hold_due_schedule
-- Of several who look at the clock one gets the row, and whoever comes after it finds that it is not due any more.
SELECT schedule_id, owner, graph, cron, timezone, is_paused, next_at, last_at, created_at, error, body
FROM schedules
WHERE schedule_id = :schedule_id
AND is_paused = 0
AND next_at <= :now
/* lock: skip locked */

-- name: move_schedule
-- Part of the transaction that starts its runs.
UPDATE schedules
SET next_at = :next_at, last_at = coalesce(:last_at, last_at), error = :error
WHERE schedule_id = :schedule_id

-- name: stop_schedule
-- One whose cron cannot be read any more would be due for ever.
UPDATE schedules
SET is_paused = 1, error = :error
WHERE schedule_id = :schedule_id
