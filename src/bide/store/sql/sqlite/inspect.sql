-- What is asked of SQLite alone.

-- name: size_of_file
SELECT pages.page_count * size.page_size, free.freelist_count * size.page_size
FROM pragma_page_count AS pages, pragma_page_size AS size, pragma_freelist_count AS free

-- name: check_file
-- The pages themselves: whether they form trees, and whether the indexes fit their tables.
SELECT integrity_check
FROM pragma_integrity_check(:most)
