-- How a store is doing, for whoever looks every few seconds: counts that an index finds, whatever else there is.

-- name: count_live_runs
-- Served by one_live_run, whose condition this repeats.
SELECT count(*)
FROM runs
WHERE status IN ('ready', 'running', 'waiting', 'blocked', 'dead')

-- name: count_running
-- Served by runs_of_worker.
SELECT count(*)
FROM runs
WHERE status = 'running'
AND worker_id IS NOT NULL

-- name: count_queued
-- Served by runs_queued.
SELECT count(*)
FROM runs
WHERE status = 'queued'

-- name: count_stuck
-- Served by runs_stuck, whose condition this repeats.
SELECT status, count(*)
FROM runs
WHERE status IN ('blocked', 'dead', 'failed')
GROUP BY status

-- name: count_ready
-- How many there are, how many of them may be claimed by now, and when the first may. Served by runs_ready.
SELECT count(*), coalesce(sum(CASE WHEN due_at <= :now THEN 1 ELSE 0 END), 0), min(due_at)
FROM runs
WHERE status = 'ready'
AND limit_key IS NULL

-- name: count_ready_limited
-- The same of those with a limit. Served by runs_limited.
SELECT count(*), coalesce(sum(CASE WHEN due_at <= :now THEN 1 ELSE 0 END), 0), min(due_at)
FROM runs
WHERE status = 'ready'
AND limit_key IS NOT NULL

-- name: count_pending_deliveries
-- Served by deliveries_pending.
SELECT count(*)
FROM deliveries
WHERE is_pending = 1

-- name: count_outbox
-- Served by outbox_by_age. Not GROUP BY: what was sent is most of it, and must not be counted.
SELECT (SELECT count(*) FROM outbox WHERE status = 'open'), (SELECT min(created_at) FROM outbox WHERE status = 'open'),
    (SELECT count(*) FROM outbox WHERE status = 'dead')
