-- Looking at what is stored, and carrying it elsewhere: stats, verify, export, import, reseal.

-- ── Page after page, in the order of the primary key: each begins after the last row of the one before ─────────────

-- name: page_threads
SELECT thread_id, uid, owner, graph, events, created_at, pruned, parent, on_close
FROM threads
WHERE thread_id > :thread_id
ORDER BY thread_id
LIMIT :most

-- name: inspect_thread
SELECT thread_id, uid, owner, graph, events, created_at, pruned, parent, on_close
FROM threads
WHERE thread_id = :thread_id

-- name: page_runs
SELECT thread_id, run_id, status, epoch, worker_id, error, created_at, updated_at, lane, owner, rank, due_at, crashes,
    limit_key, limit_most, input, options
FROM runs
WHERE thread_id = :thread_id
AND run_id > :run_id
ORDER BY run_id
LIMIT :most

-- name: page_checkpoints
SELECT thread_id, ns, seq, parent, step, source, run_id, epoch, created_at, pruned, body
FROM checkpoints
WHERE thread_id = :thread_id
AND (ns, seq) > (:ns, :seq)
ORDER BY ns, seq
LIMIT :most

-- name: page_channel_log
SELECT thread_id, ns, channel, seq, body
FROM channel_log
WHERE thread_id = :thread_id
AND (ns, channel, seq) > (:ns, :channel, :seq)
ORDER BY ns, channel, seq
LIMIT :most

-- name: page_journal
SELECT thread_id, task_id, key, kind, phase, name, digest, run_id, epoch, written_at, body
FROM journal
WHERE thread_id = :thread_id
AND (task_id, kind, key) > (:task_id, :kind, :key)
ORDER BY task_id, kind, key
LIMIT :most

-- name: page_waits
SELECT thread_id, wait_id, run_id, task_id, node, key, kind, status, consumed, digest, answered_at, answered_via,
    answered_by, answer_key, settled_in, deadline, remind_at, created_at, question, answer, needs, owner, snoozed_until
FROM waits
WHERE thread_id = :thread_id
AND wait_id > :wait_id
ORDER BY wait_id
LIMIT :most

-- name: page_conditions
SELECT w.thread_id, c.wait_id, c.number, c.kind, c.correlation, c.due_at, c.is_open, c.exclusive, c.created_at,
    c.delivery_id, c.wake
FROM waits w
JOIN conditions c ON c.wait_id = w.wait_id
WHERE w.thread_id = :thread_id
AND (c.wait_id, c.number) > (:wait_id, :number)
ORDER BY c.wait_id, c.number
LIMIT :most

-- name: page_events
SELECT thread_id, number, seq, run_id, kind, at, body
FROM events
WHERE thread_id = :thread_id
AND number > :number
ORDER BY number
LIMIT :most

-- name: page_blob_uses
SELECT thread_id, owner, hash
FROM blob_uses
WHERE thread_id = :thread_id
AND (owner, hash) > (:owner, :hash)
ORDER BY owner, hash
LIMIT :most

-- name: page_blobs
SELECT owner, hash, size, used_at, body
FROM blobs
WHERE (owner, hash) > (:owner, :hash)
ORDER BY owner, hash
LIMIT :most

-- name: page_deliveries
SELECT delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, taken_by, received_at, body
FROM deliveries
WHERE delivery_id > :delivery_id
ORDER BY delivery_id
LIMIT :most

-- name: page_schedules
SELECT schedule_id, owner, graph, cron, timezone, is_paused, next_at, last_at, created_at, error, body
FROM schedules
WHERE schedule_id > :schedule_id
ORDER BY schedule_id
LIMIT :most

-- name: page_items
SELECT namespace, key, ttl, expires_at, created_at, updated_at, body
FROM items
WHERE (namespace, key) > (:namespace, :key)
ORDER BY namespace, key
LIMIT :most

-- name: page_cache
SELECT place, key, expires_at, body
FROM cache
WHERE (place, key) > (:place, :key)
ORDER BY place, key
LIMIT :most

-- name: page_saver_checkpoints
SELECT thread_id, ns, checkpoint_id, parent_id, run_id, seq, created_at, metadata, body
FROM saver_checkpoints
WHERE (thread_id, ns, checkpoint_id) > (:thread_id, :ns, :checkpoint_id)
ORDER BY thread_id, ns, checkpoint_id
LIMIT :most

-- name: page_saver_values
SELECT thread_id, ns, channel, seq, body
FROM saver_values
WHERE (thread_id, ns, channel, seq) > (:thread_id, :ns, :channel, :seq)
ORDER BY thread_id, ns, channel, seq
LIMIT :most

-- name: page_saver_writes
SELECT thread_id, ns, checkpoint_id, task_id, idx, channel, task_path, body
FROM saver_writes
WHERE (thread_id, ns, checkpoint_id, task_id, idx) > (:thread_id, :ns, :checkpoint_id, :task_id, :idx)
ORDER BY thread_id, ns, checkpoint_id, task_id, idx
LIMIT :most

-- ── Rows whose thread is gone ──────────────────────────────────────────────────────────────────────────────────────

-- name: lost_runs
SELECT DISTINCT thread_id
FROM runs
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = runs.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: lost_checkpoints
SELECT DISTINCT thread_id
FROM checkpoints
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = checkpoints.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: lost_channel_log
SELECT DISTINCT thread_id
FROM channel_log
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = channel_log.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: lost_journal
SELECT DISTINCT thread_id
FROM journal
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = journal.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: lost_waits
SELECT DISTINCT thread_id
FROM waits
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = waits.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: lost_events
SELECT DISTINCT thread_id
FROM events
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = events.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: lost_blob_uses
-- Threads of LangGraph's use blobs, too, under a name of their own.
SELECT DISTINCT thread_id
FROM blob_uses
WHERE NOT EXISTS (SELECT 1 FROM threads t WHERE t.thread_id = blob_uses.thread_id)
AND substr(thread_id, 1, 10) <> :langgraph
ORDER BY thread_id
LIMIT :most

-- name: lost_saver_rows
SELECT DISTINCT thread_id
FROM saver_checkpoints
WHERE NOT EXISTS (SELECT 1 FROM saver_threads t WHERE t.thread_id = saver_checkpoints.thread_id)
ORDER BY thread_id
LIMIT :most

-- name: risen_threads
-- A life that was ended, and is lived on.
SELECT t.thread_id
FROM threads t
JOIN tombstones d ON d.uid = t.uid
ORDER BY t.thread_id
LIMIT :most

-- ── Blobs and deliveries ───────────────────────────────────────────────────────────────────────────────────────────

-- name: unused_blobs
SELECT owner, hash
FROM blobs
WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.owner = blobs.owner AND u.hash = blobs.hash)
ORDER BY owner, hash
LIMIT :most

-- name: lost_conditions
-- Leaves of waits that are not there.
SELECT DISTINCT wait_id
FROM conditions
WHERE NOT EXISTS (SELECT 1 FROM waits w WHERE w.wait_id = conditions.wait_id)
ORDER BY wait_id
LIMIT :most

-- name: lost_delivery_keys
SELECT DISTINCT delivery_id
FROM delivery_keys
WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.delivery_id = delivery_keys.delivery_id)
ORDER BY delivery_id
LIMIT :most

-- name: unkept_deliveries
-- Facts that an exclusive leaf has, though they were not taken for it.
SELECT d.source, d.external_id, c.wait_id, d.taken_by, w.thread_id
FROM conditions c
JOIN deliveries d ON d.delivery_id = c.delivery_id
JOIN waits w ON w.wait_id = c.wait_id
WHERE c.exclusive = 1
AND (d.taken_by IS NULL OR d.taken_by <> c.wait_id)
ORDER BY d.source, d.external_id
LIMIT :most

-- name: passed_over
-- Facts that came under a key after a leaf was there, and that its wait has not got. Left out are those that are still
-- being matched, those that another one has for itself alone, and those that have woken a question which was asked
-- again since, or is gone.
SELECT d.delivery_id, d.owner, d.source, d.external_id, d.kind, d.name, d.digest, d.is_pending, d.wakes, d.taken_by,
    d.received_at, d.body
FROM delivery_keys k
JOIN deliveries d ON d.delivery_id = k.delivery_id
WHERE k.correlation = :correlation
AND k.received_at > :since
AND k.received_at < :until
AND d.is_pending = 0
AND (:exclusive = 0 OR d.taken_by IS NULL)
AND d.wakes = (SELECT count(*) FROM conditions c WHERE c.delivery_id = d.delivery_id)
AND NOT EXISTS (SELECT 1 FROM conditions c WHERE c.delivery_id = d.delivery_id AND c.wait_id = :wait_id)
ORDER BY k.received_at, k.delivery_id
LIMIT :most

-- name: uncounted_deliveries
-- Facts that more leaves have than they are said to have woken. Fewer are no fault: threads are deleted, and a question
-- that is asked again has new leaves.
SELECT d.source, d.external_id, d.wakes, count(*)
FROM conditions c
JOIN deliveries d ON d.delivery_id = c.delivery_id
GROUP BY d.delivery_id, d.source, d.external_id, d.wakes
HAVING count(*) > d.wakes
ORDER BY d.source, d.external_id
LIMIT :most

-- ── Counting ───────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: count_threads
-- By the status of the live run, or else of the latest; one that was only edited has none.
SELECT coalesce(r.status, 'new'), count(*)
FROM threads t
LEFT JOIN runs r ON r.thread_id = t.thread_id AND r.run_id = (
    SELECT run_id
    FROM runs
    WHERE thread_id = t.thread_id
    ORDER BY CASE WHEN status IN ('ready', 'running', 'waiting', 'blocked', 'dead') THEN 0 ELSE 1 END, run_id DESC
    LIMIT 1
)
GROUP BY coalesce(r.status, 'new')
ORDER BY 1

-- name: count_open_waits
-- Served by waits_by_age.
SELECT count(*), min(created_at)
FROM waits
WHERE status = 'open'

-- name: count_open_leaves
-- What those who wait, wait for; one that waits for several things counts for each.
SELECT c.kind, count(DISTINCT w.wait_id)
FROM waits w
JOIN conditions c ON c.wait_id = w.wait_id
WHERE w.status = 'open'
AND c.is_open = 1
GROUP BY c.kind
ORDER BY c.kind

-- name: count_plain_waits
-- Those that say no condition: questions, and threads that were told to stop before or after a node.
SELECT sum(CASE WHEN kind IN ('call', 'return') THEN 1 ELSE 0 END),
    sum(CASE WHEN kind IN ('call', 'return') THEN 0 ELSE 1 END)
FROM waits
WHERE status = 'open'
AND NOT EXISTS (SELECT 1 FROM conditions c WHERE c.wait_id = waits.wait_id)

-- name: count_queue
SELECT (SELECT count(*) FROM runs WHERE status = 'queued'), (SELECT count(*) FROM deliveries WHERE is_pending = 1),
    (SELECT count(*) FROM deliveries WHERE is_pending = 0 AND wakes = 0), (SELECT count(*) FROM schedules),
    (SELECT count(*) FROM schedules WHERE is_paused = 1)

-- name: count_due
-- What the clock brings until a moment: instants, deadlines, reminders, delayed runs, schedules.
SELECT (SELECT count(*) FROM conditions WHERE is_open = 1 AND due_at <= :until)
    + (SELECT count(*) FROM waits WHERE status = 'open' AND deadline <= :until)
    + (SELECT count(*) FROM waits WHERE status = 'open' AND remind_at <= :until)
    + (SELECT count(*) FROM runs WHERE status = 'queued' AND due_at <= :until)
    + (SELECT count(*) FROM schedules WHERE is_paused = 0 AND next_at <= :until)

-- name: count_rows
SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM events),
    (SELECT count(*) FROM journal), (SELECT count(*) FROM items), (SELECT count(*) FROM cache),
    (SELECT count(*) FROM deliveries), (SELECT count(*) FROM saver_checkpoints), (SELECT count(*) FROM threads)

-- name: count_blobs
SELECT count(*), coalesce(sum(size), 0)
FROM blobs

-- name: list_workers
SELECT worker_id, host, pid, started, lease_until
FROM workers
ORDER BY worker_id

-- ── Sealing anew: only what is still as it was read ────────────────────────────────────────────────────────────────

-- name: reseal_checkpoints_body
UPDATE checkpoints
SET body = :new
WHERE thread_id = :thread_id
AND ns = :ns
AND seq = :seq
AND body = :old

-- name: reseal_channel_log_body
UPDATE channel_log
SET body = :new
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
AND seq = :seq
AND body = :old

-- name: reseal_journal_body
UPDATE journal
SET body = :new
WHERE thread_id = :thread_id
AND task_id = :task_id
AND kind = :kind
AND key = :key
AND body = :old

-- name: reseal_waits_question
UPDATE waits
SET question = :new
WHERE wait_id = :wait_id
AND question = :old

-- name: reseal_waits_answer
UPDATE waits
SET answer = :new
WHERE wait_id = :wait_id
AND answer = :old

-- name: reseal_waits_needs
UPDATE waits
SET needs = :new
WHERE wait_id = :wait_id
AND needs = :old

-- name: reseal_correlation
UPDATE conditions
SET correlation = :correlation
WHERE wait_id = :wait_id
AND number = :number

-- name: reseal_conditions_wake
UPDATE conditions
SET wake = :new
WHERE wait_id = :wait_id
AND number = :number
AND wake = :old

-- name: reseal_runs_input
UPDATE runs
SET input = :new
WHERE thread_id = :thread_id
AND run_id = :run_id
AND input = :old

-- name: reseal_runs_options
UPDATE runs
SET options = :new
WHERE thread_id = :thread_id
AND run_id = :run_id
AND options = :old

-- name: reseal_deliveries_body
UPDATE deliveries
SET body = :new
WHERE delivery_id = :delivery_id
AND body = :old

-- name: reseal_schedules_body
UPDATE schedules
SET body = :new
WHERE schedule_id = :schedule_id
AND body = :old

-- name: reseal_events_body
UPDATE events
SET body = :new
WHERE thread_id = :thread_id
AND number = :number
AND body = :old

-- name: reseal_items_body
UPDATE items
SET body = :new
WHERE namespace = :namespace
AND key = :key
AND body = :old

-- name: reseal_cache_body
UPDATE cache
SET body = :new
WHERE place = :place
AND key = :key
AND body = :old

-- name: reseal_saver_checkpoints_metadata
UPDATE saver_checkpoints
SET metadata = :new
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id = :checkpoint_id
AND metadata = :old

-- name: reseal_saver_checkpoints_body
UPDATE saver_checkpoints
SET body = :new
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id = :checkpoint_id
AND body = :old

-- name: reseal_saver_values_body
UPDATE saver_values
SET body = :new
WHERE thread_id = :thread_id
AND ns = :ns
AND channel = :channel
AND seq = :seq
AND body = :old

-- name: reseal_saver_writes_body
UPDATE saver_writes
SET body = :new
WHERE thread_id = :thread_id
AND ns = :ns
AND checkpoint_id = :checkpoint_id
AND task_id = :task_id
AND idx = :idx
AND body = :old

-- ── Bringing a thread in ───────────────────────────────────────────────────────────────────────────────────────────

-- name: import_thread
INSERT INTO threads (thread_id, uid, owner, graph, events, created_at, pruned, parent, on_close)
VALUES (:thread_id, :uid, :owner, :graph, :events, :created_at, :pruned, :parent, :on_close)
ON CONFLICT DO NOTHING

-- name: import_runs
INSERT INTO runs (thread_id, run_id, status, epoch, worker_id, error, created_at, updated_at, lane, owner, rank, due_at,
    crashes, limit_key, limit_most, input, options)
VALUES (:thread_id, :run_id, :status, :epoch, :worker_id, :error, :created_at, :updated_at, :lane, :owner, :rank,
    :due_at, :crashes, :limit_key, :limit_most, :input, :options)

-- name: import_checkpoints
INSERT INTO checkpoints (thread_id, ns, seq, parent, step, source, run_id, epoch, created_at, pruned, body)
VALUES (:thread_id, :ns, :seq, :parent, :step, :source, :run_id, :epoch, :created_at, :pruned, :body)

-- name: import_channel_log
INSERT INTO channel_log (thread_id, ns, channel, seq, body)
VALUES (:thread_id, :ns, :channel, :seq, :body)

-- name: import_journal
INSERT INTO journal (thread_id, task_id, key, kind, phase, name, digest, run_id, epoch, written_at, body)
VALUES (:thread_id, :task_id, :key, :kind, :phase, :name, :digest, :run_id, :epoch, :written_at, :body)

-- name: import_waits
INSERT INTO waits (wait_id, thread_id, run_id, task_id, node, key, kind, status, consumed, digest, question, answer,
    answered_at, answered_via, answered_by, answer_key, settled_in, deadline, remind_at, created_at, needs, owner,
    snoozed_until)
VALUES (:wait_id, :thread_id, :run_id, :task_id, :node, :key, :kind, :status, :consumed, :digest, :question, :answer,
    :answered_at, :answered_via, :answered_by, :answer_key, :settled_in, :deadline, :remind_at, :created_at, :needs,
    :owner, :snoozed_until)

-- name: import_conditions
INSERT INTO conditions (wait_id, number, kind, correlation, due_at, is_open, exclusive, created_at, delivery_id, wake)
VALUES (:wait_id, :number, :kind, :correlation, :due_at, :is_open, :exclusive, :created_at, :delivery_id, :wake)

-- name: import_deliveries
INSERT INTO deliveries (delivery_id, owner, source, external_id, kind, name, digest, is_pending, wakes, taken_by,
    received_at, body)
VALUES (:delivery_id, :owner, :source, :external_id, :kind, :name, :digest, :is_pending, :wakes, :taken_by,
    :received_at, :body)

-- name: import_events
-- The past of a thread is no news: it lies before the beginning of the feed.
INSERT INTO events (position, thread_id, number, seq, run_id, kind, at, body)
SELECT min(coalesce(min(position), 0), 0) - 1, :thread_id, :number, :seq, :run_id, :kind, :at, :body
FROM events
