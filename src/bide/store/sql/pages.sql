-- What the pages of the inbox ask.

-- name: count_inbox
-- How many wait for an owner; nobody reads a number that is larger than `most`. Served by waits_of_owner.
SELECT count(*)
FROM (
    SELECT 1
    FROM waits
    WHERE status = 'open'
    AND consumed = 0
    AND owner = :owner
    LIMIT :most
) AS counted
