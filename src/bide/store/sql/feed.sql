-- The lines of all threads in one order. Here there is one writer at a time, so that positions become visible in the
-- order in which they are given; PostgreSQL has its own (postgres/feed.sql). A place is a pair: the first of it counts
-- transactions, and is always 0 here.

-- name: feed_end
-- The last place that may be told, and behind it the first that nobody can have been told. It outlives its line:
-- positions are never given again.
SELECT 0, coalesce(max(seq), 0), 0, coalesce(max(seq), 0) + 1
FROM sqlite_sequence
WHERE name = 'events'

-- name: feed_scan
-- How far a reader looks at once, whoever's lines these are: where there are more than that, the last of them.
SELECT 0, position
FROM events
WHERE position > :position
AND kind NOT LIKE 'told.%'
ORDER BY position
LIMIT 1 OFFSET :beyond

-- name: read_feed
SELECT 0, e.position, t.owner, t.graph, e.thread_id, e.number, e.seq, e.run_id, e.kind, e.at, e.body
FROM events e
JOIN threads t ON t.thread_id = e.thread_id
WHERE e.position > :position
AND e.position <= :until_position
AND e.kind NOT LIKE 'told.%'
AND t.owner = coalesce(:owner, t.owner)
ORDER BY e.position
LIMIT :most

-- name: feed_strays
-- Lines that the restored dump of another server has brought: a file has none.
SELECT position
FROM events
WHERE 1 = 0
