-- Who drives runs, until when each counts as alive, and what each still holds.

-- name: insert_worker
INSERT INTO workers (worker_id, host, pid, started, lease_until)
VALUES (:worker_id, :host, :pid, :started, :lease_until)
ON CONFLICT (worker_id) DO UPDATE SET lease_until = excluded.lease_until

-- name: renew_lease
-- Changes no row once the worker was laid off: then whatever it held is not its own any more.
UPDATE workers
SET lease_until = :lease_until
WHERE worker_id = :worker_id

-- name: read_driven
-- Asked right behind the renewal: from then on nobody takes any of these, unless it had made up its mind before.
SELECT run_id, epoch
FROM runs
WHERE worker_id = :worker_id
AND status = 'running'

-- name: lay_off_worker
-- Before the runs of a worker that is gone are taken from it, and in the same transaction. The lease is in the WHERE:
-- a worker that was heard of since somebody looked keeps its row, and its runs.
DELETE FROM workers
WHERE worker_id = :worker_id
AND lease_until = :lease_until

-- name: forget_workers
-- Workers that were not heard of for long, and hold nothing.
DELETE FROM workers
WHERE lease_until < :horizon
AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.worker_id = workers.worker_id AND runs.status = 'running')

-- name: delete_worker
DELETE FROM workers
WHERE worker_id = :worker_id
