-- The lines of all threads in one order, where many write at once. A line with a lower position may become visible after
-- one with a higher, whenever its transaction takes longer. So lines are told in the order of their transactions, and
-- only those of transactions that began before the oldest which is still under way: behind a place that was told, none
-- can appear any more.

-- name: feed_end
-- The last place that may be told; and from where on no transaction can have told one.
SELECT coalesce(last.tx, 0), coalesce(last.position, 0), pg_snapshot_xmax(pg_current_snapshot())::TEXT::BIGINT, 0
FROM (SELECT 1) AS always
LEFT JOIN (
    SELECT tx, position
    FROM events
    WHERE tx < pg_snapshot_xmin(pg_current_snapshot())::TEXT::BIGINT
    AND kind NOT LIKE 'told.%'
    ORDER BY tx DESC, position DESC
    LIMIT 1
) AS last ON true

-- name: feed_scan
SELECT tx, position
FROM events
WHERE (tx, position) > (:tx, :position)
AND tx < pg_snapshot_xmin(pg_current_snapshot())::TEXT::BIGINT
AND kind NOT LIKE 'told.%'
ORDER BY tx, position
LIMIT 1 OFFSET :beyond

-- name: read_feed
SELECT e.tx, e.position, t.owner, t.graph, e.thread_id, e.number, e.seq, e.run_id, e.kind, e.at, e.body
FROM events e
JOIN threads t ON t.thread_id = e.thread_id
WHERE (e.tx, e.position) > (:tx, :position)
AND (e.tx, e.position) <= (:until_tx, :until_position)
AND e.tx < pg_snapshot_xmin(pg_current_snapshot())::TEXT::BIGINT
AND e.kind NOT LIKE 'told.%'
AND t.owner = coalesce(:owner, t.owner)
ORDER BY e.tx, e.position
LIMIT :most

-- name: feed_strays
-- A line that can be seen was written before now. If its transaction is still to come, a dump of another server was
-- restored here, which had counted further.
SELECT position
FROM events
WHERE tx >= pg_snapshot_xmax(pg_current_snapshot())::TEXT::BIGINT
AND kind NOT LIKE 'told.%'
LIMIT 1

-- name: first_untold
-- Of what was written by transactions after the one that somebody had read up to.
SELECT min(position)
FROM events
WHERE tx > :tx

-- name: settle_strays
-- From now on these come first, in the order of their positions.
UPDATE events
SET tx = 0
WHERE tx <> 0

-- name: import_events
-- The past of a thread is no news: it lies before the beginning of the feed.
INSERT INTO events (position, tx, thread_id, number, seq, run_id, kind, at, body)
OVERRIDING SYSTEM VALUE
VALUES (0, 0, :thread_id, :number, :seq, :run_id, :kind, :at, :body)
