-- What the pages of the inbox ask.

-- name: count_inbox
-- How many wait for an owner; nobody reads a number that is larger than `most`.
SELECT count(*)
FROM (
    SELECT 1
    FROM waits w
    JOIN threads t ON t.thread_id = w.thread_id
    WHERE w.status = 'open'
    AND w.consumed = 0
    AND t.owner = :owner
    LIMIT :most
) AS counted
