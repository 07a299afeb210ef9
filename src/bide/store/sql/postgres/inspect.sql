-- What stats asks of PostgreSQL alone.

-- name: size_of_tables
-- With their indexes, and with the bodies that lie outside the rows.
SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)
FROM unnest(string_to_array(:tables, ',')) AS name
