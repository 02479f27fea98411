ALTER TABLE rejected_lines DROP COLUMN duplicate_of, DROP COLUMN extra;
DROP INDEX batches_parent_idx;
ALTER TABLE batches DROP COLUMN rerun, DROP COLUMN parent_batch_id, DROP COLUMN url_column, DROP COLUMN columns;
DROP INDEX items_failed_host_idx;
ALTER TABLE items DROP COLUMN resolved_note, DROP COLUMN resolved_by, DROP COLUMN resolved_at, DROP COLUMN extra,
    DROP COLUMN failure_group, DROP COLUMN host;
DROP FUNCTION failure_message(text);
CREATE INDEX items_failed_host_idx ON items (lower(substring(url FROM '^[A-Za-z]+://([^/?#:]+)')), ended_at DESC, id DESC)
    WHERE state = 'failed';
DROP INDEX results_stored_idx;
ALTER TABLE results DROP COLUMN page_key;
