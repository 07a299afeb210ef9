-- Where our tables are.

-- name: find_place
-- The first schema that is looked in and has them; else the one where they are made. Temporary tables are nobody's.
SELECT coalesce(
    (
        SELECT nspname
        FROM pg_class
        JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE relname = 'migrations'
        AND relpersistence <> 't'
        AND nspname = ANY (current_schemas(false))
        AND obj_description(pg_class.oid, 'pg_class') = 'Bide'
        ORDER BY array_position(current_schemas(false), nspname)
        LIMIT 1
    ),
    current_schema()
)::text
